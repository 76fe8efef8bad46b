import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore
import Synchronization
import Wire

/// Founds the cluster or joins it, meets the others, and keeps this node what the map says.
final class Membership: Sendable {
    private static let formationMilliseconds: UInt64 = 200
    private static let answerMilliseconds: UInt64 = 2_000

    private let parts: NodeParts
    private let router: Router
    private let lane: Lane
    private let lease: DirectoryLease
    private let participation: Participation
    private let tending: ReplicaTending
    /// Peers that have said what they think of this node, since they were last connected.
    private let met = Mutex<Set<NodeID>>([])

    /// Whether others may know that this folder is an old copy, which is asked after the start.
    let mayBeOld: Bool

    private var folder: NodeFolder { parts.keeper.folder }
    private var identity: NodeIdentity { parts.keeper.folder.identity }
    private var placement: Placement { parts.keeper.placement }

    /// - Parameter lease: of what this node knows of the directory.
    init(_ parts: NodeParts, router: Router, lease: DirectoryLease, participation: Participation) {
        self.parts = parts
        self.router = router
        lane = parts.lane
        self.lease = lease
        self.participation = participation
        tending = ReplicaTending(parts, router: router, lease: lease, participation: participation)
        mayBeOld =
            parts.keeper.folder.identity.hasTakenPart
            && !parts.peerBook.addresses(by: parts.keeper.placement.map).isEmpty
    }

    /// Founds the cluster or joins it, and keeps the replicas here as the map has them, until the task is cancelled.
    func keep() async {
        if placement.map == nil {
            guard await settle() else { return }
        }
        if mayBeOld { await introduceBeforeStart() }
        try? await lane.eventLoop.submit { [self] in lane.peers.trust.isHeld = !participation.isAllowed }.get()
        while !Task.isCancelled, participation.ending == nil {
            if let reason = participation.unnotedEnd {
                participation.beginAnew(reason)
            } else {
                await tending.reconcile()
                // A removed node learns of its removal by asking.
                let (others, met) = (peers.map(\.node), met.withLock(\.self))
                let isCurrent = lease.isValid(at: parts.platform.clock.now)
                await renewIntroductions(to: isCurrent ? others.filter { !met.contains($0) } : others)
            }
            try? await parts.platform.clock.sleep(milliseconds: parts.settings.membershipIntervalMilliseconds)
        }
    }

    /// What a node without peers does to become a cluster, before it is started.
    func foundAlone() async throws {
        while placement.map == nil {
            switch formation.next([:]) {
            case .promise(let map): try folder.update { $0.promise = .init(map.encoded()) }
            case .found(let map): try await found(map)
            default: preconditionFailure("a node without peers waits for some")
            }
        }
    }

    // MARK: Founding and joining

    private var formation: Bootstrap {
        Bootstrap(
            node: parts.settings.nodeID.rawValue, incarnation: identity.incarnation, configured: parts.configured,
            promise: folder.promise, heard: parts.heard.map)
    }

    /// Becomes part of a cluster.
    /// - Returns: false if the task was cancelled, or the node has ended.
    private func settle() async -> Bool {
        while !Task.isCancelled, participation.ending == nil {
            let formation = formation
            let answers = await introduceToAll()
            do {
                switch formation.next(answers) {
                case .promise(let map):
                    try folder.update { $0.promise = .init(map.encoded()) }
                    continue
                case .found(let map):
                    await distrust(besides: answers)
                    try await found(map)
                    parts.logger.notice("founded cluster \(parts.settings.clusterID) with nodes \(map.nodes.map(\.id))")
                    return true
                case .join(let map):
                    await distrust(besides: answers)
                    placement.offer(map)
                    parts.logger.notice("joins cluster \(parts.settings.clusterID) as node \(parts.settings.nodeID)")
                    return true
                case .claim(let previous): await claim(previous: previous, through: answers)
                case .wait(let reason): participation.say(reason)
                case .refuse(let reason):
                    participation.end(.excluded(reason))
                    return false
                }
            } catch let old as OldCopy {
                participation.beginAnew(old.description)
            } catch {
                participation.say("the data folder \(parts.settings.dataPath) cannot be used: \(error)")
            }
            try? await parts.platform.clock.sleep(milliseconds: Self.formationMilliseconds)
        }
        return false
    }

    private func found(_ map: ClusterMap) async throws {
        try folder.update { $0.found(by: map) }
        try await parts.keeper.openFirst()
        placement.offer(map)
    }

    /// Has nothing count that peers send who were not asked yet: they may know that this folder is an old copy.
    private func distrust(besides answers: [NodeID: Standing]) async {
        let asked = Set(answers.keys)
        guard !peers.allSatisfy({ asked.contains($0.node) }) else { return }
        try? await lane.eventLoop.submit { [lane] in lane.peers.trust.met = asked }.get()
    }

    private func claim(previous: UInt64, through answers: [NodeID: Standing]) async {
        for node in answers.keys.sorted() where answers[node]?.map != nil {
            let problem = await router.claim(
                identity.incarnation, previous: previous, through: node, by: parts.deadline)
            guard let problem else { return }
            participation.say("the cluster does not take this node's new data folder into use yet: \(problem)")
        }
    }

    // MARK: Meeting peers

    /// Where the others are, as far as this node knows.
    private var peers: [PeerAddress] { parts.peerBook.addresses(by: placement.map, heard: parts.heard.map) }

    /// A connection to a peer was made: it can be asked now.
    func didConnect(to peer: NodeID) {
        met.withLock { _ = $0.remove(peer) }
        // While this node is of no cluster it asks everyone all the time.
        guard placement.map != nil else { return }
        parts.platform.startTask { [weak self] in await self?.renewIntroduction(to: peer) }
    }

    /// A replica's data were found to be damaged.
    func repair(_ group: GroupID, _ damage: ReplicaDamage) { tending.repair(group, damage) }

    private func introduceToAll() async -> [NodeID: Standing] {
        let others = peers.map(\.node)
        return await withTaskGroup(of: (NodeID, Standing?).self) { tasks in
            for node in others { tasks.addTask { (node, await self.introduce(to: node)) } }
            var answers: [NodeID: Standing] = [:]
            for await (node, standing) in tasks { answers[node] = standing }
            return answers
        }
    }

    private func introduce(to node: NodeID) async -> Standing? {
        let identity = identity
        let introduction = Introduction(
            incarnation: identity.incarnation, bootCounter: identity.bootCounter, map: placement.map)
        let standing = await router.introduce(
            introduction, to: node, by: parts.platform.deadline(milliseconds: Self.answerMilliseconds))
        parts.keeper.acknowledgements.note(standing?.acknowledged ?? [], by: node)
        return standing
    }

    /// Asks everyone whether this data folder is the newest, before anything of it may count; but not longer than a
    /// replica keeps silent after a start anyway: peers that are away must not keep the others from going on.
    private func introduceBeforeStart() async {
        let end = parts.platform.clock.now.adding(milliseconds: 2 * parts.settings.electionTimeoutMilliseconds)
        while !Task.isCancelled, participation.ending == nil {
            let others = peers.map(\.node)
            let silent = met.withLock { met in others.filter { !met.contains($0) } }
            if silent.isEmpty || parts.platform.clock.now >= end { return }
            await renewIntroductions(to: silent)
            try? await parts.platform.clock.sleep(milliseconds: 20)
        }
    }

    private func renewIntroductions(to nodes: [NodeID]) async {
        await withTaskGroup(of: Void.self) { tasks in
            for node in nodes { tasks.addTask { await self.renewIntroduction(to: node) } }
        }
    }

    private func renewIntroduction(to node: NodeID) async {
        guard let standing = await introduce(to: node) else { return }
        placement.offer(standing.map)
        await hold(standing, of: node)
        met.withLock { _ = $0.insert(node) }
        guard placement.map != nil, identity.hasTakenPart else { return }
        let id = parts.settings.nodeID
        switch standing.verdict {
        case .welcome, .undecided, .stranger: break
        case .outdated:
            participation.beginAnew("node \(node) knows a later start of this data folder: it is an old copy")
        case .otherFolder:
            participation.beginAnew("the cluster goes by another data folder of node \(id): this one is an old one")
        case .duplicate:
            participation.end(
                .excluded(
                    "another process runs node \(id) on the data folder that counts: stop this one, or give it an id of its own"
                ))
        case .removed: participation.end(.excluded(Bootstrap.removal(of: id.rawValue)))
        }
    }

    /// Looks whether this node lost what it acknowledged to a peer: an old image of the folder, of the same start. Only
    /// then does what the peer sends count.
    private func hold(_ standing: Standing, of node: NodeID) async {
        let lost = try? await lane.eventLoop.submit { [lane] in
            let lost = lane.replicas.lost(standing.acknowledged)
            if lost == nil { lane.peers.trust.met?.insert(node) }
            return lost
        }.get()
        guard let lost = lost ?? nil else { return }
        participation.beginAnew(
            "node \(node) leads group \(lost.group), and this node acknowledged entry \(lost.index) to it, which is not here: the folder is an old copy"
        )
    }
}
