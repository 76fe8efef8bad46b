import RecordModel
import Testing

extension Conformance {
    @Suite("16 Sharing: later issues")
    struct Section14LaterTests {
        @Test(
            "deviates: what is a later issue answers 501 with BAD_REQUEST and a reason",
            arguments: Door.cases([
                "records/resolve", "records/accept", "records/zip/prepare",
            ]))
        func later(door: Door, action: String) async throws {
            let answer = try await Space(door).inPublic.call(action, [:])
            expectFailure(answer, 501, "BAD_REQUEST", "\(action) is not built yet")
            #expect(answer.json["uuid"] != nil)
        }
    }
}
