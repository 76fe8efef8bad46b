import Cluster
package import Directory
import PeerTransport
import RaftCore
import RecordModel

/// Who is in the cluster, where replicas are and shall be, and what this node is at.
package struct ClusterAdministration: Sendable {
    let administration: Administration
    private var node: ClusterNode { administration.service.node }

    // MARK: The map

    /// The cluster's map, and how far the nodes are with it.
    package struct Overview: Sendable {
        /// What is wanted.
        package var map: ClusterMap
        /// In the order of their ids.
        package var groups: [Group]
        /// Groups that do not have the replicas, or the leader, that the map wants.
        package var groupsToSettle: Int
        /// Groups that another node leads than the map prefers.
        package var leadersToMove: Int

        /// Whether nothing is on its way. A node that leaves is there until the directory's leader has dropped it.
        package var isSettled: Bool { groupsToSettle == 0 && !map.nodes.contains(where: \.isLeaving) }
    }

    /// One group, as the map wants it and as its leader has it.
    package struct Group: Sendable {
        /// 0 is the directory.
        package var id: UInt64
        /// Nil for the directory.
        package var shard: Int?
        /// A node.
        package var preferredLeader: UInt64
        /// As the map wants them.
        package var desired: Members
        /// Nil where the leader did not say; then the group does not count as settled.
        package var present: Present?

        /// Replicas that vote, those that did before a change that is under way, and those that only learn.
        package typealias Members = (
            voters: [ClusterMap.Replica], outgoing: [ClusterMap.Replica], learners: [ClusterMap.Replica]
        )

        fileprivate static func members(_ configuration: Configuration) -> Members {
            func replicas(_ ids: [ReplicaID]) -> [ClusterMap.Replica] {
                ids.map { ClusterMap.Replica(node: $0.node.rawValue, generation: $0.generation) }
            }
            return (
                replicas(configuration.voters), replicas(configuration.outgoing), replicas(configuration.learners)
            )
        }

        /// What the group's leader says.
        package struct Present: Sendable {
            /// A node.
            package var leader: UInt64
            /// Those in force.
            package var members: Members
            /// Whether they are those that the map wants.
            package var isSettled: Bool
            /// Empty where nothing is to be done, or is not known to be held up.
            package var waitsFor: String
            /// Nodes that lack entries of the log, and how many.
            package var lag: [(node: UInt64, missingEntries: UInt64)]
        }
    }

    /// Asks the groups' leaders.
    package func overview() async throws(RequestFailure) -> Overview {
        guard let map = try await administration.service.cluster.newestDirectory().map else {
            throw .tryAgain("the cluster is being made; try again in a moment")
        }
        return Overview(of: map, await node.members(by: node.deadline()))
    }

    /// Changes the map.
    /// - Returns: the cluster after it. That this node cannot find out now how far the change is must not hide that it
    ///   is made; nothing counts as settled then.
    package func change(_ change: MapChange) async throws(RequestFailure) -> Overview {
        try await administration.change(.changeMap(change))
        do throws(RequestFailure) { return try await overview() } catch { return Overview(of: node.map, [:]) }
    }

    // MARK: This node

    /// What this node is at.
    package struct Status: Sendable {
        /// Its id.
        package var node: UInt64
        /// Nodes of another cluster are refused.
        package var clusterID: String
        /// Of the program.
        package var version: String
        /// What this build understands.
        package var featureLevelMax: UInt64
        /// Why the node takes no clients; nil: it is ready.
        package var obstacle: String?
        /// Nil where it is not known.
        package var clockErrorMilliseconds: Int64?
        /// Whether the node takes only reads and deletions, because its disk is full.
        package var isDiskShort: Bool
        /// Files that are on their way here.
        package var fetchingFiles: UInt64
        /// Files that no node has.
        package var missingFiles: UInt64
        /// SHA-256 of the first of those that no node has.
        package var missingHashes: [[UInt8]]
        /// Those that this node holds.
        package var replicas: [Replica]
        /// One replica. `failure` is why it applies no more commands; nil: it does.
        package typealias Replica = (
            group: UInt64, role: String, term: UInt64, leader: UInt64?, commitIndex: UInt64, appliedIndex: UInt64,
            featureLevel: UInt64, waitingEffects: Int, waitingMatches: Int, failure: String?
        )
    }

    /// Asks the node's lane.
    package func status() async -> Status {
        let replicas = await node.status()
        let assets = node.assetCounts
        return Status(
            node: node.settings.nodeID.rawValue, clusterID: node.settings.clusterID, version: node.settings.version,
            featureLevelMax: node.settings.featureLevels.upperBound.rawValue, obstacle: node.obstacle(replicas),
            clockErrorMilliseconds: node.clockErrorMilliseconds, isDiskShort: node.isDiskShort,
            fetchingFiles: assets.fetching, missingFiles: assets.missing,
            missingHashes: assets.missingFiles.map(\.sha256),
            replicas: replicas.map {
                (
                    $0.group.rawValue, "\($0.role)", $0.term.rawValue, $0.leader?.node.rawValue,
                    $0.commitIndex.rawValue, $0.appliedIndex.rawValue, $0.level.rawValue, $0.waitingEffects,
                    $0.waitingMatches, $0.applyFailure
                )
            })
    }

    /// Whether this node leads the shard of a container's public data, and which one that is.
    package func leads(_ key: SchemaKey) -> (isLeader: Bool, shard: Int) {
        let zone = ZoneKey(database: DatabaseKey(publicDataIn: key), name: ZoneKey.defaultZoneName)
        let group = node.map.group(of: zone)
        return (node.leads(group), group.shard ?? -1)
    }

    // MARK: Hashes of states

    /// Has every replica of a group hash its state at the same place of the log.
    package func hashState(of group: UInt64) async throws(RequestFailure) -> [UInt8] {
        let group = try known(group)
        return try await ask(await node.router.submit(.hashState, to: group, by: node.deadline()))
    }

    /// The hashes that this node's replica recorded.
    package func stateHashes(of group: UInt64) async throws(RequestFailure) -> [(index: UInt64, hash: [UInt8])] {
        let group = try known(group)
        do {
            return try await node.stateHashes(of: group).map { ($0.index.rawValue, $0.hash) }
        } catch {
            throw RequestFailure(.internalError, "reading failed: \(error)")
        }
    }

    private func known(_ group: UInt64) throws(RequestFailure) -> GroupID {
        if node.map.groups.contains(GroupID(group)) { return GroupID(group) }
        throw .badRequest("group: 0 to \(node.map.groups.count - 1) is expected")
    }
}

extension ClusterAdministration.Overview {
    /// - Parameter members: what the groups' leaders say; a group without one counts as not settled.
    init(of map: ClusterMap, _ members: [GroupID: GroupMembers]) {
        self.map = map
        groups = map.groups.map { group in
            let desired = map.configuration(of: group)
            return ClusterAdministration.Group(
                id: group.rawValue, shard: group.shard, preferredLeader: map.preferredLeader(of: group).rawValue,
                desired: ClusterAdministration.Group.members(desired),
                present: members[group].map { members in
                    .init(
                        leader: members.leader.node.rawValue,
                        members: ClusterAdministration.Group.members(members.configuration),
                        isSettled: members.isSettled(by: desired, epoch: map.epoch), waitsFor: members.waitsFor,
                        lag: members.lag.filter { $0.missingEntries > 0 }.map {
                            ($0.replica.node.rawValue, $0.missingEntries)
                        })
                })
        }
        groupsToSettle = groups.count { $0.present?.isSettled != true }
        leadersToMove = groups.count { $0.present?.leader != $0.preferredLeader }
    }
}
