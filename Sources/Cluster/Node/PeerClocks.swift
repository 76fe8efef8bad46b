import PeerTransport
import RecordModel

/// This node's clock held against its peers'. Pure; wall clocks in milliseconds since 1970.
///
/// A clock is remembered by what it shows when the monotonic clock is zero. So a clock that jumps is noticed at once,
/// this node's own too, and a peer that is away for a while still counts.
///
/// The middle of all clocks is the right one. While most clocks are right it is one of them; and however wrong they all
/// are, one node goes on. Where two clocks are in the middle and differ, nobody can tell which is right, and both nodes
/// go on.
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
