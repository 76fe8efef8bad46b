import Foundation
import Synchronization

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
            // Inside the lock, so that the file never goes back to an older one.
            let problem = write(token, &state)
            guard path == nil || problem != nil, !state.isKept else { return (problem, false) }
            state.isKept = true
            return (problem, true)
        }
        if isKeptNow { WebAuthTokens.keep(self) }
        if let problem { onNotKept(problem) }
    }

    /// Writes a new token into the file, where there is one.
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

    /// Takes the token over that another program has put into the file since it was looked at last. It may be another
    /// user's.
    /// - Returns: whether there was one.
    package func takeOver() -> Bool { state.withLock { takeOver(&$0) } }

    private func takeOver(_ state: inout State) -> Bool {
        guard let path, let mark = FileMark(of: path), mark != state.mark else { return false }
        guard let text = try? SecretFile.read(path), !text.isEmpty else { return false }
        state.mark = mark
        guard text != state.newest else { return false }
        state.newest = text
        state.generation += 1
        return true
    }
}

/// What tells that a file was written: looked at without reading it.
private struct FileMark: Equatable {
    private var modified: Date?
    private var size: Int?
    private var inode: Int?

    /// Nil where there is no such file.
    init?(of path: String) {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
        modified = attributes[.modificationDate] as? Date
        size = (attributes[.size] as? NSNumber)?.intValue
        inode = (attributes[.systemFileNumber] as? NSNumber)?.intValue
    }
}
