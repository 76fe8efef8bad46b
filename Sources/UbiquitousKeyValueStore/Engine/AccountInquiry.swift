import Dispatch
import Synchronization

/// The question to the server which user the session belongs to: whether it is under way, and the pauses before it is
/// asked again. Any thread.
final class AccountInquiry: Sendable {
    /// The pause before the next attempt.
    private struct Pause {
        var number: Int
        /// Whether the server asked for it.
        var isRequestedByServer: Bool
        var continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        /// The epoch of the service that is asked.
        var epoch = 0
        var isUnderWay = false
        /// Whether a caller asked for an answer during a request. The obstacle that this request met may be gone.
        var isWantedAgain = false
        var pause: Pause?
        var pauses = 0

        /// - Returns: the pause's number, or nil if the next attempt is to follow at once.
        mutating func beginPause(
            epoch: Int, isRequestedByServer: Bool, _ continuation: CheckedContinuation<Void, Never>
        ) -> Int? {
            if self.epoch != epoch { return nil }
            if isWantedAgain, !isRequestedByServer {
                isWantedAgain = false
                return nil
            }
            pauses += 1
            (isUnderWay, isWantedAgain) = (false, false)
            pause = Pause(number: pauses, isRequestedByServer: isRequestedByServer, continuation: continuation)
            return pauses
        }
    }

    private let state = Mutex(State())
    private let work: WorkCounter
    private let clock: any PreferenceClock
    private let queue: DispatchQueue

    /// - Parameters:
    ///   - work: what is under way; a pause is not.
    ///   - queue: where pauses end.
    init(work: WorkCounter, clock: any PreferenceClock, queue: DispatchQueue) {
        self.work = work
        self.clock = clock
        self.queue = queue
    }

    /// Whether a request is under way or about to begin.
    var isUnderWay: Bool { state.withLock(\.isUnderWay) }

    /// Another service is asked from now on, or none. A pause of the former one ends.
    func begin(epoch: Int, hasService: Bool) {
        let ended = state.withLock { state in
            (state.epoch, state.isUnderWay, state.isWantedAgain) = (epoch, hasService, false)
            if state.pause != nil { work.begin() }
            return state.pause.take()
        }
        ended?.continuation.resume()
    }

    /// The service of an epoch is not asked any more.
    func end(epoch: Int) { state.withLock { if $0.epoch == epoch { $0.isUnderWay = false } } }

    /// A caller wants the store to be synchronized now, which needs the account.
    func hurry() {
        state.withLock { if $0.isUnderWay { $0.isWantedAgain = true } }
        endPause { !$0.isRequestedByServer }
    }

    /// Pauses before the server is asked again. The pause does not count as work: callers do not wait for a server
    /// that is not there.
    /// - Parameter begun: called when the pause has begun.
    func pause(_ retryAfter: Int64?, or own: Int64, epoch: Int, begun: () -> Void) async {
        await withCheckedContinuation { continuation in
            let number = state.withLock {
                $0.beginPause(epoch: epoch, isRequestedByServer: retryAfter != nil, continuation)
            }
            guard let number else { return continuation.resume() }
            begun()
            clock.after(PreferenceSync.Pause.length(own: own, retryAfter: retryAfter), on: queue) {
                [self] in endPause { $0.number == number }
            }
            work.end()
        }
    }

    /// Ends the pause, if there is one.
    func endPause() { endPause { _ in true } }

    private func endPause(where matches: (Pause) -> Bool) {
        let pause = state.withLock { state -> Pause? in
            guard let ended = state.pause, matches(ended) else { return nil }
            (state.pause, state.isUnderWay) = (nil, true)
            work.begin()
            return ended
        }
        pause?.continuation.resume()
    }
}
