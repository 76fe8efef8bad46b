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
    package init(_ token: String) {
        state = Mutex(.token(WebAuthToken(token)))
        onNotKept = { _ in }
        isFile = false
    }

    /// A file with a token, which is kept up to date.
    package init(path: String, onNotKept: @escaping @Sendable (ServiceClientError) -> Void = { _ in }) {
        state = Mutex(.file(path))
        self.onNotKept = onNotKept
        isFile = true
    }

    private static let files = Mutex<[String: WebAuthTokenSource]>([:])

    /// The source of a file: the same one for everybody in this process.
    package static func shared(
        path: String, onNotKept: @escaping @Sendable (ServiceClientError) -> Void = { _ in }
    ) -> WebAuthTokenSource {
        files.withLock { files in
            if let known = files[path] { return known }
            let source = WebAuthTokenSource(path: path, onNotKept: onNotKept)
            files[path] = source
            return source
        }
    }

    /// - Throws: an error that names the file, where it cannot be read or holds nothing.
    package func token() throws(ServiceClientError) -> WebAuthToken {
        try state.withLock { state throws(ServiceClientError) in
            switch state {
            case .token(let token): return token
            case .file(let path):
                let text: String
                do throws(ServiceClientError) {
                    text = try SecretFile.read(path)
                } catch {
                    throw ServiceClientError(error.message, about: .session)
                }
                guard !text.isEmpty else { throw ServiceClientError("\(path) holds no token", about: .session) }
                let token = WebAuthToken(text, path: path, onNotKept: onNotKept)
                state = .token(token)
                return token
            }
        }
    }
}
