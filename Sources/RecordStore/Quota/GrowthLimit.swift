import Authorization
import RecordModel

/// How far the records of one request may grow.
struct GrowthLimit {
    let terms: QuotaTerms
    /// What the database may hold on this shard.
    let allotted: QuotaAmounts
    /// What it holds by the operations so far.
    var used: QuotaAmounts
    /// What is lacking at the operation that lacks most, where that is asked for; nil where all fitted.
    private(set) var need: QuotaAmounts?

    init(_ terms: QuotaTerms, database: DatabaseRow?) {
        self.terms = terms
        used = database?.used ?? .zero
        // A public database's limit falls with its users, without a new version; on its one shard that is exact.
        allotted = ((database?.allotted ?? .zero) - (database?.slack(under: terms.epoch) ?? .zero))
            .lesser(terms.limit)
    }

    /// What is lacking for an operation that grows by an amount. What does not grow lacks nothing, also where more is
    /// used than allotted.
    func lack(_ growth: QuotaAmounts) -> QuotaAmounts {
        let after = used + growth
        return QuotaAmounts(
            bytes: growth.bytes > 0 ? max(after.bytes - allotted.bytes, 0) : 0,
            records: growth.records > 0 ? max(after.records - allotted.records, 0) : 0,
            assets: growth.assets > 0 ? max(after.assets - allotted.assets, 0) : 0)
    }

    /// Counts what an operation grows by; nil, and nothing counted, where it does not fit for good.
    mutating func take(_ growth: QuotaAmounts) -> ServiceError? {
        let (lack, after) = (lack(growth), used + growth)
        if lack != .zero {
            if terms.isFinal { return refusal(growth, lack) }
            ask(for: lack)
        }
        used = after
        return nil
    }

    /// Has the ledger asked for more.
    mutating func ask(for lack: QuotaAmounts) { need = need?.greater(lack) ?? lack }

    private func refusal(_ growth: QuotaAmounts, _ lack: QuotaAmounts) -> ServiceError {
        func words(_ what: String, _ amount: KeyPath<QuotaAmounts, Int64>) -> String {
            let limit = terms.limit[keyPath: amount]
            let whole = limit == .max ? "" : ", of \(limit) for the whole database"
            return """
                the database is full: its records here take \(used[keyPath: amount]) of \(allotted[keyPath: amount]) \
                \(what)\(whole), and the operation adds \(growth[keyPath: amount]): delete something, or have the \
                limit raised
                """
        }
        let text =
            if lack.bytes > 0 {
                words("bytes", \.bytes)
            } else if lack.records > 0 {
                words("records", \.records)
            } else {
                words("bytes of assets", \.assets)
            }
        return ServiceError(.quotaExceeded, text)
    }
}

extension Batch {
    /// The verdict of an operation that does not fit is that it fails, once the earlier versions went that could make
    /// room.
    func limit(_ verdict: Verdict, in transaction: RecordTransaction) throws -> Verdict {
        guard let growth, !verdict.isFailure else { return verdict }
        if growth.terms.isFinal { try VersionTable(transaction).makeRoom(for: growth.lack(verdict.growth), self) }
        return self.growth?.take(verdict.growth).map { .fail($0, nil) } ?? verdict
    }

    /// More than the operations can make the database grow, by their own sizes alone; nil where that cannot be told.
    func growthMost(_ counted: CountedRows) -> QuotaAmounts? {
        // A stored number that is written back as another kind may grow without being sent.
        if schema.convertsNumbers { return nil }
        var most = QuotaAmounts()
        for operation in command.operations where operation.kind != .delete && operation.kind != .forceDelete {
            let isNew = operation.kind != .update && operation.kind != .replace
            let fields = operation.fields.reduce(0) { $0 + $1.name.utf8.count + 8 + ($1.value?.bodyBytesMost ?? 0) }
            let bytes = (isNew ? operation.recordName.utf8.count + 8 : 0) + fields
            let assets = operation.fields.flatMap { $0.value?.assets ?? [] }.countedBytes
            most = most + QuotaAmounts(bytes: Int64(bytes), records: isNew ? 1 : 0, assets: assets)
            if counted.isNone { continue }
            guard let rows = indexBytesMost(operation, isNew: isNew) else { return nil }
            most = most + QuotaAmounts(bytes: (isNew ? RowBytes.record : 0) + rows)
        }
        return most
    }

    /// More than an operation's index rows can grow; nil where its type is not told.
    private func indexBytesMost(_ operation: RecordChange, isNew: Bool) -> Int64? {
        guard let type = operation.recordType.flatMap({ schema.byName[$0] }) else { return nil }
        let sent = Dictionary(operation.fields.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
        let names = max(operation.recordName.utf8.count, command.caller.stampName.utf8.count)
        var most: Int64 = 0
        for index in type.indexes {
            if let value = sent[index.name] {
                most += value?.indexBytesMost ?? RowBytes.index
            } else if index.system != nil {
                most += RowBytes.index + RowBytes.number + Int64(names)
            } else if isNew {
                most += RowBytes.index
            }
        }
        return most
    }
}

extension FieldValue {
    /// At least as many bytes as the value's rows in one index count for.
    fileprivate var indexBytesMost: Int64 {
        switch self {
        case .string(let text):
            // Either the text as it is, or its words.
            RowBytes.index
                + max(
                    Int64(text.utf8.count),
                    Int64(min(text.utf8.count, Tokenizer.tokensMax)) * (RowBytes.index + Int64(Tokenizer.tokenBytesMax))
                )
        case .list(_, let members): members.reduce(RowBytes.index) { $0 + $1.indexBytesMost }
        default: RowBytes.index + Int64(bodyBytesMost)
        }
    }

    /// At least as many bytes as the value takes in a body: tags and lengths are at most 8 bytes each.
    fileprivate var bodyBytesMost: Int {
        switch self {
        case .string(let text): text.utf8.count + 16
        case .int64, .double, .timestamp: 16
        case .bytes(let bytes), .sealed(let bytes): bytes.count + 16
        case .location: 128
        case .reference(let reference):
            reference.recordName.utf8.count + (reference.zone?.name.utf8.count ?? 0)
                + (reference.zone?.owner?.utf8.count ?? 0) + 64
        case .asset: 64
        case .list(_, let members): members.reduce(32) { $0 + $1.bodyBytesMost }
        case .encrypted(let value): value.bodyBytesMost
        }
    }
}

extension DatabaseRow {
    /// What may be stored without asking the ledger.
    var allotted: QuotaAmounts { received - returned }

    /// What is allotted and not used.
    var unused: QuotaAmounts { (allotted - used).greater(.zero) }

    /// What counts as given back by who knows a version of the limits: what was allotted under lower ones, and what
    /// becomes unused while all shards together have more than they may. Otherwise records could be deleted and the
    /// room used again, over a quota that was lowered.
    func slack(under epoch: UInt64) -> QuotaAmounts {
        if epoch > self.epoch { return unused }
        return QuotaAmounts(
            bytes: overdrawn.contains(.bytes) ? unused.bytes : 0,
            records: overdrawn.contains(.records) ? unused.records : 0,
            assets: overdrawn.contains(.assets) ? unused.assets : 0)
    }
}
