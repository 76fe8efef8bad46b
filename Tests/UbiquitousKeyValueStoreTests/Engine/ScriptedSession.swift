import RecordModel
import Synchronization

@testable import UbiquitousKeyValueStore

/// A session at the fake cloud that may turn into another user's, be refused or forget every batch.
final class ScriptedSession: PreferenceService {
    struct Script {
        var user: String
        var forgetsBatches = false
        var isRefused = false
    }

    let cloud: FakeCloud
    let name: String
    private let script: Mutex<Script>

    init(_ cloud: FakeCloud, user: String) {
        self.cloud = cloud
        name = "scripted, at first \(user)'s"
        script = Mutex(Script(user: user))
    }

    func with<Value: Sendable>(_ body: (inout Script) -> Value) -> Value { script.withLock { body(&$0) } }

    private var session: FakeSession {
        get throws(PreferenceServiceProblem) {
            let script = with { $0 }
            if script.isRefused { throw .notSignedIn("the session has ended") }
            return FakeSession(cloud: cloud, user: script.user)
        }
    }

    private func session(of account: String) throws(PreferenceServiceProblem) -> FakeSession {
        let session = try session
        if session.user != account { throw .notSignedIn("another user has signed in") }
        return session
    }

    func account() async throws(PreferenceServiceProblem) -> String { try await session.account() }

    func changes(since token: String?, of account: String) async throws(PreferenceServiceProblem) -> PreferencePage {
        try await session(of: account).changes(since: token, of: account)
    }

    func set(
        _ batch: PreferenceBatch, of account: String, device: String
    ) async throws(PreferenceServiceProblem) -> PreferenceUploadAnswer {
        if with({ $0.forgetsBatches }) { return .forgotten }
        return try await session(of: account).set(batch, of: account, device: device)
    }

    func watch(
        since token: String, of account: String, page: @Sendable (String, PreferencePage) async -> Bool
    ) async throws(PreferenceServiceProblem) {
        throw .unavailable("the server does not push", retryAfterMilliseconds: nil)
    }
}
