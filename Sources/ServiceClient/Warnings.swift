import Foundation
import Synchronization

/// What goes wrong without any call failing: said on standard error, each text once in a process.
package enum Warnings {
    private struct State {
        var said: Set<String> = []
        var listener: (@Sendable (String) -> Void)?
    }

    private static let state = Mutex(State())
    /// So that texts that are all different fill no memory.
    private static let textsMax = 256

    /// Says a text that has no secret in it: what is wrong, where, and what to do.
    package static func say(_ text: String) {
        let listener = state.withLock { state -> (@Sendable (String) -> Void)? in
            if let listener = state.listener { return listener }
            guard state.said.count < textsMax, state.said.insert(text).inserted else { return { _ in } }
            return nil
        }
        if let listener { return listener(text) }
        FileHandle.standardError.write(Data("zonekeeper: warning: \(text)\n".utf8))
    }

    /// Hands all texts to a listener instead, or to standard error again.
    static func redirect(to listener: (@Sendable (String) -> Void)?) { state.withLock { $0.listener = listener } }
}
