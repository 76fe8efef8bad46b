import PeerTransport
package import RaftCore

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
