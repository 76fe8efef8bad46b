import Directory
import Logging
import PeerTransport
import RaftCore
import RecordModel
import Synchronization
import Wire

/// Answers other nodes about who takes part.
final class PeerHost: MembershipHost {
    /// How long the directory is asked before a node is told that nothing is certain; less than it waits for.
    private static let certaintyMilliseconds: UInt64 = 1_000

    private let parts: NodeParts
    private let directory: LeasedDirectory
    private let router: Router
    private let membership: Membership

    init(_ parts: NodeParts, router: Router, directory: LeasedDirectory, membership: Membership) {
        self.parts = parts
        self.directory = directory
        self.router = router
        self.membership = membership
    }

    func peerConnected(_ peer: NodeID) { membership.didConnect(to: peer) }

    func greet(_ introduction: Introduction, from node: NodeID, reply: @escaping @Sendable (NodeReply) -> Void) {
        let peer = PeerIdentity(
            node: node, incarnation: introduction.incarnation, bootCounter: introduction.bootCounter)
        let isElsewhere = parts.lane.peers.isRunningElsewhere(node, than: introduction.incarnation)
        let acknowledged = parts.lane.replicas.acknowledged(by: node)
        parts.platform.startTask { [weak self] in
            guard let self else { return reply(.unavailable("the node is stopping")) }
            var standing = await standing(of: peer, known: introduction.map?.epoch, isElsewhere: isElsewhere)
            standing.acknowledged = acknowledged
            // What an old folder says of the cluster is old, or of another history.
            if ![.outdated, .otherFolder, .duplicate].contains(standing.verdict) { hear(introduction.map) }
            reply(.done(standing.encoded()))
        }
    }

    /// - Parameter known: the epoch of the peer's map. A peer with a map need not know how the cluster was founded, and
    ///   only gets a newer map.
    private func standing(of peer: PeerIdentity, known: UInt64?, isElsewhere: Bool) async -> Standing {
        var verdict = verdict(on: peer)
        if [.otherFolder, .removed, .stranger].contains(verdict) {
            // It is the directory that decides; what this node knows of it may be old.
            // An answer that it does not know comes in time, too.
            switch await directory.refresh(by: parts.platform.deadline(milliseconds: Self.certaintyMilliseconds)) {
            case .success: verdict = self.verdict(on: peer)
            case .failure: verdict = .undecided
            }
        }
        if verdict == .otherFolder, isElsewhere { verdict = .duplicate }
        let (identity, map) = (parts.keeper.folder.identity, parts.keeper.directory.snapshot.map)
        guard let known else {
            return Standing(
                verdict: verdict, incarnation: identity.incarnation, promise: parts.keeper.folder.promise,
                founding: parts.keeper.folder.founding, map: map)
        }
        return Standing(
            verdict: verdict, incarnation: identity.incarnation, map: map.flatMap { $0.epoch > known ? $0 : nil })
    }

    /// Takes from a peer whom else there is to ask. All nodes that this one knows, by its file or by an old map, may be
    /// gone.
    private func hear(_ map: ClusterMap?) {
        guard let map, map.epoch > parts.keeper.placement.map?.epoch ?? 0 else { return }
        parts.heard.offer(map)
    }

    private func verdict(on peer: PeerIdentity) -> Standing.Verdict {
        do {
            return try parts.knownPeers.judge(peer, by: parts.keeper.placement.map)
        } catch {
            parts.logger.error("what is known of node \(peer.node) cannot be kept: \(error)")
            return .undecided
        }
    }

    func claim(
        _ incarnation: UInt64, previous: UInt64, for node: NodeID, reply: @escaping @Sendable (NodeReply) -> Void
    ) {
        guard !parts.lane.peers.isRunningElsewhere(node, than: incarnation) else {
            return reply(.failed("another process runs node \(node) on the data folder that counts"))
        }
        parts.platform.startTask { [weak self] in
            guard let self else { return reply(.unavailable("the node is stopping")) }
            reply(await commitClaim(incarnation, previous: previous, for: node))
        }
    }

    private func commitClaim(_ incarnation: UInt64, previous: UInt64, for node: NodeID) async -> NodeReply {
        let origin = AuditOrigin.node(node, at: parts.platform.clock.wallMilliseconds)
        let entry = DirectoryEntry(
            .changeMap(.claimNode(node.rawValue, incarnation: incarnation, previous: previous)), origin: origin)
        do {
            let bytes = try await router.submit(.machine(entry.encoded()), to: .directory, by: parts.deadline)
            if case .refused(let error) = try DirectoryOutcome(decoding: bytes) { return .failed(error.reason) }
            try await directory.refresh()
            return .done([])
        } catch {
            return .unavailable("the directory cannot be asked: \(error)")
        }
    }
}

/// What a node does for others, and with them, about who takes part. Called on the lane's event loop: short, and never
/// blocking.
protocol MembershipHost: AnyObject, Sendable {
    /// A connection to the peer was made: it can be asked now.
    func peerConnected(_ peer: NodeID)
    /// Answers with a `Standing`.
    func greet(_ introduction: Introduction, from node: NodeID, reply: @escaping @Sendable (NodeReply) -> Void)
    /// Has the directory commit that a node's data folder counts.
    func claim(
        _ incarnation: UInt64, previous: UInt64, for node: NodeID, reply: @escaping @Sendable (NodeReply) -> Void)
}

/// What applies the groups of which this node holds a replica. They come and go; readable from any thread.
final class HostedGroups: Sendable {
    private let appliers = Mutex<[GroupID: Applier]>([:])

    /// In the order of their groups.
    var all: [Applier] { appliers.withLock { $0.values.sorted { $0.group < $1.group } } }

    subscript(group: GroupID) -> Applier? { appliers.withLock { $0[group] } }

    func add(_ applier: Applier) { appliers.withLock { $0[applier.group] = applier } }

    func remove(_ group: GroupID) { _ = appliers.withLock { $0.removeValue(forKey: group) } }
}
