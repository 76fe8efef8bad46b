import Foundation
import Synchronization

/// The users' tokens of this process, one object for each: two holders of one token would sign each other out.
///
/// A token is kept while it is referenced. One whose latest text is in memory only, because it has no file or the file
/// cannot be written, is kept longer: if the app started again with the text that it has, the session would be taken
/// for a stolen one. Of such tokens, the latest `keptMax` are kept.
enum WebAuthTokens {
    private enum Name: Hashable {
        case file(String)
        case account(ZonekeeperConfiguration.Identity)
    }

    private struct State {
        var known = WeakRegistry<Name, WebAuthToken>()
        var kept: [WebAuthToken] = []
    }

    private static let state = Mutex(State())
    static let keptMax = 10_000

    /// The token of a file.
    static func ofFile(
        _ path: String, onNotKept: @escaping @Sendable (ServiceClientError) -> Void
    ) throws(ServiceClientError) -> WebAuthToken {
        try state.withLock { state throws(ServiceClientError) in
            if let known = state.known.object(of: .file(path)) { return known }
            let text = try Result { () throws(ServiceClientError) in try SecretFile.read(path) }
                .mapError { ServiceClientError($0.message, about: .session) }.get()
            guard !text.isEmpty else { throw ServiceClientError("\(path) holds no token", about: .session) }
            let token = WebAuthToken(text, path: path, onNotKept: onNotKept)
            state.known.set(token, for: .file(path))
            return token
        }
    }

    static func ofAccount(_ account: ZonekeeperConfiguration.Identity, _ text: String) -> WebAuthToken {
        state.withLock { state in
            if let known = state.known.object(of: .account(account)) { return known }
            let token = WebAuthToken(text)
            state.known.set(token, for: .account(account))
            return token
        }
    }

    /// Keeps a token whose latest text is in memory only. Called once for each.
    static func keep(_ token: WebAuthToken) {
        // Released objects are deinitialized outside of the lock.
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

/// A user's web auth token, which each answer may replace; requests send the newest.
///
/// An older one is worth nothing once a newer one was used and the grace window has passed, so a token that is to
/// outlive this process is kept in a file. Several programs may share the file: what another one has put there is taken
/// over before the next request.
package final class WebAuthToken: Sendable {
    private struct State {
        var newest: String
        /// The file as it was when it was read or written last.
        var mark: FileMark?
        /// How often another program's token was taken over.
        var generation = 0
        /// Whether it stays in the process because its newest text is nowhere else.
        var isKept = false
        /// Hears of each new text, for as long as it is the same user's.
        var observer: (@Sendable (String) -> Void)?
    }

    private let state: Mutex<State>
    /// Where the newest token is kept; nil for nowhere.
    private let path: String?
    private let onNotKept: @Sendable (ServiceClientError) -> Void

    /// - Parameter onNotKept: hears why a new token could not be written to its file; the token is used nevertheless.
    package init(
        _ token: String, path: String? = nil, onNotKept: @escaping @Sendable (ServiceClientError) -> Void = { _ in }
    ) {
        state = Mutex(State(newest: token, mark: path.flatMap { FileMark(of: $0) }))
        self.path = path
        self.onNotKept = onNotKept
    }

    /// What the next request sends.
    package var current: String { state.withLock(\.newest) }

    /// What the next request sends, and how often another program's token was taken over: tokens of one generation are
    /// one user's.
    var snapshot: (token: String, generation: Int) { state.withLock { ($0.newest, $0.generation) } }

    /// An answer to a request that carried `sent` brought a token.
    ///
    /// Where another answer has brought one meanwhile, or another program, that one stays: an answer that comes late
    /// would else bring back what the server takes for stolen by then.
    package func replaced(by token: String, after sent: String) {
        let (problem, isKeptNow) = state.withLock { state -> (ServiceClientError?, Bool) in
            guard !token.isEmpty, token != state.newest, state.newest == sent else { return (nil, false) }
            if takeOver(&state) { return (nil, false) }
            state.newest = token
            state.observer?(token)
            // Inside the lock, so that the file never goes back to an older one.
            let problem = write(token, &state)
            guard path == nil || problem != nil, !state.isKept else { return (problem, false) }
            state.isKept = true
            return (problem, true)
        }
        if isKeptNow { WebAuthTokens.keep(self) }
        if let problem { onNotKept(problem) }
    }

    private func write(_ token: String, _ state: inout State) -> ServiceClientError? {
        guard let path else { return nil }
        do throws(ServiceClientError) {
            try PrivateFile.replace(path, with: token + "\n")
            state.mark = FileMark(of: path)
            return nil
        } catch {
            return error
        }
    }

    /// Has `body` hear of each new text, in place of the one that did before. It is not told of another program's,
    /// which may be another user's, and of none that comes after that. It must not call this object.
    package func observe(_ body: @escaping @Sendable (String) -> Void) { state.withLock { $0.observer = body } }

    /// Takes the token over that another program has put into the file since it was looked at last. It may be another
    /// user's.
    package func takeOver() -> Bool { state.withLock { takeOver(&$0) } }

    private func takeOver(_ state: inout State) -> Bool {
        guard let path, let mark = FileMark(of: path), mark != state.mark else { return false }
        guard let text = try? SecretFile.read(path), !text.isEmpty else { return false }
        state.mark = mark
        guard text != state.newest else { return false }
        state.newest = text
        state.observer = nil
        state.generation += 1
        return true
    }
}

/// What tells that a file was written: looked at without reading it.
private struct FileMark: Equatable {
    private var modified: Date?
    private var size: Int?
    private var inode: Int?

    /// Nil if the file does not exist.
    init?(of path: String) {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
        modified = attributes[.modificationDate] as? Date
        size = (attributes[.size] as? NSNumber)?.intValue
        inode = (attributes[.systemFileNumber] as? NSNumber)?.intValue
    }
}

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
    /// - Parameter onNotKept: hears why a new token could not be written to the file; the token is used nevertheless,
    ///   for as long as the process lives.
    package init(path: String, onNotKept: @escaping @Sendable (ServiceClientError) -> Void = WebAuthTokenSource.warn) {
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

/// What a request for a container's data shows of its sender; the schemes exclude each other.
package enum CallerCredentials: Sendable {
    /// An API token, and a user's token where a user speaks.
    case tokens(api: String, user: WebAuthToken?)
    /// A server key, which signs.
    case key(ServerKeyFile)
    /// A time as a user, by its id, of the administrator whose token is sent with it.
    case acting(id: String)
}
