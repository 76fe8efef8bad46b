import PeerTransport
package import RaftCore
package import Wire

extension ClusterNode {
    /// The members that each group has in force, asked of their leaders; a group that has none at the moment is
    /// missing.
    package func members(by deadline: Deadline) async -> [GroupID: GroupMembers] {
        let groups = map.groups
        return await withTaskGroup(of: (GroupID, GroupMembers?).self) { tasks in
            for group in groups {
                tasks.addTask { (group, try? await self.router.members(of: group, by: deadline)) }
            }
            var members: [GroupID: GroupMembers] = [:]
            for await (group, found) in tasks { members[group] = found }
            return members
        }
    }
}

extension GroupMembers {
    /// Whether the group is as the map has it, its leader aside.
    package func isSettled(by desired: Configuration, epoch: UInt64) -> Bool {
        isCommitted && configuration == desired && self.epoch >= epoch
    }
}

/// The members of a group, as its leader has them in force.
package struct GroupMembers: Hashable, Sendable, WireMessage {
    package var leader: ReplicaID
    package var configuration: Configuration
    /// Whether the configuration is known to be committed.
    package var isCommitted: Bool
    /// What each of the others has of the log, in entries that it lacks.
    package var lag: [Lag] = []
    /// The epoch of the map that the leader goes by.
    package var epoch: UInt64 = 0
    /// What it waits for; empty where nothing is to be done, or is not known to be held up.
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

    /// Whether a replica was, or never will be, a member, so that it may give up what it holds: a committed
    /// configuration is without it, and none is under way.
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
