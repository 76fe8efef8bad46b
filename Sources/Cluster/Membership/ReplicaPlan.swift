package import Directory
package import RaftCore

/// What a node does to hold the replicas that the map wants on it. Pure.
package struct ReplicaPlan: Hashable, Sendable {
    /// A replica on this node.
    package struct Place: Hashable, Sendable {
        package var group: GroupID
        package var generation: UInt64

        package init(group: GroupID, generation: UInt64) {
            self.group = group
            self.generation = generation
        }
    }

    /// To be opened, empty.
    package var open: [Place] = []
    /// To be given up, as soon as the group's leader says that they are not in force.
    package var release: [Place] = []
    /// Wanted, but were here once and have lost their data: the directory has to give them later generations.
    package var renew: [Place] = []

    /// - Parameters:
    ///   - held: the generation of each replica that is open.
    ///   - used: the last generation that was ever open on this folder, of each group. No replica is opened under it
    ///     again: it may have voted.
    package init(map: ClusterMap, node: UInt64, held: [GroupID: UInt64], used: [GroupID: UInt64]) {
        for group in map.groups {
            let wanted = map.replicas(ofShard: group.shard).first { $0.node == node }?.generation
            switch (wanted, held[group]) {
            case (nil, nil): break
            case (let wanted?, nil):
                let place = Place(group: group, generation: wanted)
                if let last = used[group], last >= wanted { renew.append(place) } else { open.append(place) }
            case (let wanted, let present?):
                if wanted != present { release.append(Place(group: group, generation: present)) }
            }
        }
    }
}
