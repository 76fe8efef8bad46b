import Authorization
import RecordModel
import RecordStore

/// What records, zones and schemas mean, told naively: arrays that are searched from end to end.
struct RecordTwin {
    struct Row {
        var id: Int
        var zone: Int
        var name: String
        var type: String
        var sequence: UInt64
        var created: Stamp
        var modified: Stamp
        var isDeleted = false
        var fields = Fields()
        /// The references with an action, and the sequence each was made at.
        var edges: [Edge: UInt64] = [:]
    }

    struct Edge: Hashable {
        var target: String
        var action: Reference.Action
    }

    struct Zone {
        var id: Int
        var key: ZoneKey
        var incarnation: UInt64
        var sequence: UInt64 = 0
        var isLive = true
        var floor: UInt64 = 0
        var changedAt = 0
    }

    struct Remembered {
        var database: DatabaseKey
        var key: IdempotencyKey
        var outcome: RecordOutcome
        var names: [String]
        var expires: Int64
    }

    enum Job {
        case cascade(zone: Int, target: String, before: UInt64, caller: Caller, versionsMax: UInt64)
        case scrub(id: Int)
    }

    /// The shard's time, and what the command at hand stamps its changes with.
    var time: Int64 = 0
    var stamp: Int64 = 0
    var floor: UInt64 = 1
    /// What the schema before the present one had that is as old in this one. A field that went and came back is in
    /// both, and not in between.
    var between = Schema()
    /// Of databases that something was written to.
    var incarnations: [DatabaseKey: UInt64] = [:]
    var version: UInt64 = 0
    var generation: UInt64 = 0
    var schema = Schema()
    var rows: [Row] = []
    var zones: [Zone] = []
    var lastZone = 0
    /// Counts changes of custom zones.
    var changes = 0
    var lastJob = 0
    var jobs: [Job] = []
    /// Removed types (with an empty field) and fields, and the job that cleans records of them.
    var stray: [(type: String, field: String, job: Int)] = []
    var remembered: [Remembered] = []
    /// What the rows of what is remembered take, which the twin has not.
    var rememberedBytes: [DatabaseKey: Int64] = [:]
    /// What rows of indexes take that the schema has lost, by zone.
    var dropped: [Int: Int64] = [:]
    /// What databases were allotted; those that are not here were never written to.
    var allotments: [DatabaseKey: Allotment] = [:]
    /// Earlier versions of records, in the order in which they were left.
    var versions: [Version] = []

    func zone(_ key: ZoneKey) -> Int? { zones.lastIndex { $0.key == key && $0.isLive } }

    func type(of row: Row) -> RecordType? { schema.type(named: row.type) }

    /// The place of a zone's row of a name, whatever its life.
    func row(_ name: String, zone: Int) -> Int? {
        rows.firstIndex { $0.zone == zones[zone].id && $0.name == name }
    }

    func live(_ name: String, zone: Int) -> Int? {
        row(name, zone: zone).flatMap { rows[$0].isDeleted || type(of: rows[$0]) == nil ? nil : $0 }
    }

    /// What is shown of a row: fields that the schema has, with values of their types.
    func visible(_ row: Row) -> Fields { visible(row.fields, type: row.type) }

    func visible(_ fields: Fields, type: String, in other: Schema? = nil) -> Fields {
        Fields(
            fields.all.filter { field in
                if field.name == "___parent" { return true }
                guard let type = (other ?? schema).type(named: type)?.field(named: field.name)?.type else {
                    return false
                }
                return Self.fits(field.value, type)
            })
    }

    static func fits(_ value: FieldValue, _ type: FieldType) -> Bool {
        if case .sealed = value { return type.isEncrypted }
        if type.isEncrypted { return false }
        if case .list(_, let members) = value {
            return type.isList && members.allSatisfy { $0.type.scalar == type.scalar }
        }
        return !type.isList && value.type.scalar == type.scalar
    }

    func record(_ row: Row, incarnation: UInt64) -> RecordModel.Record {
        RecordModel.Record(
            name: row.name, type: row.type,
            changeTag: ChangeTag(incarnation: incarnation, sequence: row.sequence),
            created: row.created, modified: row.modified, fields: visible(row))
    }

    /// All that a reader of a zone may see, by name.
    func records(_ zone: Int) -> [String: RecordModel.Record] {
        var found: [String: RecordModel.Record] = [:]
        for row in rows where row.zone == zones[zone].id && !row.isDeleted && type(of: row) != nil {
            found[row.name] = record(row, incarnation: zones[zone].incarnation)
        }
        return found
    }

    // MARK: Zones

    mutating func makeZone(_ key: ZoneKey) -> Int {
        let earlier = zones.filter { $0.key == key }.map(\.incarnation).max() ?? 0
        know(key.database)
        lastZone += 1
        let least = max(floor, incarnations[key.database] ?? 0)
        zones.append(Zone(id: lastZone, key: key, incarnation: max(least, earlier + 1)))
        return zones.count - 1
    }

    mutating func touch(_ zone: Int) {
        guard !zones[zone].key.isDefault else { return }
        changes += 1
        zones[zone].changedAt = changes
    }

    mutating func observe(_ command: Int64, stepMax: Int64 = ShardClock.stepMax) {
        stamp = ShardClock.stamp(of: command, notBefore: time)
        time = ShardClock.time(time, after: command, stepMax: stepMax)
    }

    mutating func modifyZone(_ command: ModifyZone) -> RecordOutcome {
        observe(command.time)
        if let earlier = earlier(command.idempotency, command.zone.database) { return earlier }
        guard version >= command.schemaVersion else { return .needsSchema(installed: version) }
        guard command.zone.database.scope == .private else { return Self.refused(.badRequest) }
        guard command.caller.user == command.zone.database.owner else { return Self.refused(.accessDenied) }
        guard !command.zone.isDefault else { return Self.refused(.badRequest) }
        var outcome = RecordOutcome.zone(.deleted)
        if command.kind == .create {
            var place = zone(command.zone)
            if place == nil {
                place = makeZone(command.zone)
                touch(zones.count - 1)
            }
            let found = zones[place ?? 0]
            outcome = .zone(
                .exists(
                    ZoneState(name: found.key.name, incarnation: found.incarnation, sequence: found.sequence)))
        } else {
            if let place = zone(command.zone) {
                touch(place)
                zones[place].isLive = false
            } else {
                outcome = Self.refused(.zoneNotFound)
            }
        }
        remember(outcome, command.idempotency, command.zone.database)
        return outcome
    }

    mutating func restore(_ incarnation: UInt64) {
        floor = max(floor, incarnation)
        incarnations = incarnations.mapValues { max($0, incarnation) }
        for place in zones.indices where zones[place].isLive {
            zones[place].incarnation = max(zones[place].incarnation, incarnation)
        }
    }

    // MARK: Retries

    func earlier(_ key: IdempotencyKey?, _ database: DatabaseKey) -> RecordOutcome? {
        guard let key else { return nil }
        let found = remembered.first {
            $0.database == database && $0.key.key == key.key && $0.key.caller == key.caller
                && $0.key.position == key.position
        }
        guard let found else { return nil }
        if found.key.bodyHash != key.bodyHash { return Self.refused(.badRequest) }
        return found.outcome
    }

    /// What a repeat is told: the outcome of then, with what the records hold now.
    func earlier(_ command: ModifyRecords) -> RecordOutcome? {
        guard let outcome = earlier(command.idempotency, command.zone.database) else { return nil }
        switch outcome {
        case .records(let items): return .records(told(items, command))
        case .atomicFailure(let items): return .atomicFailure(told(items, command))
        default: return outcome
        }
    }

    private func told(_ items: [ItemOutcome], _ command: ModifyRecords) -> [ItemOutcome] {
        let names = remembered.first {
            $0.database == command.zone.database && $0.key.key == command.idempotency?.key
                && $0.key.caller == command.idempotency?.caller && $0.key.position == command.idempotency?.position
        }?.names
        return command.operations.enumerated().map { place, operation in
            guard let names else { return Self.failed(.badRequest) }
            let isInPlace = place < names.count && names[place] == operation.recordName
            guard let known = isInPlace ? place : names.firstIndex(of: operation.recordName) else {
                return Self.failed(.badRequest)
            }
            let now = zone(command.zone).flatMap { zone in
                live(operation.recordName, zone: zone).flatMap { shown(rows[$0], command, zone) }
            }
            switch items[known] {
            case .saved(var saved):
                let sent = operation.fields.map(\.name)
                let isMore = now?.fields.all.contains { !sent.contains($0.name) } ?? false
                saved.mergedFields = now?.changeTag == saved.changeTag && isMore ? now?.fields : nil
                return .saved(saved)
            case .failed(let error, _):
                return .failed(error, serverRecord: [.conflict, .exists].contains(error.code) ? now : nil)
            case .deleted: return .deleted
            }
        }
    }

    mutating func remember(
        _ outcome: RecordOutcome, _ key: IdempotencyKey?, _ database: DatabaseKey, names: [String] = []
    ) {
        guard let key else { return }
        know(database)
        let kept: RecordOutcome =
            switch outcome {
            case .records(let items): .records(items.map(\.withoutValues))
            case .atomicFailure(let items): .atomicFailure(items.map(\.withoutValues))
            default: outcome
            }
        remembered.append(
            Remembered(database: database, key: key, outcome: kept, names: names, expires: time + 86_400_000))
    }

    /// Reasons are not compared.
    static func refused(_ code: ErrorCode) -> RecordOutcome { .refused(ServiceError(code, "")) }
}

extension RecordOutcome {
    /// The outcome without the words of its errors.
    var withoutReasons: RecordOutcome {
        switch self {
        case .records(let items): .records(items.map(\.withoutReason))
        case .atomicFailure(let items): .atomicFailure(items.map(\.withoutReason))
        case .refused(let error): .refused(ServiceError(error.code, ""))
        default: self
        }
    }
}

extension ItemOutcome {
    fileprivate var withoutValues: ItemOutcome {
        switch self {
        case .failed(let error, _): return .failed(error, serverRecord: nil)
        case .deleted: return .deleted
        case .saved(var saved):
            saved.mergedFields = nil
            return .saved(saved)
        }
    }

    fileprivate var withoutReason: ItemOutcome {
        guard case .failed(let error, let record) = self else { return self }
        return .failed(ServiceError(error.code, ""), serverRecord: record)
    }
}
