import Admission
import RecordModel
import Service
import TestSupport
import Testing

@testable import WebServices

@Suite("Where clients find the cluster")
struct OriginTests {
    private static func signInURL(_ context: WebContext, _ world: SignInWorld) async throws -> String {
        var request = InProcessService.Request(
            method: "POST",
            target: "/database/1/\(SignInWorld.container)/development/private/records/query?ckAPIToken="
                + world.apiToken.secret)
        request.body = Array(#"{"query": {"recordType": "T"}}"#.utf8)
        let answer = try await InProcessService(context: context).answer(request)
        return try answer.body.json()["redirectURL"]?.string ?? "\(answer.status)"
    }

    @Test("URLs in answers begin with what the operator says, whatever a request's Host is")
    func configured() async throws {
        let world = try await SignInWorld()
        let service = world.node.recordService
        let administrator = AdministratorToken(secret: "s")
        let open = WebContext(service: service, administrator: administrator)
        #expect(try await Self.signInURL(open, world).hasPrefix("https://localhost/sign-in?"))
        let fixed = WebContext(service: service, administrator: administrator, origin: "https://zk.example:8443")
        #expect(try await Self.signInURL(fixed, world).hasPrefix("https://zk.example:8443/sign-in?"))
        for context in [open, fixed] { await context.providers.shutdown() }
        try await world.node.stop()
    }

    @Test("beyond the limit of connections, health, administrators and sessions of sign-ins pass")
    func passed() async throws {
        let world = try await SignInWorld()
        let context = WebContext(service: world.node.recordService, administrator: AdministratorToken(secret: "s"))
        #expect(context.isPassed("/health/ready", authorization: nil))
        #expect(context.isPassed("/admin/1/tokens", authorization: "Bearer s"))
        #expect(!context.isPassed("/admin/1/tokens", authorization: "Bearer t"))
        #expect(!context.isPassed("/database/1/c/development/public/records/query?ckAPIToken=x", authorization: nil))
        let token = world.node.recordService.signer?.token(sessionID: "0123456789abcdef", issued: 1) ?? ""
        #expect(
            context.isPassed("/database/1/c/development/private/zones/list?ckWebAuthToken=\(token)", authorization: nil)
        )
        #expect(
            !context.isPassed(
                "/database/1/c/development/private/zones/list?ckWebAuthToken=x\(token)", authorization: nil))
        await context.providers.shutdown()
        try await world.node.stop()
    }
}
