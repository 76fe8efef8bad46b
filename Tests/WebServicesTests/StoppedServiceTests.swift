import TestSupport
import Testing

@Suite("A service that was stopped")
struct StoppedServiceTests {
    private func remains() async throws -> SingleNode.Remains {
        let world = try await ConsoleWorld()
        _ = try await world.admin("GET", "status")
        let remains = world.node.remains
        try await world.node.stop()
        return remains
    }

    @Test("leaves nothing behind")
    func gone() async throws {
        let remains = try await remains()
        try await awaitTrue("nothing holds it") { remains.isGone }
    }
}
