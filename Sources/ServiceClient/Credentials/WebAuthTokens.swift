import Synchronization

/// The users' tokens of this process, each of them once: two holders of one token would sign each other out.
///
/// A token is known for as long as somebody holds it. One whose newest text stands nowhere but in memory, because no file is
/// named for it or because the file cannot be written, stays when its last holder goes: begun anew with the text that the app
/// has, the session would be taken for a stolen one. Of such tokens the newest `keptMax` stay.
enum WebAuthTokens {
    /// What names a token.
    private enum Name: Hashable {
        case file(String)
        case account(ZonekeeperConfiguration.Identity)
    }

    private struct State {
        var known = WeakBook<Name, WebAuthToken>()
        var kept: [WebAuthToken] = []
    }

    private static let state = Mutex(State())
    static let keptMax = 10_000

    /// The token of a file.
    /// - Throws: an error that names the file, where it cannot be read or holds nothing.
    static func ofFile(
        _ path: String, onNotKept: @escaping @Sendable (ServiceClientError) -> Void
    ) throws(ServiceClientError) -> WebAuthToken {
        try state.withLock { state throws(ServiceClientError) in
            if let known = state.known.object(of: .file(path)) { return known }
            let text: String
            do throws(ServiceClientError) {
                text = try SecretFile.read(path)
            } catch {
                throw ServiceClientError(error.message, about: .session)
            }
            guard !text.isEmpty else { throw ServiceClientError("\(path) holds no token", about: .session) }
            let token = WebAuthToken(text, path: path, onNotKept: onNotKept)
            state.known.set(token, for: .file(path))
            return token
        }
    }

    /// The token of an account whose configuration has it.
    static func ofAccount(_ account: ZonekeeperConfiguration.Identity, _ text: String) -> WebAuthToken {
        state.withLock { state in
            if let known = state.known.object(of: .account(account)) { return known }
            let token = WebAuthToken(text)
            state.known.set(token, for: .account(account))
            return token
        }
    }

    /// Keeps a token whose newest text is nowhere else. Called once for each.
    static func keep(_ token: WebAuthToken) {
        // What is let go of here ends outside of the lock.
        let gone = state.withLock { state -> ArraySlice<WebAuthToken> in
            state.kept.append(token)
            guard state.kept.count > keptMax else { return [] }
            let gone = state.kept.prefix(keptMax / 10)
            state.kept.removeFirst(gone.count)
            return gone
        }
        _ = gone
    }
}
