import RecordModel

@testable import RecordStore

/// What a database was given and gave back.
struct Allotment {
    var received = QuotaAmounts.zero
    var returned = QuotaAmounts.zero
    var epoch: UInt64 = 0
    var overdrawn: QuotaParts = []
    var allotted: QuotaAmounts { received - returned }
}

/// Quotas told naively: everything is counted anew whenever it is asked for, and what does not fit is taken back.
extension RecordTwin {
    func used(zone id: Int) -> QuotaAmounts {
        let isLive = zones.contains { $0.id == id && $0.isLive }
        let kept = versions.filter { $0.zone == id }.reduce(QuotaAmounts.zero) { $0 + $1.size(isLive: isLive) }
        return rows.filter { $0.zone == id }.reduce(kept + QuotaAmounts(bytes: dropped[id] ?? 0)) { sum, row in
            let bytes = 64 + Int64(row.name.utf8.count) + (row.isDeleted ? 0 : liveBytes(of: row))
            guard isLive, !row.isDeleted else { return sum + QuotaAmounts(bytes: bytes) }
            let assets = Int64(Self.assets(row.fields).reduce(0) { $0 + $1.size })
            return sum + QuotaAmounts(bytes: bytes, records: 1, assets: assets)
        }
    }

    private func liveBytes(of row: Row) -> Int64 {
        let index = type(of: row).map { indexBytes(of: row).of(visible(row), type: $0) } ?? 0
        return Int64(encodeBody(row.fields).count) + index
    }

    private func indexBytes(of row: Row) -> IndexBytes {
        IndexBytes(name: row.name, creator: row.created.user, modifier: row.modified.user)
    }

    /// Rows of indexes that the next schema does not call for stay until maintenance has removed them.
    mutating func dropIndexes(for next: Schema) {
        for row in rows where !row.isDeleted {
            for field in type(of: row)?.fields ?? [] {
                let kept = next.type(named: row.type)?.field(named: field.name)
                if let kept, kept.type == field.type, !kept.indexes.isEmpty { continue }
                dropped[row.zone, default: 0] += indexBytes(of: row).of(field, visible(row))
            }
        }
    }

    /// The files that fields hold, in whatever order.
    static func assets(_ fields: Fields) -> [AssetReference] {
        fields.all.flatMap { field -> [AssetReference] in
            switch field.value {
            case .asset(let asset): [asset]
            case .list(_, let members): members.compactMap { if case .asset(let asset) = $0 { asset } else { nil } }
            default: []
            }
        }
    }

    /// How often records name each file, those of retired zones too.
    func assetCounts() -> [AssetReference: Int64] {
        (rows.filter { !$0.isDeleted }.map(\.fields) + versions.map(\.fields)).flatMap(Self.assets)
            .reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }

    func used(_ database: DatabaseKey) -> QuotaAmounts {
        zones.filter { $0.key.database == database }.reduce(QuotaAmounts(bytes: rememberedBytes[database] ?? 0)) {
            $0 + used(zone: $1.id)
        }
    }

    /// Whether rows are left of zones that were deleted.
    func hasRetiredRows(_ database: DatabaseKey) -> Bool {
        let retired = zones.filter { !$0.isLive && $0.key.database == database }.map(\.id)
        return retired.contains { id in dropped[id] ?? 0 != 0 || rows.contains { $0.zone == id } }
    }

    func usage(of database: DatabaseKey) -> DatabaseUsage {
        var usage = DatabaseUsage(
            key: database, used: used(database), allotted: allotments[database]?.allotted ?? .zero,
            zones: zones.filter { $0.isLive && $0.key.database == database }.sorted { $0.key.name < $1.key.name }
                .map { ZoneUsage(name: $0.key.name, used: used(zone: $0.id), recount: used(zone: $0.id)) })
        usage.others = usage.zones.reduce(usage.used) { $0 - $1.used }
        return usage
    }

    mutating func know(_ database: DatabaseKey) {
        if allotments[database] == nil {
            allotments[database] = Allotment()
            incarnations[database] = floor
        }
    }

    /// What a request's records may take; nil without terms.
    func allotted(_ command: ModifyRecords) -> QuotaAmounts? {
        guard let terms = command.quota else { return nil }
        let database = command.zone.database
        let known = allotments[database] ?? Allotment()
        return usable(known, used(database), terms).lesser(terms.limit)
    }

    /// What is allotted and not void under the terms.
    private func usable(_ known: Allotment, _ used: QuotaAmounts, _ terms: QuotaTerms) -> QuotaAmounts {
        let held = known.allotted.lesser(used)
        if terms.epoch > known.epoch { return held }
        return QuotaAmounts(
            bytes: known.overdrawn.contains(.bytes) ? held.bytes : known.allotted.bytes,
            records: known.overdrawn.contains(.records) ? held.records : known.allotted.records,
            assets: known.overdrawn.contains(.assets) ? held.assets : known.allotted.assets)
    }

    /// An operation that fails where it does not fit for good.
    mutating func modify(
        _ operation: RecordChange, _ command: ModifyRecords, allotted: QuotaAmounts?, _ need: inout QuotaAmounts
    ) -> ItemOutcome {
        let before = self
        let item = modify(operation, command)
        guard let allotted, let terms = command.quota else { return item }
        let (old, new) = (before.used(command.zone.database), used(command.zone.database))
        let lack = QuotaAmounts(
            bytes: new.bytes > old.bytes ? new.bytes - allotted.bytes : 0,
            records: new.records > old.records ? new.records - allotted.records : 0,
            assets: new.assets > old.assets ? new.assets - allotted.assets : 0
        ).greater(.zero)
        if lack != .zero && terms.isFinal {
            self = before
            return Self.failed(.quotaExceeded)
        }
        need = need.greater(lack)
        return item
    }

    mutating func takeBack(_ command: ModifyRecords, to before: RecordTwin, _ need: QuotaAmounts) -> RecordOutcome {
        let now = time
        self = before
        time = now
        let known = allotments[command.zone.database] ?? Allotment()
        let left = command.quota.map { usable(known, used(command.zone.database), $0) }
        return .needsAllotment(
            QuotaNeed(
                need: need, received: known.received, returned: known.returned,
                holdsVoid: left.map { $0 != known.allotted } ?? false,
                epoch: max(known.epoch, command.quota?.epoch ?? 0)))
    }

    mutating func quota(_ command: QuotaCommand) -> RecordOutcome {
        switch command {
        case .credit(let credit):
            know(credit.database)
            var known = allotments[credit.database] ?? Allotment()
            if credit.epoch > known.epoch {
                known.returned = known.returned + (known.allotted - used(credit.database)).greater(.zero)
                (known.epoch, known.overdrawn) = (credit.epoch, credit.overdrawn)
            } else if credit.epoch == known.epoch {
                known.overdrawn = known.overdrawn.intersection(credit.overdrawn)
            }
            let received = known.received.greater(credit.cumulative)
            if credit.epoch < known.epoch { known.returned = known.returned + (received - known.received) }
            known.received = received
            allotments[credit.database] = known
            return .quota(.credited)
        case .release(let release):
            guard var known = allotments[release.database] else {
                return .quota(.released(received: .zero, returned: .zero))
            }
            known.returned = known.returned + (known.allotted - used(release.database)).greater(.zero)
            allotments[release.database] = known
            return .quota(.released(received: known.received, returned: known.returned))
        case .grant, .deposit, .addTransfer: return .refused(ServiceError(.internalError, "the twin has no ledger"))
        }
    }
}
