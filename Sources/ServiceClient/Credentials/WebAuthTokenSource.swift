import Synchronization

/// Where a user's token comes from: as it is, or out of a file that is read when the first request needs it.
package final class WebAuthTokenSource: Sendable {
    private enum State {
        case file(String)
        /// One for all requests, as each answer may replace it.
        case token(WebAuthToken)
    }

    private let state: Mutex<State>
    private let onNotKept: @Sendable (ServiceClientError) -> Void
    /// Whether a file keeps the token, which other programs may write too.
    package let isFile: Bool

    /// A token that is kept nowhere else.
    package convenience init(_ token: String) { self.init(token: WebAuthToken(token)) }

    /// The token that a configuration has, in its newest form: the same one for everybody in this process.
    convenience init(account: ZonekeeperConfiguration.Identity, _ token: String) {
        self.init(token: WebAuthTokens.ofAccount(account, token))
    }

    private init(token: WebAuthToken) {
        state = Mutex(.token(token))
        onNotKept = { _ in }
        isFile = false
    }

    /// A file with a token, which is kept up to date: the same one for everybody in this process.
    /// - Parameter onNotKept: hears why a new token could not be written to the file; the token is used nevertheless, for
    ///   as long as the process lives.
    package init(
        path: String, onNotKept: @escaping @Sendable (ServiceClientError) -> Void = WebAuthTokenSource.warn
    ) {
        state = Mutex(.file(path))
        self.onNotKept = onNotKept
        isFile = true
    }

    /// Says on standard error that a session will not outlive the process.
    package static func warn(_ problem: ServiceClientError) {
        Warnings.say(
            "the session's new token is not kept: \(problem.message). The session goes on in this process; when it ends, "
                + "the user has to sign in again, unless the file can be written by then")
    }

    /// - Throws: an error that names the file, where it cannot be read or holds nothing.
    package func token() throws(ServiceClientError) -> WebAuthToken {
        try state.withLock { state throws(ServiceClientError) in
            switch state {
            case .token(let token): return token
            case .file(let path):
                let token = try WebAuthTokens.ofFile(path, onNotKept: onNotKept)
                state = .token(token)
                return token
            }
        }
    }
}
