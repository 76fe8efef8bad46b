import Authorization
import GRDB
import RecordModel
import RecordStore

/// A private database with records in three zones, and the same records as the twin keeps them.
struct QueryWorld {
    let shard: Fixture
    var records: [TwinRecord] = []
    /// After the zones were made, whose time shard time does not fall behind.
    private var step: Int64 = 1_000

    static let zones = ["a", "b", ZoneKey.defaultZoneName]
    static let searchable = ["text", "body", "notes"]
    static func key(_ zone: String) -> ZoneKey { ZoneKey(database: Fixture.annsData, name: zone) }

    /// All fields with all the indexes that their types can have.
    static let fields: [FieldDefinition] = {
        func field(
            _ name: String, _ scalar: ScalarType, isList: Bool = false, _ more: RecordModel.IndexOptions = []
        ) -> FieldDefinition {
            let indexes: RecordModel.IndexOptions = isList ? [.queryable] : [.queryable, .sortable]
            return FieldDefinition(
                name: name, type: FieldType(scalar, isList: isList), indexes: indexes.union(more))
        }
        return [
            field("text", .string, .searchable), field("rank", .int64), field("score", .double),
            field("due", .timestamp), field("data", .bytes), field("list", .reference), field("place", .location),
            field("half", .int64), field("tags", .string, isList: true), field("nums", .int64, isList: true),
            field("links", .reference, isList: true), field("notes", .string, isList: true, .searchable),
            FieldDefinition(name: "body", type: FieldType(.string), indexes: .searchable),
            field("___recordID", .reference), field("___createTime", .timestamp), field("___modTime", .timestamp),
            field("___createdBy", .reference), field("___modifiedBy", .reference), field("___parent", .reference),
            FieldDefinition(name: "___etag", type: FieldType(.string), indexes: .queryable),
        ]
    }()

    static func schema(_ fields: [FieldDefinition] = fields) -> Schema {
        Schema(types: [RecordType(name: "Note", fields: fields), Fixture.bare])
    }

    init(schema: Schema = schema()) throws {
        shard = try Fixture(installs: false)
        _ = try shard.apply(Fixture.install(1, schema))
        for zone in Self.zones where zone != ZoneKey.defaultZoneName { _ = try shard.zone(.create, Self.key(zone)) }
    }

    /// Random saves and deletions.
    mutating func write(_ count: Int, _ random: inout Random) throws {
        var models: [String: TwinRecord] = [:]
        for record in records { models[record.zone + "/" + record.name] = record }
        let tables = shard.tables
        try shard.queue.write { db in
            let transaction = try tables.begin(in: db)
            for _ in 0..<count {
                step += 1
                let zone = Self.zones.randomElement(using: &random) ?? "a"
                let name = "r\(Int.random(in: 0..<60, using: &random))"
                let kind: RecordChange.Kind = Int.random(in: 0..<6, using: &random) == 0 ? .forceDelete : .forceUpdate
                let changes = kind == .forceDelete ? [] : QueryInputs.fields(&random)
                let command = ModifyRecords(
                    zone: Self.key(zone), schemaVersion: 1, caller: Fixture.ann, time: step,
                    operations: [.make(kind, name, changes)])
                let item = try transaction.apply(.modifyRecords(command)).items.first
                let id = zone + "/" + name
                guard let saved = item?.saved else {
                    models[id] = nil
                    continue
                }
                var fields = models[id]?.fields ?? Fields()
                for (field, value) in changes { fields[field] = value }
                func user(_ name: String) -> FieldValue { .reference(Reference(recordName: name)) }
                fields["___recordID"] = user(name)
                fields["___createTime"] = .timestamp(saved.created.timestamp)
                fields["___modTime"] = .timestamp(saved.modified.timestamp)
                fields["___createdBy"] = user(saved.created.user)
                fields["___modifiedBy"] = user(saved.modified.user)
                fields["___etag"] = .string(saved.changeTag.description)
                models[id] = TwinRecord(zone: zone, name: name, fields: fields)
            }
            try transaction.finish()
        }
        records = models.keys.sorted().compactMap { models[$0] }
    }

    /// The records that the twin finds.
    func expected(_ query: Query, zone: String? = nil) -> [TwinRecord] {
        records.filter { record in
            (zone == nil || record.zone == zone)
                && query.filters.allSatisfy { QueryTwin.holds($0, record.fields, searchable: Self.searchable) }
        }
    }

    /// The records that the store finds, page by page, as zone and name; nil where it refuses.
    func found(
        _ query: Query, zone: String, limit: Int, tuning: QueryTuning = QueryTuning()
    ) throws -> (names: [String], refusal: ServiceError?) {
        var names: [String] = []
        var cursor: [UInt8]?
        var pages = 0
        repeat {
            let request = RecordQuery(
                zone: Self.key(zone), schemaVersion: 1, caller: Fixture.ann, query: query, limit: limit,
                cursor: cursor, explains: pages == 0)
            // A plain `read` would have every statement compiled anew.
            let outcome = try shard.queue.unsafeRead { db in
                try QueryTuning.$current.withValue(tuning) { try RecordReads(shard.tables, in: db).query(request) }
            }
            switch outcome {
            case .found(let page):
                guard page.records.count <= limit else { return (["a page of \(page.records.count)"], nil) }
                names += page.records.map { zone + "/" + $0.name }
                cursor = page.next
            case .refused(let error): return (names, error)
            case .needsSchema: return (["needs schema"], nil)
            }
            pages += 1
        } while cursor != nil && pages < 10_000
        return (cursor == nil ? names : ["without end"], nil)
    }

    /// The same over all zones.
    func found(
        _ query: Query, limit: Int, tuning: QueryTuning = QueryTuning()
    ) throws -> (names: [String], refusal: ServiceError?) {
        var names: [String] = []
        var cursor: [UInt8]?
        var last: [UInt8] = []
        var pages = 0
        repeat {
            let request = DatabaseQuery(
                database: Fixture.annsData, schemaVersion: 1, caller: Fixture.ann, query: query, limit: limit,
                cursor: cursor)
            // A plain `read` would have every statement compiled anew.
            let outcome = try shard.queue.unsafeRead { db in
                try QueryTuning.$current.withValue(tuning) { try RecordReads(shard.tables, in: db).query(request) }
            }
            switch outcome {
            case .found(let page):
                for item in page.items {
                    guard last.lexicographicallyPrecedes(item.position) else { return (["positions descend"], nil) }
                    last = item.position
                }
                guard page.items.count <= limit else { return (["a page of \(page.items.count)"], nil) }
                names += page.items.map { $0.zone + "/" + $0.record.name }
                cursor = page.next
            case .refused(let error): return (names, error)
            case .needsSchema: return (["needs schema"], nil)
            }
            pages += 1
        } while cursor != nil && pages < 10_000
        return (cursor == nil ? names : ["without end"], nil)
    }
}
