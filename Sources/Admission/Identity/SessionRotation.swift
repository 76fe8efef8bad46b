import Synchronization

/// Remembers the presented tokens of sessions, so that a replaced token is valid for a short time only.
///
/// Each answer to a request with a web auth token carries a new token. A client that sends requests in parallel uses
/// one token several times, so an older token stays valid until the grace time after a newer one of its session was
/// first presented. After that it is superseded, and refused. If it is presented much later (`reuseMilliseconds`), it
/// is no late retry: either the token or its successor was stolen, and the session should end (`takeReused`).
///
/// Bounded memory: about `sessionsMax / 2` recently used sessions are known, in stripes. For other sessions, and after
/// a restart, a token counts as the newest until a newer one is presented or learned of. What is learned late counts
/// from when it happened: a token presented here long after another node had seen its successor was reused as well. A
/// session has at most 34 moments: presentations within a sixteenth of the grace time count as the first of them, so
/// the grace time is never longer, and at most that much shorter. Thread-safe.
package final class SessionRotation: Sendable {
    /// What a presented token is.
    package enum Verdict: Hashable, Sendable {
        /// Good. `becameNewest`: the token is newer than all presented before, and other nodes must learn of it.
        case accepted(becameNewest: Bool)
        /// A newer one has been in use for longer than the grace time.
        case superseded
    }

    /// A token of a session, the newest one at that time, that was presented somewhere.
    package struct Use: Hashable, Sendable {
        /// The id of the session's token in the directory.
        package var sessionID: String
        /// Milliseconds since 1970.
        package var issued: Int64
        /// How long ago it was first presented, in milliseconds.
        package var age: Int64

        package init(sessionID: String, issued: Int64, age: Int64) {
            self.sessionID = sessionID
            self.issued = issued
            self.age = age
        }
    }

    /// From `time` on, tokens issued before `issued` were superseded.
    private struct Moment {
        var issued: Int64
        var time: Int64
    }

    /// The moments of one session, ascending in both members; the first may be older than the grace time.
    private struct Memory {
        var moments: [Moment] = []
        /// When a token was last presented here that counted as the newest.
        var presented = Int64.min
    }

    /// Two generations: what is used moves to the young one; when that is full, the old one is forgotten.
    private struct State {
        var young: [String: Memory] = [:]
        var old: [String: Memory] = [:]
        /// Sessions that should end.
        var reused: Set<String> = []
    }

    private final class Stripe: Sendable {
        let state = Mutex(State())
    }

    /// Sessions of one stripe that wait to be ended.
    private static let reusedMax = 1_000
    /// What is older counts as so old: years, beyond any session, and far from where numbers end.
    private static let ageMax: Int64 = 1 << 40

    private let grace: Int64
    private let reuse: Int64
    private let generationMax: Int
    private let stripes: [Stripe]

    /// - Parameters:
    ///   - graceMilliseconds: how long a token is good after a newer one was presented.
    ///   - reuseMilliseconds: how long after that the presentation of a superseded token ends the session.
    package init(graceMilliseconds: Int64 = 60_000, reuseMilliseconds: Int64 = 120_000, sessionsMax: Int) {
        precondition(graceMilliseconds >= 0 && sessionsMax >= 2, "grace \(graceMilliseconds), \(sessionsMax) sessions")
        precondition(reuseMilliseconds >= graceMilliseconds, "\(reuseMilliseconds) ms, grace \(graceMilliseconds) ms")
        grace = graceMilliseconds
        reuse = reuseMilliseconds
        let count = min(max(sessionsMax / 2_048, 1), 16)
        stripes = (0..<count).map { _ in Stripe() }
        generationMax = sessionsMax / 2 / count
    }

    /// Records a presented token of a live session, and judges it.
    ///
    /// - Parameters:
    ///   - issued: the token's issue time.
    ///   - now: milliseconds of the node's monotonic clock. With a wall clock, setting the clock could end sessions.
    /// - Returns: what it is, and the issue time of the session's newest token that was presented, for `nextIssue`.
    package func present(sessionID: String, issued: Int64, now: Int64) -> (verdict: Verdict, newest: Int64) {
        stripe(of: sessionID).state.withLock { state in
            var memory = Self.take(sessionID, from: &state)
            defer { put(memory, sessionID, into: &state) }
            if let superseding = memory.moments.first(where: { $0.issued > issued }) {
                let passed = now - superseding.time
                if passed > reuse { Self.noteReused(sessionID, in: &state) }
                let newest = memory.moments.last?.issued ?? issued
                return (passed <= grace ? .accepted(becameNewest: false) : .superseded, newest)
            }
            let isKnown = memory.moments.last?.issued == issued
            memory.presented = now
            note(issued, in: &memory, at: now, now: now)
            return (.accepted(becameNewest: !isKnown), issued)
        }
    }

    /// Takes note of a token that was presented to another node.
    /// - Parameter now: as in `present`.
    package func learn(_ use: Use, now: Int64) {
        let time = now - min(max(use.age, 0), Self.ageMax)
        stripe(of: use.sessionID).state.withLock { state in
            var memory = Self.take(use.sessionID, from: &state)
            if let place = memory.moments.firstIndex(where: { $0.issued >= use.issued }) {
                noteEarlier(use.issued, in: &memory, before: place, at: time)
            } else {
                // Between these two moments a token was good here and superseded elsewhere.
                if memory.presented != .min, memory.presented - time > reuse {
                    Self.noteReused(use.sessionID, in: &state)
                }
                note(use.issued, in: &memory, at: max(time, memory.moments.last?.time ?? time), now: now)
            }
            put(memory, use.sessionID, into: &state)
        }
    }

    /// The newest tokens presented or learned of in the last `milliseconds`; of a session all moments, in order. Who
    /// learned of the last one alone would take a token that was replaced long before it for a late retry.
    /// - Parameter now: as in `present`.
    package func uses(within milliseconds: Int64, now: Int64) -> [Use] {
        stripes.flatMap { stripe in
            // A copy, so that the lock is short.
            let generations = stripe.state.withLock { [$0.old, $0.young] }
            return generations.flatMap { memories in
                memories.flatMap { sessionID, memory in
                    memory.moments.filter { now - $0.time <= milliseconds }.map {
                        Use(sessionID: sessionID, issued: $0.issued, age: max(now - $0.time, 0))
                    }
                }
            }
        }
    }

    /// Sessions to end because a token was presented long after it was superseded; each is returned once. Sorted.
    package func takeReused() -> [String] {
        stripes.flatMap { stripe in
            stripe.state.withLock { state in
                defer { state.reused = [] }
                return state.reused
            }
        }.sorted()
    }

    /// Says again that a session should end: it could not be ended.
    package func putBackReused(_ sessionID: String) {
        stripe(of: sessionID).state.withLock { Self.noteReused(sessionID, in: &$0) }
    }

    /// How many sessions are remembered.
    package var sessionCount: Int {
        stripes.reduce(0) { $0 + $1.state.withLock { $0.young.count + $0.old.count } }
    }

    /// The issue time of the token that replaces one: later than that one's, and than that of any that was presented,
    /// even where the nodes' clocks differ. A client that asks twice at a time may have presented one that a clock gave
    /// which was ahead for a moment; what it holds by now must not be older than that.
    package func nextIssue(of sessionID: String, after issued: Int64, now: Int64) -> Int64 {
        let newest = stripe(of: sessionID).state.withLock { state in
            (state.young[sessionID] ?? state.old[sessionID])?.moments.last?.issued
        }
        return Self.nextIssue(after: max(issued, newest ?? issued), now: now)
    }

    /// The same, for a token that `present` has just accepted.
    /// - Parameter newest: as `present` said.
    package static func nextIssue(after newest: Int64, now: Int64) -> Int64 {
        newest < now ? now : newest == .max ? .max : newest + 1
    }

    private func stripe(of sessionID: String) -> Stripe {
        stripes[Int(UInt(bitPattern: sessionID.hashValue) % UInt(stripes.count))]
    }

    private static func noteReused(_ sessionID: String, in state: inout State) {
        if state.reused.count < reusedMax { state.reused.insert(sessionID) }
    }

    private static func take(_ sessionID: String, from state: inout State) -> Memory {
        state.young.removeValue(forKey: sessionID) ?? state.old.removeValue(forKey: sessionID) ?? Memory()
    }

    private func put(_ memory: Memory, _ sessionID: String, into state: inout State) {
        if state.young.count >= generationMax {
            state.old = state.young
            state.young = [:]
        }
        state.young[sessionID] = memory
    }

    private func note(_ issued: Int64, in memory: inout Memory, at time: Int64, now: Int64) {
        if let last = memory.moments.last {
            guard issued > last.issued else { return }
            if time - last.time <= grace / 16 {
                memory.moments[memory.moments.count - 1].issued = issued
            } else {
                memory.moments.append(Moment(issued: issued, time: time))
            }
        } else {
            memory.moments.append(Moment(issued: issued, time: time))
        }
        // Of the moments that are so long ago the last one says all: what was issued before it is reused.
        while memory.moments.count > 1, now - memory.moments[1].time > reuse { memory.moments.removeFirst() }
    }

    /// Takes note of a token that another node had seen before newer ones: those before it ended then, and not later.
    /// - Parameter place: the first moment that is of no older token.
    private func noteEarlier(_ issued: Int64, in memory: inout Memory, before place: Int, at learned: Int64) {
        let next = memory.moments[place]
        let before = place > 0 ? memory.moments[place - 1].time : .min
        let time = max(learned, before)
        guard time < next.time else { return }
        if place > 0, time - before <= grace / 16 {
            memory.moments[place - 1].issued = issued
            if next.issued == issued { memory.moments.remove(at: place) }
        } else if next.issued == issued || next.time - time <= grace / 16 {
            memory.moments[place].time = time
        } else {
            memory.moments.insert(Moment(issued: issued, time: time), at: place)
        }
    }
}
