/// A session at the server, as preferences need it.
package protocol PreferenceService: Sendable {
    /// Tells this session from others on the device, the same after a restart where that is possible.
    var name: String { get }

    /// The user's record name, which does not change while the session lives.
    func account() async throws(PreferenceServiceProblem) -> String

    /// A page of the change feed.
    /// - Parameter account: whose; a session that is another user's by now throws `notSignedIn`.
    func changes(since token: String?, of account: String) async throws(PreferenceServiceProblem) -> PreferencePage

    /// Sends a batch under its id. What is thrown leaves open whether it was done.
    func set(
        _ batch: PreferenceBatch, of account: String, device: String
    ) async throws(PreferenceServiceProblem) -> PreferenceUploadAnswer

    /// Follows the change feed until the connection ends, and hands over each page and the token that it follows.
    /// - Parameter page: says whether to go on.
    func watch(
        since token: String, of account: String, page: @Sendable (_ since: String, PreferencePage) async -> Bool
    ) async throws(PreferenceServiceProblem)
}

/// Why the server did not answer as hoped.
package enum PreferenceServiceProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// The feed is to be read from its start.
    case tokenExpired
    /// It may go better later; the server may say when.
    case unavailable(String, retryAfterMilliseconds: Int64?)
    /// The session was refused: somebody has to sign in again.
    case notSignedIn(String)
    /// The request is not taken as it is, by the server or by something before it.
    case rejected(String)

    package var description: String {
        switch self {
        case .tokenExpired: "the change token has expired"
        case .unavailable(let reason, _), .rejected(let reason): reason
        case .notSignedIn(let reason): "the session is not accepted: \(reason)"
        }
    }

    var retryAfterMilliseconds: Int64? {
        switch self {
        case .unavailable(_, let milliseconds): milliseconds
        // Asking again at once would be refused again; a new session is announced by the configuration.
        case .notSignedIn: 60_000
        case .tokenExpired, .rejected: nil
        }
    }
}
