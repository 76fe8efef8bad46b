import Directory
import KeyValueStore
import RecordModel
import Testing

@testable import WebServices

/// The document is a file: these tests keep it from saying other than the code where no answer would show it.
@Suite("The OpenAPI document and the tables of routes")
struct OpenAPIRoutesTests {
    private let document: JSONValue

    init() throws { document = try JSONParser.parse(OpenAPIDocument.json) }

    /// The document's operations below a path, such as `POST records/modify`.
    private func operations(below root: String) -> Set<String> {
        var operations: Set<String> = []
        for path in members(document["paths"]) where path.key.hasPrefix(root) {
            for method in members(path.value) {
                operations.insert("\(method.key.uppercased()) \(path.key.dropFirst(root.count))")
            }
        }
        return operations
    }

    private func members(_ json: JSONValue?) -> [JSONValue.Member] {
        if case .object(let members)? = json { members } else { [] }
    }

    @Test("every action of a database is in the document with its methods, and no other")
    func database() {
        let actions = DatabaseAction.all.flatMap { action in action.methods.map { "\($0) \(action.path)" } }
        #expect(Set(actions) == operations(below: "/database/1/{container}/{environment}/{database}/"))
    }

    @Test("every action of a key-value store is in the document with its methods, and no other")
    func keyValues() {
        let actions = KeyValueAction.allCases.flatMap { action in action.methods.map { "\($0) \(action.rawValue)" } }
        #expect(Set(actions) == operations(below: "/kv/1/{container}/{environment}/"))
    }

    @Test("every action of notifications is in the document with its methods, and no other")
    func notifications() {
        let actions = NotificationAction.allCases.flatMap { action in
            action.methods.map { "\($0) \(action.rawValue)" }
        }
        #expect(Set(actions) == operations(below: "/push/1/{container}/{environment}/"))
    }

    @Test("every route of the administration is in the document, and no other; none stands twice in the table")
    func administration() {
        let routes = AdminRoute.all.map { "\($0.method) \($0.path)" }
        #expect(Set(routes) == operations(below: "/admin/1/"))
        #expect(Set(routes).count == routes.count)
    }

    @Test("every operation of the administration says the least role that the table of permissions has")
    func leastRoles() {
        for route in AdminRoute.all {
            let operation = document["paths"]?["/admin/1/\(route.path)"]?[route.method.lowercased()]
            #expect(operation?["x-least-role"]?.string == route.permission?.role.rawValue, "\(route.path)")
        }
    }

    @Test(
        "bounds and names that the document repeats are those of the code",
        arguments: [
            ("ModifyRecordsRequest", "operations", Limits.operationsMax),
            ("ZonesModifyRequest", "operations", Limits.operationsMax),
            ("ZonesLookupRequest", "zones", Limits.operationsMax),
            ("SubscriptionsLookupRequest", "subscriptions", Limits.operationsMax),
            ("SubscriptionsModifyRequest", "operations", Limits.operationsMax),
            ("ZoneChangesRequest", "zones", Limits.operationsMax),
            ("UsersDiscoverRequest", "lookupInfos", Limits.operationsMax),
            ("UsersLookupRequest", "users", Limits.operationsMax),
            ("QueryRecordsResponse", "records", Limits.recordsPerPageMax),
            ("ZoneChanges", "records", Limits.recordsPerPageMax),
            ("QueryRecordsRequest", "desiredKeys", Limits.desiredKeysMax),
            ("ModifyRecordsRequest", "desiredKeys", Limits.desiredKeysMax),
            ("RecordOperation", "desiredKeys", Limits.desiredKeysMax),
            ("ZoneChangesRequest", "desiredKeys", Limits.desiredKeysMax),
            ("ZoneChangesWanted", "desiredKeys", Limits.desiredKeysMax),
            ("RecordChangesRequest", "desiredKeys", Limits.desiredKeysMax),
            ("KeyValuesSetRequest", "writes", KeyValueLimits.standard.writesMax),
            ("Query", "filterBy", Limits.filtersMax), ("Query", "sortBy", Limits.sortsMax),
            ("KeyValuesGetRequest", "keys", Limits.keysMax),
        ])
    func bounds(schema: String, member: String, bound: Int) throws {
        let property = try #require(document["components"]?["schemas"]?[schema]?["properties"]?[member])
        let array = property["anyOf"]?.array?.first ?? property
        #expect(array["maxItems"] == .integer(Int64(bound)))
    }

    @Test("error codes, comparators and limits have the names that the code has")
    func names() throws {
        let schemas = try #require(document["components"]?["schemas"])
        func names(_ json: JSONValue?) -> [String] { (json?["enum"]?.array ?? []).compactMap(\.string) }
        #expect(names(schemas["ErrorCode"]) == ErrorCode.allCases.map(\.rawValue))
        #expect(names(schemas["Filter"]?["properties"]?["comparator"]) == Comparator.allCases.map(\.rawValue))
        let limits = ContainerLimit.allCases.map(\.rawValue)
        #expect(names(schemas["Limits"]?["properties"]?["limits"]?["items"]?["properties"]?["name"]) == limits)
        #expect(members(schemas["LimitChanges"]?["properties"]).map(\.key) == limits)
    }

    @Test("a limit may be set to what the document says", arguments: ContainerLimit.allCases)
    func range(limit: ContainerLimit) throws {
        let changes = document["components"]?["schemas"]?["LimitChanges"]?["properties"]
        let value = try #require(changes?[limit.rawValue]?["anyOf"]?.array?.first)
        #expect(value["minimum"] == .integer(limit.range.lowerBound))
        #expect(value["maximum"] == .integer(limit.range.upperBound))
    }
}
