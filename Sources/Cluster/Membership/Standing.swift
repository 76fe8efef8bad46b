package import Directory
package import RaftCore
package import Wire

/// What a node says of itself, and of the one that asks, when two nodes meet.
package struct Standing: Hashable, Sendable {
    /// What the answering node thinks of the asking one's data folder.
    package enum Verdict: UInt64, Hashable, Sendable {
        /// Nothing is known against it.
        case welcome = 1
        /// The answering node knows a later start of the same folder: it is an old copy.
        case outdated = 2
        /// The directory knows another folder of the node: this one is lost, or an old one.
        case otherFolder = 3
        /// The directory knows another folder of the node, and a process runs on that one now.
        case duplicate = 4
        /// The node was removed from the cluster.
        case removed = 5
        /// The node is not in the cluster.
        case stranger = 6
        /// What the directory says cannot be known at the moment.
        case undecided = 7
    }

    package var verdict: Verdict
    /// The number of the answering node's data folder.
    package var incarnation: UInt64
    /// The map that it promised to found; nil if there is none, or it has founded, or the asking node has a map.
    package var promise: ClusterMap?
    /// The map by which it founded; nil if it has not, or joined later, or the asking node has a map.
    package var founding: ClusterMap?
    /// The cluster's map as it knows it; nil where the directory has none yet, or none newer than the asking node's.
    package var map: ClusterMap?
    /// What the asking node has acknowledged to it, in groups that it leads, or said to it as their leader.
    package var acknowledged: [Acknowledged]

    /// An entry that a replica said it has on its disk.
    package struct Acknowledged: Hashable, Sendable {
        package var group: GroupID
        package var replica: ReplicaID
        /// Of the leader to whom it was said.
        package var term: Term
        package var index: LogIndex

        package init(group: GroupID, replica: ReplicaID, term: Term, index: LogIndex) {
            self.group = group
            self.replica = replica
            self.term = term
            self.index = index
        }

        /// Whether a replica of this state has lost what it acknowledged. In a later term than the leader's the entry
        /// may have been replaced rightly; in that term or an earlier one it can only be lost.
        package func isLost(id: ReplicaID, term: Term, durable: LogIndex) -> Bool {
            id == replica && term <= self.term && durable < index
        }
    }

    package init(
        verdict: Verdict, incarnation: UInt64, promise: ClusterMap? = nil, founding: ClusterMap? = nil,
        map: ClusterMap? = nil, acknowledged: [Acknowledged] = []
    ) {
        self.acknowledged = acknowledged
        self.verdict = verdict
        self.incarnation = incarnation
        self.promise = promise
        self.founding = founding
        self.map = map
    }
}

extension Standing: WireMessage {
    package static var blank: Self { Standing(verdict: .undecided, incarnation: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &verdict)
        try wire.field(2, &incarnation)
        try wire.field(3, &promise)
        try wire.field(4, &founding)
        try wire.field(5, &map)
        try wire.field(6, &acknowledged)
    }
}

/// How a node names itself when it asks for a `Standing`.
package struct Introduction: Hashable, Sendable, WireMessage {
    /// The number of its data folder.
    package var incarnation: UInt64
    /// The number of this start on it.
    package var bootCounter: UInt64
    /// The map that it goes by, so that a node that has none learns whom else to ask.
    package var map: ClusterMap?

    package init(incarnation: UInt64, bootCounter: UInt64, map: ClusterMap? = nil) {
        self.incarnation = incarnation
        self.bootCounter = bootCounter
        self.map = map
    }

    package static var blank: Self { Introduction(incarnation: 0, bootCounter: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &incarnation)
        try wire.field(2, &bootCounter)
        try wire.field(3, &map)
    }
}

extension Standing.Acknowledged: WireMessage {
    package static var blank: Self {
        Standing.Acknowledged(group: GroupID(0), replica: ReplicaID(0), term: .zero, index: .zero)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &group)
        try wire.field(2, &replica)
        try wire.field(3, &term)
        try wire.field(4, &index)
    }
}

extension Standing.Verdict: WireValue {}
