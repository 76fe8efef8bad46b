import Authorization
import GRDB
import RecordModel

/// Runs the operations of a request on records, in a transaction.
struct RecordRequest: TransactionPart {
    let transaction: RecordTransaction

    func run(_ command: ModifyRecords) throws -> RecordOutcome {
        if let earlier = try IdempotencyTable(transaction).earlierOutcome(of: command) { return earlier }
        let database = try transaction.openDatabase(command.zone.database)
        guard database.version == command.schemaVersion else { return .needsSchema(installed: database.version) }
        if let refusal = command.refusal { return .refused(refusal) }
        let outcome = try perform(command, in: database)
        if case .needsAllotment = outcome { return outcome }
        if let idempotency = command.idempotency {
            let names = if case .refused = outcome { [String]() } else { command.operations.map(\.recordName) }
            let outcome = RememberedOutcome(outcome, names: names, at: transaction.level)
            try IdempotencyTable(transaction).remember(outcome, of: idempotency, in: command.zone.database)
        }
        return outcome
    }

    private func perform(_ command: ModifyRecords, in database: OpenDatabase) throws -> RecordOutcome {
        if !command.zone.isDefault, try transaction.openZone(command.zone) == nil {
            return .refused(ZoneRules.notFound(command.zone))
        }
        let batch = Batch(
            command: command, database: database,
            schema: try database.schema.map { try transaction.tables.installedSchema($0, in: db) } ?? .none,
            zone: try transaction.openZone(command.zone), callerID: try transaction.knownUserID(command.caller))
        batch.growth = command.quota.map { GrowthLimit($0, database: database.row) }
        batch.versions = VersionKeeper(command.versionsMax, command.quota, database, in: transaction)
        return try outcome(of: batch)
    }

    /// Operations apply in order, each seeing the ones before. A request in which no operation can meet another, and of
    /// which all or nothing is to happen, is judged as a whole before the first write, which needs no savepoint. Where
    /// earlier versions are kept, what they take is known at the end only.
    private func outcome(of batch: Batch) throws -> RecordOutcome {
        let command = batch.command
        let isAtomic = command.isAtomic && command.zone.isAtomic
        let keepsVersions = batch.versions != nil
        if try !keepsVersions && (command.operations.count == 1 || isAtomic && !isEntangled(command, batch.zone)) {
            return try asWhole(batch, isAtomic: isAtomic)
        }
        if !keepsVersions, let growth = batch.growth, let most = batch.growthMost(transaction.counted),
            (growth.used + most).fits(in: growth.allotted)
        {
            batch.growth = nil
        }
        guard keepsVersions || isAtomic || batch.growth?.terms.isFinal == false else {
            return .records(try inOrder(batch).items)
        }
        let kept = KeptState(transaction, database: batch.database)
        var items: [ItemOutcome] = []
        var isFailure = false
        try db.inSavepoint {
            (items, isFailure) = try inOrder(batch)
            isFailure = isFailure && isAtomic
            if !isFailure && batch.growth?.need == nil { try VersionTable(transaction).settle(batch) }
            return isFailure || batch.growth?.need != nil ? .rollback : .commit
        }
        if !isFailure && batch.growth?.need == nil { return .records(items) }
        kept.restore(of: command.zone, in: transaction)
        if !isFailure, let outcome = needsAllotment(batch) { return outcome }
        return .atomicFailure(items.map(\.inFailedBatch))
    }

    private func asWhole(_ batch: Batch, isAtomic: Bool) throws -> RecordOutcome {
        let verdicts = try judge(batch)
        if isAtomic && verdicts.contains(where: \.isFailure) { return .atomicFailure(verdicts.map(\.inFailedBatch)) }
        if let outcome = needsAllotment(batch) { return outcome }
        let writer = RecordWriter(transaction)
        return .records(try verdicts.map { try writer.write($0, batch: batch) })
    }

    private func needsAllotment(_ batch: Batch) -> RecordOutcome? {
        guard let growth = batch.growth, let need = growth.need else { return nil }
        let row = batch.database.row
        return .needsAllotment(
            QuotaNeed(
                need: need, received: row?.received ?? .zero, returned: row?.returned ?? .zero,
                holdsVoid: row.map { $0.slack(under: growth.terms.epoch) != .zero } ?? false,
                epoch: max(growth.terms.epoch, row?.epoch ?? 0)))
    }

    /// Whether an operation of the batch may change what another one is judged by.
    private func isEntangled(_ command: ModifyRecords, _ zone: OpenZone?) throws -> Bool {
        guard let zone, command.operations.count > 1 else { return false }
        for operation in command.operations {
            switch operation.kind {
            case .delete, .forceDelete: if try EdgeTable(transaction).isUsed(in: zone) { return true }
            default:
                let isActioned = operation.fields.contains { change in
                    change.value?.references.contains { $0.action != .none } ?? false
                }
                if isActioned { return true }
            }
        }
        return false
    }

    private func judge(_ batch: Batch) throws -> [Verdict] {
        var seen = SeenNames(batch.command)
        return try batch.command.operations.map { operation in
            let verdict = try seen.refusal(of: operation) ?? judge(operation, batch)
            return try batch.limit(verdict, in: transaction)
        }
    }

    private func inOrder(_ batch: Batch) throws -> (items: [ItemOutcome], isFailure: Bool) {
        var seen = SeenNames(batch.command)
        var isFailure = false
        let items = try batch.command.operations.map { operation in
            let verdict = try batch.limit(try seen.refusal(of: operation) ?? judge(operation, batch), in: transaction)
            if verdict.isFailure { isFailure = true }
            let item = try RecordWriter(transaction).write(verdict, batch: batch)
            // A deletion may have taken others along.
            batch.growth?.used = batch.database.row?.used ?? .zero
            return item
        }
        return (items, isFailure)
    }

    private func judge(_ operation: RecordChange, _ batch: Batch) throws -> Verdict {
        let row = try batch.zone.flatMap { try transaction.rows.record(zoneID: $0.row.id, name: operation.recordName) }
        return try Judgement(transaction).judge(operation, JudgedRecord(batch: batch, row: row))
    }
}

/// The names that operations of one request were about.
private struct SeenNames {
    private var names: Set<[UInt8]> = []
    private let isAlone: Bool

    init(_ command: ModifyRecords) { isAlone = command.operations.count == 1 }

    /// Bytes, because two names that differ in Unicode form only are two records.
    mutating func refusal(of operation: RecordChange) -> Verdict? {
        if isAlone || names.insert(Array(operation.recordName.utf8)).inserted { return nil }
        return .fail(.init(.badRequest, "more than one operation on record \(operation.recordName)"), nil)
    }
}

/// What the rules of databases and zones say before any record is looked at.
enum ZoneRules {
    static func notFound(_ zone: ZoneKey) -> ServiceError {
        ServiceError(.zoneNotFound, "Zone not found: \(zone.name)")
    }

    /// Why a caller may not address the zone at all.
    static func refusal(of caller: Caller, in zone: ZoneKey) -> ServiceError? {
        switch zone.database.scope {
        case .shared: sharedDatabase
        case .private where !caller.isOwner(of: zone.database): notOwner
        case .public where !zone.isDefault: notFound(zone)
        case .public, .private: nil
        }
    }

    /// Why a caller may not ask for the zones of a database that has zones of its own.
    static func refusal(of caller: Caller, inZonesOf database: DatabaseKey) -> ServiceError? {
        switch database.scope {
        case .shared: sharedDatabase
        case .public: ServiceError(.badRequest, "only private databases have zones of their own")
        case .private: caller.isOwner(of: database) ? nil : notOwner
        }
    }

    private static let sharedDatabase = ServiceError(
        .badRequest, "shared databases are not supported yet: address the zone in its owner's database")
    private static let notOwner = ServiceError(.accessDenied, "only its owner may use a private database")
}
