/// The program that a node runs, as it tells its peers.
package struct PeerBuild: Hashable, Sendable {
    /// For people.
    package var version: String
    /// The feature levels that the node can follow. The least of them is at least what the cluster has reached, as far
    /// as the node knows: nodes whose levels do not overlap cannot be in one cluster. Nil: the build knows of none.
    package var levels: ClosedRange<UInt64>?

    package init(version: String = "", levels: ClosedRange<UInt64>?) {
        self.version = version
        self.levels = levels
    }

    /// Why a peer cannot be in one cluster with a node of this build, in words that have "it" for the peer; nil if it
    /// can.
    package func refusal(of peer: PeerBuild) -> String? {
        guard let levels else { return nil }
        guard let others = peer.levels else {
            return "its build is from before feature levels, and would apply the log otherwise: stop all nodes, then "
                + "start all of them with one build"
        }
        if others.overlaps(levels) { return nil }
        let both =
            "its build \(peer.version) follows feature levels \(Self.text(others)), and this node, build \(version), "
            + Self.text(levels)
        return others.upperBound < levels.lowerBound
            ? "it is too old for this cluster: \(both). Start a later build there"
            : "this node is too old for its cluster: \(both). Start a later build here"
    }

    private static func text(_ levels: ClosedRange<UInt64>) -> String {
        levels.count == 1 ? "\(levels.lowerBound)" : "\(levels.lowerBound) to \(levels.upperBound)"
    }
}

/// What a node says of itself that changes while it runs.
package struct PeerPresence: Hashable, Sendable {
    package var build: PeerBuild
    /// The node's clock, in milliseconds since 1970.
    package var wallMilliseconds: Int64

    package init(build: PeerBuild, wallMilliseconds: Int64) {
        self.build = build
        self.wallMilliseconds = wallMilliseconds
    }
}

/// How far a peer's clock is ahead of this node's.
package enum PeerClockComparison {
    /// The differences that are possible, in milliseconds; 0 is among them where both may show the same.
    ///
    /// The peer read its clock at some moment between this node's asking and the answer's arrival. The longer a message
    /// waited on its way, or a process was stopped, the less is known; and hardly anything where this node's clock was
    /// set meanwhile.
    /// - Parameters:
    ///   - asked: this node's clock when it asked.
    ///   - heard: this node's clock when the answer came.
    package static func ahead(peer: Int64, asked: Int64, heard: Int64) -> ClosedRange<Int64> {
        clamped(peer, max(asked, heard))...clamped(peer, min(asked, heard))
    }

    private static func clamped(_ left: Int64, _ right: Int64) -> Int64 {
        let (difference, isFar) = left.subtractingReportingOverflow(right)
        return isFar ? (left < right ? .min : .max) : difference
    }
}
