import RecordModel
import Testing

/// Where a case works: a user's databases in a container, and a zone.
struct Space: Sendable {
    var home: Home
    var environment = "development"
    var database = "private"
    /// Nil for anonymous callers.
    var session: String?
    var user = ""
    /// Nil where requests name no zone.
    var zone: String?

    /// A new user of the container that cases share.
    /// - Parameter record: the name of a record without fields that is saved.
    init(
        _ door: Door, environment: String = "development", profile: JSONValue = [:], with record: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await self.init(in: Servers.shared.home(for: door), environment: environment, profile: profile)
        if let record { try await save(record, sourceLocation: sourceLocation) }
    }

    init(in home: Home, environment: String = "development", profile: JSONValue = [:]) async throws {
        self.home = home
        self.environment = environment
        let user = try await home.makeUser(profile)
        session = user.session
        self.user = user.recordName
    }

    /// A container of one's own.
    static func own(_ door: Door, schema: String? = nil) async throws -> Space {
        try await Space(in: Home.make(door, schema: schema))
    }

    var container: String { home.container }

    /// Another user of the same container.
    func otherUser(_ profile: JSONValue = [:]) async throws -> Space {
        var other = try await Space(in: home, environment: environment, profile: profile)
        other.database = database
        return other
    }

    /// The same user, in the public database.
    var inPublic: Space { changed { $0.database = "public" } }
    var inProduction: Space { changed { $0.environment = "production" } }
    var anonymous: Space { changed { $0.session = nil } }

    func changed(_ body: (inout Space) -> Void) -> Space {
        var copy = self
        body(&copy)
        return copy
    }

    /// The same user in a custom zone, which is made.
    /// - Parameter record: the name of a record without fields that is saved in it.
    func newZone(
        _ name: String = "zone", with record: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Space {
        let answer = try await call("zones/modify", ["operations": [Self.zoneOperation("create", name)]])
        try #require(try answer.item("zones").code == nil, "\(answer)")
        let space = changed { $0.zone = name }
        if let record { try await space.save(record, sourceLocation: sourceLocation) }
        return space
    }

    static func zoneOperation(_ kind: String, _ name: String) -> JSONValue {
        ["operationType": .string(kind), "zone": ["zoneID": ["zoneName": .string(name)]]]
    }

    var zoneID: JSONValue { ["zoneName": .string(zone ?? "_defaultZone")] }

    func path(_ action: String) -> String { "/database/1/\(container)/\(environment)/\(database)/\(action)" }

    var credentials: [(String, String)] {
        [("ckAPIToken", home.apiTokens[environment] ?? "")] + (session.map { [("ckWebAuthToken", $0)] } ?? [])
    }

    /// The request for an action, to be sent as it is or changed before.
    func request(_ action: String, _ body: JSONValue? = nil, method: String = "POST") -> Call {
        var call = Call(method, path(action))
        call.query = credentials
        call.headers = [("Content-Type", "application/json")]
        call.body = body.map { $0.serialized() } ?? []
        return call
    }

    func send(_ call: Call) async throws -> Answer { try await home.checked(call) }

    func call(_ action: String, _ body: JSONValue, headers: [(String, String)] = []) async throws -> Answer {
        var call = request(action, body)
        call.headers += headers
        return try await send(call)
    }

    func get(_ action: String) async throws -> Answer { try await send(request(action, method: "GET")) }

    /// A body with this space's zone.
    private func zoned(_ body: JSONValue) -> JSONValue {
        zone == nil ? body : JSONValue.object([.init("zoneID", zoneID)]).with(body)
    }
}

// Records.
extension Space {
    /// An operation on a record.
    static func operation(
        _ kind: String, _ name: String?, _ fields: JSONValue? = nil, tag: String? = nil, type: String? = "Item",
        more: JSONValue = [:]
    ) -> JSONValue {
        var record: [JSONValue.Member] = []
        if let name { record.append(.init("recordName", .string(name))) }
        if let type, !kind.lowercased().hasSuffix("delete") { record.append(.init("recordType", .string(type))) }
        if let tag { record.append(.init("recordChangeTag", .string(tag))) }
        if let fields { record.append(.init("fields", fields)) }
        return ["operationType": .string(kind), "record": JSONValue.object(record).with(more)]
    }

    func modify(_ operations: [JSONValue], _ more: JSONValue = [:]) async throws -> Answer {
        try await call("records/modify", zoned(["operations": .array(operations)]).with(more))
    }

    /// One operation's result.
    func modify(_ operation: JSONValue, _ more: JSONValue = [:]) async throws -> JSONValue {
        let answer = try await modify([operation], more)
        return try answer.item()
    }

    /// Saves a record, which must succeed.
    @discardableResult
    func save(
        _ name: String, _ fields: JSONValue = [:], type: String = "Item", more: JSONValue = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> JSONValue {
        let answer = try await modify([Self.operation("forceReplace", name, fields, type: type, more: more)])
        let record = try answer.item(sourceLocation: sourceLocation)
        try #require(record.code == nil, "\(answer)", sourceLocation: sourceLocation)
        return record
    }

    /// Saves records that differ in a field.
    func save(_ field: String, _ values: [(String, JSONValue)]) async throws {
        let operations = values.map { name, value in
            Self.operation("forceReplace", name, .object([.init(field, ["value": value])]))
        }
        let items = try await modify(operations).items()
        for item in items { try #require(item.code == nil, "\(item.text)") }
    }

    func delete(_ name: String) async throws {
        let item = try await modify(Self.operation("forceDelete", name))
        try #require(item["deleted"] == true, "\(item.text)")
    }

    func lookup(_ names: [String], _ more: JSONValue = [:]) async throws -> Answer {
        try await call(
            "records/lookup", zoned(["records": .array(names.map { ["recordName": .string($0)] })]).with(more))
    }

    func lookup(_ name: String, _ more: JSONValue = [:]) async throws -> JSONValue {
        try await lookup([name], more).item()
    }

    func query(
        _ filters: [JSONValue] = [], sort: [JSONValue] = [], type: String = "Item", _ more: JSONValue = [:]
    ) async throws -> Answer {
        try await call(
            "records/query",
            zoned([
                "query": ["recordType": .string(type), "filterBy": .array(filters), "sortBy": .array(sort)]
            ]).with(more))
    }

    /// A query for all records of the type `Item`, with more members.
    func query(_ more: JSONValue) async throws -> Answer {
        try await query([], sort: [], type: "Item", more)
    }

    /// The names that a query finds, sorted.
    func found(_ filters: JSONValue..., sourceLocation: SourceLocation = #_sourceLocation) async throws -> [String] {
        let answer = try await query(filters)
        try #require(answer.status == 200, "\(answer)", sourceLocation: sourceLocation)
        return answer.names.sorted()
    }

    /// A filter on a field.
    static func filter(_ field: String, _ comparator: String, _ value: JSONValue, _ more: JSONValue = [:]) -> JSONValue
    {
        JSONValue.object([
            .init("fieldName", .string(field)), .init("comparator", .string(comparator)),
            .init("fieldValue", ["value": value]),
        ]).with(more)
    }

    /// A page of a zone's feed.
    func changes(_ token: String? = nil, _ more: JSONValue = [:]) async throws -> JSONValue {
        let body = JSONValue.object([.init("zoneID", zoneID)]).with(token.map { ["syncToken": .string($0)] } ?? [:])
        return try await call("changes/zone", ["zones": [body.with(more)]]).item("zones")
    }

    /// A page of the database's feed.
    func databaseChanges(_ token: String? = nil, _ more: JSONValue = [:]) async throws -> JSONValue {
        let body: JSONValue = token.map { ["syncToken": .string($0)] } ?? [:]
        let answer = try await call("changes/database", body.with(more))
        try #require(answer.status == 200, "\(answer)")
        return answer.json
    }
}
