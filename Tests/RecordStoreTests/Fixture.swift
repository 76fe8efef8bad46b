import Authorization
import GRDB
import RaftCore
import RecordModel
import RecordStore
import Wire

/// A shard in memory with one schema, and short words for commands.
struct Fixture {
    static let ann = Caller(user: "_ann")
    static let bob = Caller(user: "_bob")
    static let publicData = DatabaseKey(
        container: "app", environment: .production, scope: .public, owner: DatabaseKey.publicOwner)
    static let annsData = DatabaseKey(container: "app", environment: .production, scope: .private, owner: "_ann")
    static let publicZone = ZoneKey(database: publicData, name: ZoneKey.defaultZoneName)
    static let annsDefault = ZoneKey(database: annsData, name: ZoneKey.defaultZoneName)
    static let work = ZoneKey(database: annsData, name: "work")

    static func indexed(_ name: String, _ type: FieldType) -> FieldDefinition {
        FieldDefinition(name: name, type: type, indexes: [.queryable, .sortable])
    }

    static let note = RecordType(
        name: "Note",
        fields: [
            indexed("text", FieldType(.string)), indexed("rank", FieldType(.int64)),
            indexed("score", FieldType(.double)), indexed("due", FieldType(.timestamp)),
            indexed("data", FieldType(.bytes)), indexed("list", FieldType(.reference)),
            FieldDefinition(name: "tags", type: FieldType(.string, isList: true), indexes: .queryable),
            FieldDefinition(name: "plain", type: FieldType(.string)),
            FieldDefinition(name: "only", type: FieldType(.string), indexes: .queryable),
            FieldDefinition(name: "sealed", type: FieldType(.string, isEncrypted: true)),
            indexed("___recordID", FieldType(.reference)), indexed("___createTime", FieldType(.timestamp)),
            indexed("___modTime", FieldType(.timestamp)), indexed("___createdBy", FieldType(.reference)),
            FieldDefinition(name: "___etag", type: FieldType(.string), indexes: .queryable),
        ],
        grants: [
            Grant(role: "_world", permissions: .read), Grant(role: "_icloud", permissions: .create),
            Grant(role: "_creator", permissions: .write),
        ])
    static let secret = RecordType(
        name: "Secret", fields: [indexed("text", FieldType(.string)), indexed("___recordID", FieldType(.reference))],
        grants: [
            Grant(role: "_icloud", permissions: .create), Grant(role: "_creator", permissions: [.read, .write]),
        ])
    static let bare = RecordType(name: "Bare", fields: [FieldDefinition(name: "text", type: FieldType(.string))])
    static let users = RecordType(
        name: "Users",
        fields: [
            FieldDefinition(name: "roles", type: FieldType(.int64, isList: true)),
            FieldDefinition(name: "nick", type: FieldType(.string)),
        ], grants: [Grant(role: "_creator", permissions: .write), Grant(role: "_world", permissions: .read)])
    static let schema = Schema(types: [note, secret, bare])
    static let schemaWithUsers = Schema(types: [note, secret, bare, users])

    let queue: DatabaseQueue
    let tables = RecordTables()

    /// - Parameter zone: one that is made.
    init(installs: Bool = true, zone: ZoneKey? = nil) throws {
        queue = try DatabaseQueue()
        try queue.write { try RecordTables.create(in: $0) }
        if installs { _ = try apply(Self.install(1)) }
        if let zone { try self.zone(.create, zone) }
    }

    static func install(_ version: UInt64, _ schema: Schema = schema, generation: UInt64 = 0) -> RecordCommand {
        .installSchema(
            InstallSchema(
                container: "app", environment: .production, version: version, generation: generation, schema: schema))
    }

    /// Works off all maintenance in parts of some rows; returns how many commands that took.
    @discardableResult
    func maintain(time: Int64 = 0, rows: UInt64 = 500, retention: Retention = Retention()) throws -> Int {
        var count = 0
        while true {
            count += 1
            let outcome = try apply(.maintain(Maintain(time: time, rowsMax: rows, retention: retention)))
            if outcome == .maintained(hasMore: false) { return count }
        }
    }

    /// Sets the shard's time, which commands move by small steps only.
    func setTime(_ time: Int64) throws {
        try queue.write { try $0.execute(sql: "UPDATE record_state SET time = ?", arguments: [time]) }
    }

    @discardableResult
    func apply(_ command: RecordCommand) throws -> RecordOutcome {
        // Through its bytes, as the log would carry it.
        let decoded = try RecordCommand(decodingStrictly: command.encoded())
        let outcome = try queue.write { try tables.apply(decoded, in: $0) }
        return try RecordOutcome(decoding: outcome.encoded())
    }

    /// Has a part of maintenance done at a feature level.
    /// - Returns: whether the leader goes on because the shard's time is behind.
    func maintain(_ time: Int64, at level: FeatureLevel) throws -> Bool {
        try queue.write { db in
            let transaction = try tables.begin(in: db, level: level)
            let command = RecordCommand.maintain(Maintain(time: time))
            _ = try transaction.apply(command)
            try transaction.finish()
            return transaction.isToGoOn(command)
        }
    }

    func modify(
        _ zone: ZoneKey, by caller: Caller = ann, time: Int64 = 1000, atomic: Bool = false, version: UInt64 = 1,
        idempotency: IdempotencyKey? = nil, _ operations: RecordChange...
    ) throws -> RecordOutcome {
        try apply(
            .modifyRecords(
                ModifyRecords(
                    zone: zone, schemaVersion: version, caller: caller, time: time, isAtomic: atomic,
                    idempotency: idempotency, operations: operations)))
    }

    /// The only item of a request with one operation.
    func one(
        _ zone: ZoneKey, by caller: Caller = ann, time: Int64 = 1000, _ operation: RecordChange
    ) throws -> ItemOutcome? {
        guard case .records(let items) = try modify(zone, by: caller, time: time, operation) else { return nil }
        return items.first
    }

    @discardableResult
    func zone(_ kind: ModifyZone.Kind, _ zone: ZoneKey, by caller: Caller = ann) throws -> RecordOutcome {
        try apply(.modifyZone(ModifyZone(kind, zone: zone, caller: caller, time: 1000)))
    }

    func lookup(_ name: String, in zone: ZoneKey, by caller: Caller = ann) throws -> RecordModel.Record? {
        let found = try queue.read { try RecordReads(tables, in: $0).lookup([name], zone: zone, caller: caller) }
        guard case .found(let items) = found, case .record(let record) = items.first else { return nil }
        return record
    }

    func query(
        _ zone: ZoneKey, _ query: Query, by caller: Caller = ann, version: UInt64 = 1, limit: Int = 200,
        cursor: [UInt8]? = nil
    ) throws -> ReadOutcome<QueryPage> {
        try queue.read {
            try RecordReads(tables, in: $0).query(
                RecordQuery(
                    zone: zone, schemaVersion: version, caller: caller, query: query, limit: limit, cursor: cursor))
        }
    }

    /// The names of all records that a query finds, page by page.
    func names(
        _ zone: ZoneKey, _ query: Query, by caller: Caller = ann, version: UInt64 = 1, limit: Int = 200
    ) throws -> [String] {
        var names: [String] = []
        var cursor: [UInt8]?
        repeat {
            guard
                case .found(let page) = try self.query(
                    zone, query, by: caller, version: version, limit: limit, cursor: cursor)
            else {
                return ["refused"]
            }
            names += page.records.map(\.name)
            cursor = page.next
        } while cursor != nil
        return names
    }

    func stateBytes() throws -> [[UInt8]] {
        var rows: [[UInt8]] = []
        try queue.read { try RecordTables.stateHash(in: $0) { rows.append($0) } }
        return rows
    }

    func count(_ sql: String) throws -> Int { try queue.read { try Int.fetchOne($0, sql: sql) ?? 0 } }
}

extension RecordChange {
    static func make(_ kind: Kind, _ name: String, _ fields: [(String, FieldValue?)] = [], tag: ChangeTag? = nil)
        -> Self
    {
        RecordChange(
            kind, name, type: "Note", changeTag: tag,
            fields: fields.map { FieldChange(name: $0.0, value: $0.1) })
    }
}

extension ItemOutcome {
    var saved: SavedRecord? { if case .saved(let record) = self { record } else { nil } }
    var error: ServiceError? { if case .failed(let error, _) = self { error } else { nil } }
    var serverRecord: RecordModel.Record? { if case .failed(_, let record) = self { record } else { nil } }
}

extension RecordOutcome {
    var items: [ItemOutcome] {
        switch self {
        case .records(let items), .atomicFailure(let items): items
        default: []
        }
    }
    var codes: [ErrorCode?] { items.map(\.error?.code) }
    var refusal: ServiceError? { if case .refused(let error) = self { error } else { nil } }
}

/// A seeded generator (SplitMix64).
struct Random: RandomNumberGenerator {
    private var numbers: SplitMix64

    init(_ seed: UInt64) { numbers = SplitMix64(seed: seed) }
    mutating func next() -> UInt64 { numbers.next() }
}

/// What a test could not go on with.
struct Unexpected: Error {
    var what: String
    init(_ what: String) { self.what = what }
}
