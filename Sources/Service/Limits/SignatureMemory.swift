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
    }

    private let memories = Mutex<[GroupID: Memory]>([:])

    /// - Parameters:
    ///   - isAlone: whether no other node can have led.
    ///   - now: milliseconds since 1970.
    func admit(
        _ signature: RequestSignature, nonce: UInt64, as leadership: Leadership, isAlone: Bool, now: Int64
    ) -> ReplayGuard.Verdict {
        let replays = memories.withLock { memories in
            let memory = memories[leadership.group]
            // What it remembers of an earlier term stays good.
            let replays = memory?.replays ?? ReplayGuard(signaturesMax: Self.signaturesMax)
            memories[leadership.group] = Memory(term: leadership.term, replays: replays)
            let since = leadership.now.nanoseconds - min(leadership.since.nanoseconds, leadership.now.nanoseconds)
            let begun = now - Int64(clamping: since / 1_000_000) + (isAlone ? 0 : Self.clockDifferenceMilliseconds)
            // Each time: this node's clock may have been behind when it was asked first.
            replays.begin(at: begun, isNew: memory?.term != leadership.term)
            return replays
        }
        return replays.admit(signature, nonce: nonce, now: now)
    }
}
