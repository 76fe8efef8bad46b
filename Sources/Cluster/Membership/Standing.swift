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

extension Standing: WireCodable {
    /// 1 verdict, 2 incarnation, 3 promise, 4 founding map, 5 map, 6 acknowledged (1 group, 2 replica, 3 term, 4
    /// index).
    package func encode(to writer: inout WireWriter) {
        writer.field(1, verdict.rawValue)
        writer.field(2, incarnation)
        if let promise { writer.field(3) { promise.encode(to: &$0) } }
        if let founding { writer.field(4) { founding.encode(to: &$0) } }
        if let map { writer.field(5) { map.encode(to: &$0) } }
        for entry in acknowledged {
            writer.field(6) { nested in
                nested.field(1, entry.group.rawValue)
                nested.field(2, entry.replica.rawValue)
                nested.field(3, entry.term.rawValue)
                nested.field(4, entry.index.rawValue)
            }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(verdict: .undecided, incarnation: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1:
                guard let verdict = Verdict(rawValue: try reader.unsigned()) else { throw .invalidValue(field: 1) }
                self.verdict = verdict
            case 2: incarnation = try reader.unsigned()
            case 3: promise = try reader.message()
            case 4: founding = try reader.message()
            case 5: map = try reader.message()
            case 6: acknowledged.append(try Self.acknowledged(&reader))
            default: try reader.skip()
            }
        }
    }

    private static func acknowledged(_ reader: inout WireReader) throws(WireError) -> Acknowledged {
        var nested = try reader.nested()
        var entry = Acknowledged(group: GroupID(0), replica: ReplicaID(0), term: .zero, index: .zero)
        while let field = try nested.nextField() {
            switch field {
            case 1: entry.group = GroupID(try nested.unsigned())
            case 2: entry.replica = ReplicaID(try nested.unsigned())
            case 3: entry.term = Term(try nested.unsigned())
            case 4: entry.index = LogIndex(try nested.unsigned())
            default: try nested.skip()
            }
        }
        return entry
    }
}

/// How a node names itself when it asks for a `Standing`.
package struct Introduction: Hashable, Sendable, WireCodable {
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

    /// 1 incarnation, 2 boot counter, 3 map.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, incarnation)
        writer.field(2, bootCounter)
        if let map { writer.field(3) { map.encode(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(incarnation: 0, bootCounter: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: incarnation = try reader.unsigned()
            case 2: bootCounter = try reader.unsigned()
            case 3: map = try reader.message()
            default: try reader.skip()
            }
        }
    }
}
