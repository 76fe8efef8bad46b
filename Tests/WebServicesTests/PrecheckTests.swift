import RecordModel
import TestSupport
import Testing

@testable import Service
@testable import WebServices

@Suite("Credentials, looked at before a body is read and when it is here", .serialized)
struct PrecheckTests {
    /// A lookup of public data during whose body a request of the administrator is answered.
    private static func lookUp(
        _ world: SignInWorld, during method: String, _ path: String, _ body: String = ""
    ) async throws -> SignInWorld.Page {
        var request = InProcessService.Request(
            method: "POST",
            target:
                "/database/1/\(SignInWorld.container)/development/public/records/lookup?ckAPIToken=\(world.apiToken.secret)"
        )
        request.body = Array(#"{"records": [{"recordName": "a"}]}"#.utf8)
        request.whileBodyComes = { _ = try? await world.admin(method, path, body) }
        return SignInWorld.Page(try await world.node.service.answer(request))
    }

    @Test("a token that is revoked while the body comes is refused; any other change of the directory is nothing to it")
    func revoked() async throws {
        let world = try await SignInWorld()
        let token = #"{"kind": "api", "container": "\#(SignInWorld.container)"}"#
        let page = try await Self.lookUp(world, during: "POST", "tokens", token)
        #expect(page.status == 200, "\(page)")
        #expect(page["ratelimit-policy"]?.hasPrefix("\"requests\";q=") == true)
        let refused = try await Self.lookUp(world, during: "DELETE", "tokens?id=\(world.apiToken.id)")
        #expect(refused.status == 401 && refused.code == "AUTHENTICATION_FAILED", "\(refused)")
        try await world.node.stop()
    }

    @Test(
        "a token that is revoked while its request waits for its turn is refused, and the request's place is free again"
    )
    func revokedInLine() async throws {
        let world = try await SignInWorld()
        let (service, container) = (world.node.recordService, SignInWorld.container)
        _ = try await world.admin("PATCH", "limits?container=\(container)", #"{"concurrentRequests": 1}"#)
        for (method, path, status) in [
            ("POST", "users", 200), ("DELETE", "tokens?id=\(world.apiToken.id)", 401),
        ] {
            try await service.gate.takePlace(container: container, in: service.directory, on: service.node)
            async let answer = world.postJSON(
                "/database/1/\(container)/development/public/records/lookup?ckAPIToken=\(world.apiToken.secret)",
                #"{"records": [{"recordName": "a"}]}"#)
            while service.gate.load.waiting == 0 { await Task.yield() }
            _ = try await world.admin(method, path, #"{"name": "grace"}"#)
            service.gate.leave(container: container)
            let page = try await answer
            #expect(page.status == status, "\(page)")
            #expect(service.gate.load.inside == 0)
        }
        try await world.node.stop()
    }

    @Test("who is an administrator no more when the body is here is refused: administration and data alike")
    func removed() async throws {
        let world = try await SignInWorld()
        let requests = [
            ("/admin/1/administrators", #"{"name": "mallory", "role": "admin", "password": "correct horse"}"#),
            (
                "/database/1/\(SignInWorld.container)/development/public/records/lookup",
                #"{"records": [{"recordName": "a"}]}"#
            ),
        ]
        for (target, body) in requests {
            let made = try await world.admin("POST", "tokens", #"{"kind": "administrator", "name": "ci"}"#)
            let (id, secret) = (made["id"]?.string ?? "", made["secret"]?.string ?? "")
            var request = InProcessService.Request(method: "POST", target: target)
            request.headers = [("Authorization", "Bearer \(secret)")]
            request.body = Array(body.utf8)
            request.whileBodyComes = { _ = try? await world.admin("DELETE", "tokens?id=\(id)") }
            let page = SignInWorld.Page(try await world.node.service.answer(request))
            #expect(page.status == 401 && page.code == "AUTHENTICATION_FAILED", "\(page)")
        }
        let team = try await world.admin("GET", "administrators")
        #expect(!String(decoding: team.serialized(), as: UTF8.self).contains("mallory"))
        try await world.node.stop()
    }

    @Test("the body of a request with an unknown token is not read")
    func unknown() async throws {
        let node = try await SingleNode.start(shards: 1)
        let target = "/database/1/iCloud.a/development/public/records/query?ckAPIToken=nobody"
        var request = InProcessService.Request(method: "POST", target: target)
        request.whileBodyComes = { Issue.record("the body was read") }
        #expect(try await node.service.answer(request).status == 401)
        try await node.stop()
    }
}
