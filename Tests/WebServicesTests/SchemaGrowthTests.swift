import RecordModel
import TestSupport
import Testing

@testable import WebServices

@Suite("Development's schema, as saves let it grow", .serialized)
struct SchemaGrowthTests {
    private static func save(
        _ type: String, in world: SignInWorld, by session: String
    ) async throws -> SignInWorld.Page {
        let record = #"{"recordType": "\#(type)", "fields": {"x": {"value": 1}}}"#
        return try await world.post(
            "records/modify", by: session, #"{"operations": [{"operationType": "create", "record": \#(record)}]}"#)
    }

    private static func isSaved(_ page: SignInWorld.Page) -> Bool {
        page.json["records"]?.array?.first?["recordChangeTag"] != nil
    }

    @Test("administrators say how often saves may add to it, and the audit log tells who added what")
    func growth() async throws {
        let world = try await SignInWorld()
        let session = try await world.session(of: "ada")
        let limits = "limits?container=\(SignInWorld.container)"
        #expect(Self.isSaved(try await Self.save("First", in: world, by: session)))
        // Once a minute: that was it, unless a machine with much to do took a minute since.
        _ = try await world.admin("PATCH", limits, #"{"schemaGrowthsPerMinute": 1}"#)
        var grown = 1
        var throttled = try await Self.save("Another1", in: world, by: session)
        while Self.isSaved(throttled), grown < 5 {
            grown += 1
            throttled = try await Self.save("Another\(grown)", in: world, by: session)
        }
        #expect(throttled.status == 429 && throttled.code == "THROTTLED" && throttled["retry-after"] != nil)
        // Never: only administrators add to it; what is there is saved as before.
        _ = try await world.admin("PATCH", limits, #"{"schemaGrowthsPerMinute": 0}"#)
        let refused = try await Self.save("Second", in: world, by: session).json["records"]?.array?.first
        #expect(refused?["serverErrorCode"]?.string == "BAD_REQUEST")
        #expect(refused?["reason"]?.string?.contains("schemaGrowthsPerMinute") == true)
        #expect(Self.isSaved(try await Self.save("First", in: world, by: session)))
        _ = try await world.admin("PATCH", limits, #"{"schemaGrowthsPerMinute": null}"#)
        #expect(Self.isSaved(try await Self.save("Second", in: world, by: session)))
        let told = try await world.admin("GET", "audit?log=requests")["records"]?.array ?? []
        #expect(told.map { $0["action"]?.string } == Array(repeating: "schema.grow", count: grown + 1))
        #expect(told.allSatisfy { $0["actor"]?.string == "user ada" })
        #expect(told.first?["subject"]?.string?.hasSuffix("after version 1: First") == true)
        try await world.node.stop()
    }

    /// A type with so many fields, each with a name of 200 bytes.
    private static func type(_ name: String, fields: Int) -> String {
        let filler = String(repeating: "x", count: 190)
        return "RECORD TYPE \(name) (" + (0..<fields).map { "f\($0)\(filler) INT64" }.joined(separator: ", ") + ");"
    }

    /// A world whose container's development schema has these types, and a user's session in it.
    private static func world(_ types: String) async throws -> (SignInWorld, session: String) {
        let world = try await SignInWorld()
        let made = try await world.admin(
            "POST", "tokens", #"{"kind": "session", "container": "\#(SignInWorld.container)", "user": "ada"}"#)
        _ = try await world.admin(
            "POST", "schema?container=\(SignInWorld.container)&environment=development&additive=true",
            "DEFINE SCHEMA \(types)")
        return (world, try #require(made["secret"]?.string))
    }

    @Test("a growth of a large schema costs the container's rate a request for each 10 kB")
    func cost() async throws {
        let (world, session) = try await Self.world(Self.type("Large", fields: 900) + Self.type("Other", fields: 900))
        _ = try await world.admin(
            "PATCH", "limits?container=\(SignInWorld.container)",
            #"{"requestsPerSecond": 1, "requestsPer100kUsers": 0}"#)
        #expect(Self.isSaved(try await Self.save("First", in: world, by: session)))
        // Some 30 are owed; without the growth 4 would be left.
        let throttled = try await Self.save("First", in: world, by: session)
        #expect(throttled.status == 429 && throttled.code == "THROTTLED")
        try await world.node.stop()
    }

    @Test("a growth that is refused counts as one that is made")
    func refusals() async throws {
        let (world, session) = try await Self.world(Self.type("Full", fields: 1_000))
        _ = try await world.admin(
            "PATCH", "limits?container=\(SignInWorld.container)", #"{"schemaGrowthsPerMinute": 1}"#)
        let refused = try await Self.save("Full", in: world, by: session)
        #expect(refused.json["records"]?.array?.first?["reason"]?.string?.contains("at most 1000") == true)
        let throttled = try await Self.save("Full", in: world, by: session)
        #expect(throttled.status == 429 && throttled.code == "THROTTLED")
        try await world.node.stop()
    }
}
