import TestSupport
import Testing

/// What `web-services.md` and `limits-quotas.md` in the project's reference state, section by section.
///
/// Each rule is held through two doors: in memory against one node in this process, and over HTTPS against three. Where
/// a rule has several cases, the second door takes the first of them. The servers are started when the first case needs
/// them and stopped after the last; each case has a user or a container of its own on them. A case named "deviates:
/// ..." pins what we do where the reference says otherwise or cannot be followed.
@Suite(.servers)
enum Conformance {}

/// Stops the servers once everything ran, and then sees whether every operation of the OpenAPI document was.
struct ServersTrait: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await finishing(function) {
            await Servers.shared.stop()
            // A run of a few cases sees few operations, and is not judged; one of nearly all must see all. Pages and
            // the sign-in of programs have tests of their own, in WebServicesTests; changes of members in ClusterTests.
            let unseen = Home.contract.unseen().filter { !$0.contains(" /sign-") && !$0.contains("/admin/1/cluster") }
            if unseen.count <= 12 {
                for operation in unseen { Issue.record("no case had the answer \(operation)") }
            }
        }
    }
}

extension Trait where Self == ServersTrait {
    static var servers: Self { Self() }
}
