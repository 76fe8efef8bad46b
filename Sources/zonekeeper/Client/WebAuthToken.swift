import Synchronization

/// A user's web auth token, which each answer may replace; requests send the newest.
///
/// An older one is worth nothing once a newer one was used and the grace window has passed, so a token that is to outlive
/// this process is kept in a file.
final class WebAuthToken: Sendable {
    private let newest: Mutex<String>
    /// Where the newest token is kept; nil for nowhere.
    private let path: String?

    init(_ token: String, path: String? = nil) {
        newest = Mutex(token)
        self.path = path
    }

    /// What the next request sends.
    var current: String { newest.withLock { $0 } }

    /// An answer brought a token.
    func replaced(by token: String) {
        newest.withLock { newest in
            guard !token.isEmpty, token != newest else { return }
            newest = token
            guard let path else { return }
            // Inside the lock, so that the file never goes back to an older one.
            do throws(CommandFailure) {
                try PrivateFile.replace(path, with: token + "\n")
            } catch {
                Console.note("warning: the session's new token is not kept: \(error.message)")
            }
        }
    }
}

/// Where a user's token comes from: as it is, or out of a file that is read when the first request needs it.
final class WebAuthTokenSource: Sendable {
    private enum State {
        case file(String)
        /// One for all requests, as each answer may replace it.
        case token(WebAuthToken)
    }

    private let state: Mutex<State>

    init(_ token: String) { state = Mutex(.token(WebAuthToken(token))) }

    init(path: String) { state = Mutex(.file(path)) }

    /// - Throws: `CommandFailure` that names the file, where it cannot be read or holds nothing.
    func token() throws(CommandFailure) -> WebAuthToken {
        try state.withLock { state throws(CommandFailure) in
            switch state {
            case .token(let token): return token
            case .file(let path):
                let text = try SecretFile.read(path)
                guard !text.isEmpty else { throw CommandFailure("\(path) holds no token") }
                let token = WebAuthToken(text, path: path)
                state = .token(token)
                return token
            }
        }
    }
}
