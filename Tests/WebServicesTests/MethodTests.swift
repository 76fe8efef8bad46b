import TestSupport
import Testing

@testable import WebServices

@Suite("Methods")
struct MethodTests {
    @Test("HEAD is answered as GET is, without a body")
    func head() async throws {
        let world = try await ConsoleWorld()
        let place = "container=\(ConsoleWorld.container)&environment=development"
        let data = "/database/1/\(ConsoleWorld.container)/development/public"
        for path in [
            "containers", "users?limit=5", "schema?\(place)", "audit/export", "metrics", "schema", "\(data)/zones/list",
            "/openapi.json", "/health/live", "/health/ready",
        ] {
            let (get, head) = (try await world.token("GET", path), try await world.token("HEAD", path))
            #expect(head.status == get.status && head["content-type"] == get["content-type"], "\(path): \(head)")
            #expect(head.text.isEmpty && !get.text.isEmpty, "\(path): \(head)")
        }
        #expect(try await world.send("HEAD", "/admin/1/containers", headers: []).status == 401)
        try await world.node.stop()
    }

    @Test("what is not called with a method says with which ones it is")
    func wrong() async throws {
        let world = try await ConsoleWorld()
        let data = "/database/1/\(ConsoleWorld.container)/development/public"
        for (method, path, allowed) in [
            ("PUT", "containers", "GET, HEAD, POST, DELETE, PATCH"), ("HEAD", "schema/deploy", "POST"),
            ("DELETE", "\(data)/zones/list", "GET, HEAD, POST"), ("HEAD", "\(data)/records/query", "POST"),
            ("DELETE", "/openapi.json", "GET, HEAD"), ("POST", "/health/live", "GET, HEAD"),
            ("PUT", "/health/ready", "GET, HEAD"),
        ] {
            let answer = try await world.token(method, path)
            #expect(answer.status == 405 && answer["allow"] == allowed, "\(method) \(path): \(answer)")
        }
        try await world.node.stop()
    }
}
