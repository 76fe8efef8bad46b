import Cluster
package import Directory
import PeerTransport
import RaftCore
import RecordModel

/// Who is in the cluster, where replicas are and shall be, and what this node is at.
package struct ClusterAdministration: Sendable {
    private let administration: Administration
    private var node: ClusterNode { administration.service.node }

    package init(_ administration: Administration) { self.administration = administration }

    // MARK: The map

    /// The cluster's map, and how far the nodes are with it.
    package struct Overview: Sendable {
        package var map: ClusterMap
        package var groups: [Group]
        /// Groups that do not have the replicas, or the leader, that the map wants.
        package var groupsToSettle: Int
        package var leadersToMove: Int

        /// Whether nothing is on its way. A node that leaves is there until the directory's leader has dropped it.
        package var isSettled: Bool { groupsToSettle == 0 && !map.nodes.contains(where: \.isLeaving) }
    }

    /// One group, as the map wants it and as its leader has it.
    package struct Group: Sendable {
        package var id: UInt64
        /// Nil for the directory.
        package var shard: Int?
        package var preferredLeader: UInt64
        package var desired: Members
        /// Nil where the leader did not say; then the group does not count as settled.
        package var present: Present?

        package struct Members: Sendable {
            package var voters: [ClusterMap.Replica]
            /// The voters before a change that is under way.
            package var outgoing: [ClusterMap.Replica]
            package var learners: [ClusterMap.Replica]

            init(_ configuration: Configuration) {
                func replicas(_ ids: [ReplicaID]) -> [ClusterMap.Replica] {
                    ids.map { ClusterMap.Replica(node: $0.node.rawValue, generation: $0.generation) }
                }
                voters = replicas(configuration.voters)
                outgoing = replicas(configuration.outgoing)
                learners = replicas(configuration.learners)
            }
        }

        package struct Present: Sendable {
            package var leader: UInt64
            package var members: Members
            package var isSettled: Bool
            /// Empty where nothing is to be done, or is not known to be held up.
            package var waitsFor: String
            /// Nodes that lack entries of the log, and how many.
            package var lag: [(node: UInt64, missingEntries: UInt64)]
        }
    }

    package func overview() async throws(RequestFailure) -> Overview {
        guard let map = try await administration.service.newestDirectory().map else {
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
        package var node: UInt64
        package var clusterID: String
        package var version: String
        package var featureLevelMax: UInt64
        /// Why the node takes no clients; nil: it is ready.
        package var obstacle: String?
        /// Nil where it is not known.
        package var clockErrorMilliseconds: Int64?
        /// Files that are on their way here, and that no node has.
        package var fetchingFiles: UInt64
        package var missingFiles: UInt64
        /// SHA-256 of the first of those that no node has.
        package var missingHashes: [[UInt8]]
        package var replicas: [Replica]

        package struct Replica: Sendable {
            package var group: UInt64
            package var role: String
            package var term: UInt64
            package var leader: UInt64?
            package var commitIndex: UInt64
            package var appliedIndex: UInt64
            package var featureLevel: UInt64
            package var waitingEffects: Int
            /// Why it applies no more commands; nil: it does.
            package var failure: String?
        }
    }

    package func status() async -> Status {
        let replicas = await node.status()
        let assets = node.assetCounts
        return Status(
            node: node.settings.nodeID.rawValue, clusterID: node.settings.clusterID, version: node.settings.version,
            featureLevelMax: node.settings.featureLevels.upperBound.rawValue, obstacle: node.obstacle(replicas),
            clockErrorMilliseconds: node.clockErrorMilliseconds, fetchingFiles: assets.fetching,
            missingFiles: assets.missing, missingHashes: assets.missingFiles.map(\.sha256),
            replicas: replicas.map { replica in
                Status.Replica(
                    group: replica.group.rawValue, role: "\(replica.role)", term: replica.term.rawValue,
                    leader: replica.leader?.node.rawValue, commitIndex: replica.commitIndex.rawValue,
                    appliedIndex: replica.appliedIndex.rawValue, featureLevel: replica.level.rawValue,
                    waitingEffects: replica.waitingEffects, failure: replica.applyFailure)
            })
    }

    /// Whether this node leads the shard of a container's public data, and which one that is.
    package func leads(_ key: SchemaKey) -> (isLeader: Bool, shard: Int) {
        let zone = ZoneKey(database: DatabaseKey(publicDataIn: key), name: ZoneKey.defaultZoneName)
        let group = node.map.group(of: zone)
        return (node.leader(of: group) == node.settings.nodeID, group.shard ?? -1)
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
                desired: .init(desired),
                present: members[group].map { members in
                    .init(
                        leader: members.leader.node.rawValue, members: .init(members.configuration),
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
