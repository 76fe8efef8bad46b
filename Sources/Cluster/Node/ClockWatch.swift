import Logging
import PeerTransport
import RaftCore
import RecordModel
import Synchronization

/// Whether this node's clock may be trusted, for all who make commands. Any thread.
package final class ClockWatch: Sendable {
    private struct State {
        var clocks = PeerClocks()
        /// What was last logged.
        var said = PeerClocks.Verdict.agrees
        /// The base at the last review.
        var lastBase: Int64?
        /// Ends what relies on the clock beside the lane.
        var onJump: @Sendable (MonotonicTime) -> Void = { _ in }
    }

    /// By how much the wall clock may move against the monotonic one between two looks, in milliseconds.
    static let jumpMilliseconds: UInt64 = 50

    private let node: NodeID
    private let clock: any NodeClock
    private let state = Mutex(State())

    init(node: NodeID, clock: any NodeClock) {
        self.node = node
        self.clock = clock
    }

    /// What this node's clock shows when the monotonic one is zero.
    private var base: Int64 {
        while true {
            let before = clock.now
            let base = clock.wallMilliseconds &- Int64(clamping: before.nanoseconds / 1_000_000)
            // A pause between the two readings would look like a jump.
            if clock.now < before.adding(milliseconds: Self.jumpMilliseconds / 5) { return base }
        }
    }

    func onJump(_ end: @escaping @Sendable (MonotonicTime) -> Void) { state.withLock { $0.onJump = end } }

    /// Where this machine's clocks disagree it may have stood still longer than they say: no lease lasts. On the lane's
    /// event loop.
    func review(_ replicas: ReplicaTable) {
        let base = base
        if hasJumped(to: base) {
            for group in replicas.groups { replicas[group]?.raft.clockJumped() }
            state.withLock(\.onJump)(clock.now)
        }
        // Only now: a request that finds no jump from here on finds no lease of before either.
        state.withLock { $0.lastBase = base }
    }

    /// Whether the wall clock moved against the monotonic one since the last review: it was set, or the monotonic one
    /// stood still, as on a virtual machine that was paused.
    var hasJumped: Bool { hasJumped(to: base) }

    private func hasJumped(to base: Int64) -> Bool {
        state.withLock { $0.lastBase.map { (base &- $0).magnitude > Self.jumpMilliseconds } ?? false }
    }

    func heard(_ node: NodeID, ahead: ClosedRange<Int64>) {
        let base = base
        state.withLock { $0.clocks.heard(node, ahead: ahead, base: base) }
    }

    func keep(only nodes: [NodeID]) { state.withLock { $0.clocks.keep(only: nodes) } }

    var verdict: PeerClocks.Verdict {
        let base = base
        return state.withLock { $0.clocks.verdict(base: base) }
    }

    /// How far this node's clock is ahead of its peers', in milliseconds, where it is wrong; nil where it is right.
    /// While it is wrong the node makes no commands.
    package var errorMilliseconds: Int64? {
        if case .wrong(let ahead) = verdict { ahead } else { nil }
    }

    /// Why this node makes no commands, in words for clients and operators; nil while its clock is right.
    package var problem: String? {
        errorMilliseconds.map {
            "the clock of node \(node) is \(Self.text($0)) those of most nodes, so it takes no writes: set its clock"
        }
    }

    /// Why this node's clock may be wrong, in words for clients; nil where it is known to be right or wrong.
    package var doubt: String? {
        switch verdict {
        case .agrees, .wrong: return nil
        case .unknown: return "node \(node) has not heard from most nodes since its start, so its clock may be wrong"
        case .undecided(let ahead):
            return """
                the clock of node \(node) is \(Self.text(ahead)) another's, and there is no telling which is right: set the \
                one that is wrong
                """
        }
    }

    /// What this node's clock shows; nil while it is wrong, or may be.
    var knownMilliseconds: Int64? { verdict == .agrees ? clock.wallMilliseconds : nil }

    /// Logs what has changed since it was last asked.
    func say(_ logger: Logger) {
        let verdict = verdict
        guard verdict != .unknown else { return }
        let last = state.withLock { state in
            defer { state.said = verdict }
            return state.said
        }
        switch (verdict, last) {
        case (.wrong, .wrong), (.undecided, .undecided), (.agrees, .agrees), (.unknown, _): break
        case (.wrong(let ahead), _):
            logger.warning(
                "this node's clock is \(Self.text(ahead)) those of most nodes: it makes no commands and leads no group until its clock is right"
            )
        case (.undecided(let ahead), _):
            logger.warning("this node's clock is \(Self.text(ahead)) another's, and there is no telling which is right")
        case (.agrees, _): logger.notice("this node's clock agrees with those of its peers again")
        }
    }

    private static func text(_ ahead: Int64) -> String {
        "\(ahead.magnitude / 1_000) s \(ahead < 0 ? "behind" : "ahead of")"
    }
}

/// Compares this node's clock with its peers'. Pure; wall clocks in milliseconds since 1970.
///
/// A clock is remembered by what it shows when the monotonic clock is zero. So a jump is noticed at once, also of this
/// node's own clock, and a peer that is away for a while still counts.
///
/// The median of all clocks is right. While most clocks are right it is one of them; and however wrong they all are,
/// one node continues. If two clocks are in the middle and differ, nobody can tell which is right, and both nodes
/// continue.
struct PeerClocks: Hashable, Sendable {
    /// Clocks that differ by more are taken for wrong.
    static let differenceMax = ShardClock.stepMax

    /// What the clocks come to.
    enum Verdict: Hashable, Sendable {
        case agrees
        /// Too few clocks were heard to say.
        case unknown
        /// There is no telling which of two clocks is wrong.
        case undecided(ahead: Int64)
        /// This node's clock is wrong by so much.
        case wrong(ahead: Int64)
    }

    /// What each peer's clock shows when the monotonic one is zero.
    private var bases: [NodeID: Int64] = [:]
    /// How many nodes the cluster has, this one too.
    private var nodeCount = 1

    /// A peer's clock was heard. What was known of it stays as far as it is possible: this node's clock may have been
    /// set since it asked, and then almost anything is.
    /// - Parameters:
    ///   - ahead: how far it may be ahead of this node's.
    ///   - base: of this node's own clock.
    mutating func heard(_ node: NodeID, ahead: ClosedRange<Int64>, base: Int64) {
        let known = Self.distance(bases[node] ?? base, base)
        let ahead = min(max(known, ahead.lowerBound), ahead.upperBound)
        let (sum, isFar) = base.addingReportingOverflow(ahead)
        bases[node] = isFar ? (ahead < 0 ? .min : .max) : sum
    }

    /// The cluster has these nodes, this one too: all others are forgotten.
    mutating func keep(only nodes: [NodeID]) {
        bases = bases.filter { nodes.contains($0.key) }
        nodeCount = max(1, nodes.count)
    }

    /// - Parameter base: of this node's own clock.
    func verdict(base: Int64) -> Verdict {
        let all = (bases.values + [base]).sorted()
        guard all.count * 2 > nodeCount else { return .unknown }
        let middles = [all[(all.count - 1) / 2], all[all.count / 2]]
        let distances = middles.map { Self.distance(base, $0) }
        if let far = distances.min(by: { $0.magnitude < $1.magnitude }), Self.isFar(far) { return .wrong(ahead: far) }
        guard let far = distances.first(where: Self.isFar) else { return .agrees }
        return .undecided(ahead: far)
    }

    private static func isFar(_ distance: Int64) -> Bool { distance.magnitude > UInt64(differenceMax) }

    private static func distance(_ left: Int64, _ right: Int64) -> Int64 {
        let (distance, isFar) = left.subtractingReportingOverflow(right)
        return isFar ? (left < right ? .min : .max) : distance
    }
}
