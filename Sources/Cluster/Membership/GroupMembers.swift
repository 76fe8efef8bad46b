package import RaftCore
package import Wire

/// The members of a group, as its leader has them in force.
package struct GroupMembers: Hashable, Sendable, WireMessage {
    package var leader: ReplicaID
    package var configuration: Configuration
    /// Whether the configuration is known to be committed.
    package var isCommitted: Bool
    /// What each of the others has of the log, in entries that it lacks.
    package var lag: [Lag] = []
    /// The epoch of the leader's map.
    package var epoch: UInt64 = 0
    /// What a pending change waits for; empty without one, or if nothing is known to hold it up.
    package var waitsFor: String = ""

    /// How far a member is behind.
    package struct Lag: Hashable, Sendable, WireMessage {
        package var replica: ReplicaID
        package var missingEntries: UInt64

        package static var blank: Self { GroupMembers.Lag(replica: ReplicaID(0), missingEntries: 0) }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &replica)
            try wire.field(2, &missingEntries)
        }
    }

    /// Whether a replica is a former member, or never became one, so that it may be deleted: a committed configuration
    /// is without it, and no change is under way.
    package func isWithout(_ replica: ReplicaID) -> Bool {
        isCommitted && !configuration.isJoint && !configuration.contains(replica)
    }

    package static var blank: Self {
        GroupMembers(leader: ReplicaID(0), configuration: Configuration(voters: []), isCommitted: false)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &leader)
        try wire.field(2, nested: &configuration)
        try wire.field(3, &isCommitted)
        try wire.field(4, &lag)
        try wire.field(5, &epoch)
        try wire.field(6, &waitsFor)
    }
}

extension GroupMembers {
    /// Whether the group is as the map has it, its leader aside.
    package func isSettled(by desired: Configuration, epoch: UInt64) -> Bool {
        isCommitted && configuration == desired && self.epoch >= epoch
    }
}
