import Cluster
import Directory
import RecordModel
import RecordStore
import Service
import TestSupport
import Testing
import Wire

@testable import WebServices

@Suite("What a change of a schema takes from records, and how it comes to shards")
struct SchemaLossTests {
    private static let at = "container=\(ConsoleWorld.container)"

    private static func schema(_ fields: String) -> String {
        "DEFINE SCHEMA RECORD TYPE Note (\(fields)); RECORD TYPE Other (x STRING);"
    }

    private static func save(_ name: String, _ fields: String, in world: ConsoleWorld) async throws {
        let saved = try await world.token(
            "POST", "/database/1/\(ConsoleWorld.container)/development/public/records/modify",
            #"{"operations": [{"operationType": "create", "record": {"recordType": "Note", "recordName": "\#(name)", "fields": {\#(fields)}}}]}"#
        )
        #expect(saved.status == 200)
    }

    @Test("a reset has all shards empty the environment, and waits for no other request under the new schema")
    func emptied() async throws {
        let world = try await ConsoleWorld()
        try await world.admin("POST", "schema?\(Self.at)", Self.schema("text STRING"))
        try await Self.save("a", "", in: world)
        try await world.admin("POST", "schema/reset?\(Self.at)&confirm=\(ConsoleWorld.container)")
        let again = try await world.admin("POST", "schema/reset?\(Self.at)&dryRun=true")
        #expect(again["records"] == .integer(0))
        try await world.node.stop()
    }

    @Test("a shard begins to build a new index before anybody asks for it")
    func spread() async throws {
        let world = try await ConsoleWorld()
        try await world.admin("POST", "schema?\(Self.at)", Self.schema("text STRING"))
        let index = #"{"type": "Note", "field": "text", "index": "QUERYABLE"}"#
        try await world.admin("POST", "schema/indexes?\(Self.at)", index)
        let service = world.node.recordService
        for group in service.node.map.groups.dropFirst() {
            let key = SchemaKey(container: ConsoleWorld.container, environment: .development)
            // A question that needs no version of the schema.
            let answer = try await service.cluster.read(
                .indexes(key, schemaVersion: 0), from: group, by: service.deadline())
            guard case .found(let found) = answer else { throw TestFailure("\(answer)") }
            let states = try ShardList<IndexState>(decoding: found.bytes).elements
            #expect(states.map(\.field) == ["text"])
        }
        try await world.node.stop()
    }

    @Test("a dry run says how many records of all users have what goes, whatever is queryable")
    func counts() async throws {
        let world = try await ConsoleWorld()
        try await world.admin("POST", "schema?\(Self.at)", Self.schema("text STRING, more LIST<INT64>, unused STRING"))
        try await Self.save("a", #""text": {"value": "x"}"#, in: world)
        try await Self.save("b", #""text": {"value": "y"}, "more": {"value": [1, 2]}"#, in: world)
        try await Self.save("c", "", in: world)
        func losses(_ schema: String, _ options: String = "&dryRun=true") async throws -> [String: JSONValue] {
            let plan = try await world.admin("POST", "schema?\(Self.at)\(options)", schema)
            return Dictionary(
                uniqueKeysWithValues: (plan["changes"]?.array ?? []).map {
                    ($0["field"]?.string ?? $0["type"]?.string ?? "", $0["records"] ?? .null)
                })
        }
        let fields = try await losses(Self.schema("kept STRING"))
        #expect(
            fields == [
                "text": .integer(2), "more": .integer(1), "unused": .integer(0), "kept": .null,
            ])
        let types = try await losses("DEFINE SCHEMA RECORD TYPE New (x STRING);")
        #expect(types == ["Note": .integer(3), "Other": .integer(0), "New": .null])
        #expect(try await losses("DEFINE SCHEMA RECORD TYPE Note (text STRING);", "&dryRun=true&additive=true") == [:])
        let done = try await losses(Self.schema("text STRING"), "&allowDataLoss=true")
        #expect(done == ["more": .null, "unused": .null], "only a dry run looks")
        // What was taken does not count again under the same name.
        try await world.admin("POST", "schema?\(Self.at)", Self.schema("text STRING, more LIST<INT64>"))
        #expect(try await losses(Self.schema("text STRING")) == ["more": .integer(0)])
        // A reset deletes all records, also those of types that stay.
        try await world.admin("POST", "schema/deploy?\(Self.at)")
        try await world.admin("POST", "schema?\(Self.at)", Self.schema("text STRING, more LIST<INT64>, new STRING"))
        let reset = try await world.admin("POST", "schema/reset?\(Self.at)&dryRun=true")
        #expect(reset["records"] == .integer(3))
        let change = try #require(reset["changes"]?.array?.first)
        #expect(change["field"] == .string("new") && change["records"] == nil)
        try await world.node.stop()
    }
}
