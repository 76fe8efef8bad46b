import Admission
import Directory
import RecordModel
import TestSupport
import Testing

@testable import Service
@testable import WebServices

@Suite("Addresses that failed to authenticate too often", .serialized)
struct FailedAuthenticationTests {
    @Test("a URL that this cluster gave is good also there; a forged one is told to wait")
    func urls() async throws {
        let world = try await SignInWorld()
        let service = world.node.recordService
        let transfers = AssetTransfers(service)
        func open(_ bytes: [UInt8]) async throws -> AssetDownloadTicket {
            try await transfers.open(bytes, as: AssetDownloadTicket.self, address: "192.0.2.1")
        }
        var code = ErrorCode.accessDenied
        while code == .accessDenied {
            let failure = await #expect(throws: RequestFailure.self) { try await open([1, 2, 3]) }
            code = try #require(failure?.error.code)
        }
        #expect(code == .throttled)
        let key = SchemaKey(container: SignInWorld.container, environment: .development)
        let ticket = AssetDownloadTicket(
            asset: AssetReference(sha256: [UInt8](repeating: 5, count: 32), size: 9),
            zone: ZoneKey(database: DatabaseKey(publicDataIn: key), name: ZoneKey.defaultZoneName),
            expires: service.now + AssetDownloadTicket.lifeMilliseconds)
        #expect(try await open(service.requireSecret().bytes(of: ticket)) == ticket)
        try await world.node.stop()
    }

    @Test("what is refused there is not asked about in the directory first")
    func notAsked() async throws {
        let world = try await SignInWorld()
        let service = world.node.recordService
        // By a clock that stands still, so that nothing that was spent comes again.
        let failures = FailedAuthentications { 1_000_000_000 }
        let identification = CallerIdentification(
            node: service.node, cluster: service.cluster, accounts: service.accounts, signer: service.signer,
            failures: failures)
        let target = Target(container: SignInWorld.container, environment: .development, needsUser: true)
        func identify(_ address: String) async throws -> AdmittedRequest {
            let credentials = Credentials(apiToken: world.apiToken.secret, webAuthToken: "unknown")
            let precheck = Precheck(directoryVersion: 0, apiToken: nil, rateLimit: 1)
            return try await identification.identify(credentials, precheck, to: target, address: address)
        }
        while (try? failures.count(of: "192.0.2.1")) != nil {}
        // That its container is gone is told once the directory was asked.
        _ = try await world.admin("DELETE", "containers?name=\(SignInWorld.container)&confirm=\(SignInWorld.container)")
        let gone = await #expect(throws: RequestFailure.self) { try await identify("192.0.2.2") }
        #expect(gone?.error.code == .notFound)
        let throttled = await #expect(throws: RequestFailure.self) { try await identify("192.0.2.1") }
        #expect(throttled?.error.code == .throttled)
        try await world.node.stop()
    }

    @Test("API tokens to sign in with that are unknown count, and are not asked about there", .timeLimit(.minutes(10)))
    func signIn() async throws {
        let world = try await SignInWorld()
        let (service, address) = (world.node.recordService, "192.0.2.1")
        let signIn = SignIn(service, ProviderClient(), requestID: "r", address: address)
        for isTicket in [false, true] {
            var code = ErrorCode.badRequest
            while code != .throttled {
                // Some of it may be back by the time of the request.
                while (try? service.failedAuthentications.count(of: address)) != nil {}
                let failure = await #expect(throws: RequestFailure.self) {
                    isTicket
                        ? try await signIn.goal(ofTicket: world.ticket(tokenID: "unknown"))
                        : try await signIn.goal(ofAPIToken: "unknown", origin: nil)
                }
                code = try #require(failure?.error.code)
            }
            #expect(try await signIn.goal(ofAPIToken: world.apiToken.secret, origin: nil).tokenID == world.apiToken.id)
        }
        try await world.node.stop()
    }
}
