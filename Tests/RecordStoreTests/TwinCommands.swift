import Authorization
import RecordModel
import RecordStore

/// Random commands that mostly make sense to the state they meet.
struct TwinCommands {
    var random: Random
    var time: Int64 = 0
    var isOftenMaintained = true
    var keepsVersions = false
    private var epoch: UInt64 = 0
    private let names = (0..<14).map { "r\($0)" }
    private let zones =
        [Fixture.annsDefault, Fixture.publicZone]
        + ["work", "home"].map { ZoneKey(database: Fixture.annsData, name: $0) }
    private static let photos = [
        FieldDefinition(name: "photo", type: FieldType(.asset)),
        FieldDefinition(name: "photos", type: FieldType(.asset, isList: true)),
    ]
    private let callers = [Fixture.ann, Fixture.ann, Fixture.bob, Caller(user: nil)]

    init(_ seed: UInt64) { random = Random(seed) }

    private mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &random)]
    }

    mutating func next(_ twin: RecordTwin) -> RecordCommand {
        time += Int64.random(in: -20...100, using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<2: return install(twin)
        case 2..<8: return modifyZone(twin)
        case 8..<(isOftenMaintained ? 14 : 10): return .maintain(maintain(rows: 10_000))
        case 14..<18: return .quota(quota(twin))
        default: return .modifyRecords(modifyRecords(twin))
        }
    }

    /// Mostly about as much as is used.
    private mutating func quota(_ twin: RecordTwin) -> QuotaCommand {
        let key = pick([Fixture.publicData, Fixture.annsData])
        if chance(30) { epoch += 1 }
        let epoch = chance(8) && self.epoch > 0 ? self.epoch - 1 : self.epoch
        if chance(6) { return .release(QuotaRelease(database: key)) }
        let allotment = twin.allotments[key] ?? Allotment()
        let lacking = (twin.used(key) - allotment.allotted).greater(.zero)
        let more = QuotaAmounts(
            bytes: Int64.random(in: -100...600, using: &random), records: Int64.random(in: -1...4, using: &random),
            assets: Int64.random(in: -4...12, using: &random))
        return .credit(
            QuotaCredit(
                database: key, cumulative: (allotment.received + lacking + more).greater(.zero), epoch: epoch,
                overdrawn: chance(4) ? pick([.bytes, .records, .assets, .all]) : []))
    }

    mutating func maintain(rows: UInt64) -> Maintain {
        var retention = Retention()
        if chance(3) { retention.tombstonesMax = UInt64.random(in: 0...6, using: &random) }
        if chance(3) { retention.tombstoneAgeMax = Int64.random(in: 0...3000, using: &random) }
        if chance(60) { time += 86_400_000 }
        var command = Maintain(time: time, rowsMax: rows, retention: retention)
        if keepsVersions && chance(6) {
            let age = Int64.random(in: 0...3000, using: &random)
            command.versions = [VersionAge(container: "app", ageMax: age, epoch: 0)]
        }
        return command
    }

    private mutating func install(_ twin: RecordTwin) -> RecordCommand {
        let generation = chance(8) ? twin.generation + 1 : twin.generation
        if chance(6) { return Fixture.install(twin.version, schema(), generation: generation) }
        var (version, next) = (twin.version, twin.schema)
        for _ in 0..<Int.random(in: 1...2, using: &random) {
            version += 1
            next = schema().dated(version, after: next)
        }
        return Fixture.install(version, next, generation: generation)
    }

    /// The fixture's schema without some fields, with some of other types, with other indexes.
    mutating func schema() -> Schema {
        var note = Fixture.note
        note.fields = note.fields.filter { !chance($0.name == "list" ? 40 : 12) }
        for place in note.fields.indices where !note.fields[place].isSystem {
            let field = note.fields[place]
            if chance(3) { note.fields[place].indexes = pick([[], .queryable, [.queryable, .sortable]]) }
            if field.type.isEncrypted { note.fields[place].indexes = [] }
            if field.name == "plain" && chance(2) {
                note.fields[place].type = pick([FieldType(.int64), FieldType(.double)])
            }
            if field.name == "due" && chance(3) { note.fields[place].type = FieldType(.int64) }
        }
        note.fields += Self.photos.filter { _ in !chance(6) }
        note.fields.sort { $0.name < $1.name }
        var types = [note, Fixture.bare, Fixture.users]
        if !chance(3) { types.append(Fixture.secret) }
        if chance(10) { types.removeFirst() }
        return Schema(types: types)
    }

    private mutating func modifyZone(_ twin: RecordTwin) -> RecordCommand {
        let kind: ModifyZone.Kind = chance(4) ? .delete : .create
        return .modifyZone(
            ModifyZone(
                kind, zone: chance(12) ? pick(zones) : pick(Array(zones.suffix(2))),
                caller: chance(10) ? Fixture.bob : Fixture.ann, time: time,
                schemaVersion: chance(10) ? twin.version + 1 : twin.version, idempotency: idempotency()))
    }

    private mutating func idempotency() -> IdempotencyKey? {
        guard chance(6) else { return nil }
        var key = [UInt8](repeating: UInt8.random(in: 0...30, using: &random), count: 16)
        key[6] = 0x40
        return IdempotencyKey(
            key: key, bodyHash: [UInt8](repeating: UInt8.random(in: 0...1, using: &random), count: 32), caller: "c",
            position: UInt64.random(in: 0...1, using: &random))
    }

    private mutating func modifyRecords(_ twin: RecordTwin) -> ModifyRecords {
        let zone = pick(zones)
        let count = chance(3) ? Int.random(in: 0...6, using: &random) : 1
        let caller = zone.database.scope == .public || chance(12) ? pick(callers) : Fixture.ann
        let operations = (0..<count).map { _ in operation(twin, zone) }
        var command = ModifyRecords(
            zone: zone, schemaVersion: chance(40) ? twin.version + 1 : twin.version, caller: caller, time: time,
            isAtomic: Bool.random(using: &random), idempotency: idempotency(),
            quota: !keepsVersions && chance(2) ? terms(twin, zone.database) : nil,
            operations: operations)
        if keepsVersions && chance(2) { command.versionsMax = UInt64.random(in: 1...3, using: &random) }
        return command
    }

    private mutating func terms(_ twin: RecordTwin, _ database: DatabaseKey) -> QuotaTerms {
        var terms = QuotaTerms(epoch: epoch, isFinal: Bool.random(using: &random))
        if chance(4) { terms.limit = twin.used(database) + QuotaAmounts(bytes: 300, records: 1, assets: 2) }
        return terms
    }

    private mutating func operation(_ twin: RecordTwin, _ zone: ZoneKey) -> RecordChange {
        let kinds: [RecordChange.Kind] =
            RecordChange.Kind.allCases + [.forceUpdate, .forceUpdate, .forceUpdate, .forceReplace, .create]
        let kind = pick(kinds)
        let name = chance(12) ? pick(["_ann", "_bob", "_x"]) : pick(names)
        let stored = twin.zone(zone).flatMap { place in
            twin.live(name, zone: place).map { (twin.zones[place].incarnation, twin.rows[$0]) }
        }
        var tag = chance(4) ? ChangeTag(incarnation: 1, sequence: 1) : nil
        if let (incarnation, row) = stored, !chance(8) {
            tag = ChangeTag(incarnation: incarnation, sequence: chance(4) ? row.sequence + 1 : row.sequence)
        }
        var type: String? = name.hasPrefix("_") ? "Users" : pick(["Note", "Note", "Note", "Secret", "Bare"])
        if let stored, !chance(20) { type = stored.1.type }
        if chance(20) { type = pick([nil, "Nothing", "Users", "Note"]) }
        let isDeletion = kind == .delete || kind == .forceDelete
        return RecordChange(
            kind, name, type: type, changeTag: tag, fields: isDeletion ? [] : fields(twin, type, zone))
    }

    private mutating func fields(_ twin: RecordTwin, _ type: String?, _ zone: ZoneKey) -> [RecordChange.FieldChange] {
        let definition = type.flatMap(twin.schema.type)
        var changes: [RecordChange.FieldChange] = []
        for field in definition?.fields ?? [] where !field.isSystem && chance(2) {
            if field.name == "list" && !chance(2) { continue }
            changes.append(.init(name: field.name, value: chance(6) ? nil : value(field.type, zone)))
        }
        if chance(12) {
            changes.append(.init(name: "___parent", value: chance(3) ? nil : value(FieldType(.reference), zone)))
        }
        if chance(40) { changes.append(.init(name: pick(["nothing", "rank", "plain"]), value: .string("x"))) }
        return changes
    }

    private mutating func value(_ type: FieldType, _ zone: ZoneKey) -> FieldValue {
        let number = Int64.random(in: -2...3, using: &random)
        if type.isEncrypted { return chance(8) ? .bytes([1]) : .sealed([UInt8(number + 2)]) }
        if type.isList {
            let element = FieldType(type.scalar)
            return .list(type.scalar, (0..<Int(number + 2)).map { _ in value(element, zone) })
        }
        switch type.scalar {
        case .int64: return .int64(number)
        case .double: return .double(Double(number) / 2)
        case .timestamp: return .timestamp(number)
        case .bytes: return .bytes([UInt8](repeating: 0xFF, count: Int(number + 2)))
        case .reference:
            let action = pick([Reference.Action.none, .deleteSelf, .deleteSelf, .validate])
            let target = chance(30) ? ZoneID(name: "other") : chance(4) ? ZoneID(name: zone.name) : nil
            return .reference(Reference(recordName: pick(names), zone: target, action: action))
        case .asset:
            let bytes = UInt64(number + 2)
            return .asset(AssetReference(sha256: [UInt8](repeating: UInt8(bytes), count: 32), size: bytes))
        default: return .string(pick(["", "a", "ab", "b", "\u{E9}", "a\0", "\u{10FFFF}z"]))
        }
    }
}
