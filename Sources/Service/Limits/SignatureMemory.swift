import Admission
import Cluster
import RaftCore
import Synchronization

/// The signatures that were used, for the groups that this node leads: in memory, for as long as it leads.
///
/// Who led before let signatures through that this node does not know. All of them are dated until this leadership
/// began, by the clocks of those nodes (`ReplayGuard` lets none through whose date is still to come); so such dates are
/// refused, and the server is told to sign anew.
final class SignatureMemory: Sendable {
    /// How far the clocks of two nodes may be apart.
    private static let clockDifferenceMilliseconds: Int64 = 1_000
    /// Of one group; ten minutes of 400 a second.
    private static let signaturesMax = 250_000

    private struct Memory: Sendable {
        var term: Term
        var replays: ReplayGuard
        var beginning: Beginning
    }

    /// When a leadership began, by a clock that may be wrong for a moment.
    ///
    /// Of what the clock shows at different questions the latest counts: it may be behind now. Once it has shown an
    /// earlier time for as long as a signature is fresh, and most nodes' clocks agreed with it all that time, that one
    /// counts: it was ahead before. A node that is alone has none to compare with: there a clock that was right, and is
    /// then behind for so long, looks the same, and nothing tells the two apart.
    private struct Beginning: Sendable {
        /// Milliseconds since 1970.
        private(set) var time: Int64
        /// The latest of what was shown since, all of it earlier than `time`, and since when.
        private var earlier: (time: Int64, since: MonotonicTime)?

        init(_ time: Int64) { self.time = time }

        mutating func show(_ shown: Int64, isSure: Bool, now: MonotonicTime) {
            guard shown < time else { return self = Beginning(shown) }
            guard isSure else { return earlier = nil }
            let known = earlier ?? (shown, now)
            earlier = (max(known.time, shown), known.since)
            if now >= known.since.adding(milliseconds: UInt64(SignatureCheck.windowMilliseconds)) {
                self = Beginning(max(known.time, shown))
            }
        }
    }

    private let memories = Mutex<[GroupID: Memory]>([:])

    /// - Parameters:
    ///   - isAlone: whether no other node can have led.
    ///   - isSure: whether the clocks of most nodes agree with `now`.
    ///   - now: milliseconds since 1970.
    func admit(
        _ signature: RequestSignature, nonce: UInt64, as leadership: Leadership, isAlone: Bool, isSure: Bool, now: Int64
    ) -> ReplayGuard.Verdict {
        let replays = memories.withLock { memories in
            let since = leadership.now.nanoseconds - min(leadership.since.nanoseconds, leadership.now.nanoseconds)
            let begun = now - Int64(clamping: since / 1_000_000) + (isAlone ? 0 : Self.clockDifferenceMilliseconds)
            // What it remembers of an earlier term stays good.
            let replays = memories[leadership.group]?.replays ?? ReplayGuard(signaturesMax: Self.signaturesMax)
            var memory = Memory(term: leadership.term, replays: replays, beginning: Beginning(begun))
            if let known = memories[leadership.group], known.term == leadership.term {
                memory = known
                memory.beginning.show(begun, isSure: isSure, now: leadership.now)
            }
            memories[leadership.group] = memory
            replays.begin(at: memory.beginning.time)
            return replays
        }
        return replays.admit(signature, nonce: nonce, now: now)
    }
}
