import Synchronization

/// What whoever keeps the watch waits at while there is nothing to watch: rung whenever that may have changed.
///
/// One waits at a time.
final class WatchBell: Sendable {
    private struct State {
        var isRung = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// Somebody who waits, now or next, looks again.
    func ring() {
        let waiting = state.withLock { state in
            defer { state.waiting = nil }
            state.isRung = state.waiting == nil
            return state.waiting
        }
        waiting?.resume()
    }

    /// Returns at the next ring; at once where it rang since the last one was heard.
    func wait() async {
        await withCheckedContinuation { continuation in
            let isRung = state.withLock { state in
                if state.isRung {
                    state.isRung = false
                    return true
                }
                state.waiting = continuation
                return false
            }
            if isRung { continuation.resume() }
        }
    }
}
