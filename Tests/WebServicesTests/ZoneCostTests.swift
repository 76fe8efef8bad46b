import RecordModel
import TestSupport
import Testing

@testable import WebServices

@Suite("What a change of many zones costs", .serialized)
struct ZoneCostTests {
    /// A request of a user that deletes zones that are not there.
    private static func delete(
        _ count: Int, in world: SignInWorld, by session: String
    ) async throws -> SignInWorld.Page {
        let operations = (0..<count).map { number in
            #"{"operationType": "delete", "zone": {"zoneID": {"zoneName": "z\#(number)"}}}"#
        }
        return try await world.post(
            "zones/modify", by: session, #"{"operations": [\#(operations.joined(separator: ","))]}"#)
    }

    @Test("200 operations cost the container's rate 48 requests, ten cost one")
    func cost() async throws {
        let world = try await SignInWorld()
        let session = try await world.session(of: "ada")
        _ = try await world.admin(
            "PATCH", "limits?container=\(SignInWorld.container)",
            #"{"requestsPerSecond": 1, "requestsPer100kUsers": 0}"#)
        #expect(try await Self.delete(10, in: world, by: session).status == 200)
        #expect(try await Self.delete(200, in: world, by: session).status == 200)
        // Some 30 are owed, and the rest is spent ahead; without that 3 would be left.
        let throttled = try await Self.delete(1, in: world, by: session)
        #expect(throttled.status == 429 && throttled.code == "THROTTLED")
        try await world.node.stop()
    }
}
