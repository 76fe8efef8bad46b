import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore
import Synchronization
import Wire

/// Why a node came to its end by itself.
package enum NodeEnding: Hashable, Sendable {
    /// Its data folder is out of date: after a restart, the node sets it aside and joins with a new one.
    case beginsAnew(String)
    /// It has no business in the cluster; starting it again changes nothing.
    case excluded(String)
}

/// What a node remembers of its dealings with the others about membership.
struct MembershipState {
    var ending: NodeEnding?
    /// Whether others may know that this folder is an old copy, which is asked after the start.
    var mayBeOld = false
    /// Why the folder must not be used, if that cannot be written to it: the disk may be full.
    var givesUp: String?
    /// Peers that have said what they think of this node, since they were last connected.
    var met: Set<NodeID> = []
    /// What was last logged about waiting.
    var said = ""
    /// Replicas whose data were found to be damaged, to be exchanged once a sound one is known.
    var damaged: [GroupID: ReplicaDamage] = [:]
    /// Whether the directory has this node's addresses.
    var isAddressTold = false
}

extension ClusterNode {
    private static let formationMilliseconds: UInt64 = 200
    private static let answerMilliseconds: UInt64 = 2_000

    /// Why the node has ended by itself; nil while it has not. Set before `onFatalError` is called.
    package var ending: NodeEnding? { membership.withLock(\.ending) }

    /// Whether nothing is known that keeps this folder out of the cluster.
    var mayTakePart: Bool { membership.withLock { $0.ending == nil && $0.givesUp == nil } }

    /// Founds the cluster or joins it, and keeps the replicas here as the map has them, until the task is cancelled.
    func keepMembership() async {
        if placement.map == nil {
            guard await settle() else { return }
        }
        if membership.withLock(\.mayBeOld) { await introduceBeforeStart() }
        try? await lane.eventLoop.submit { [self] in lane.isHeld = !mayTakePart }.get()
        while !Task.isCancelled, ending == nil {
            if let reason = membership.withLock(\.givesUp) {
                beginAnew(reason)
            } else {
                await reconcileReplicas()
                // A removed node learns of its removal by asking.
                let (others, met) = (peers.map(\.node), membership.withLock(\.met))
                let isCurrent = lease.isValid(at: platform.clock.now)
                await renewIntroductions(to: isCurrent ? others.filter { !met.contains($0) } : others)
            }
            try? await platform.clock.sleep(milliseconds: settings.membershipIntervalMilliseconds)
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
            node: settings.nodeID.rawValue, incarnation: identity.incarnation, configured: configured,
            promise: folder.promise, heard: heard.map)
    }

    /// Becomes part of a cluster.
    /// - Returns: false if the task was cancelled, or the node has ended.
    private func settle() async -> Bool {
        while !Task.isCancelled, ending == nil {
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
                    logger.notice("founded cluster \(settings.clusterID) with nodes \(map.nodes.map(\.id))")
                    return true
                case .join(let map):
                    await distrust(besides: answers)
                    placement.offer(map)
                    logger.notice("joins cluster \(settings.clusterID) as node \(settings.nodeID)")
                    return true
                case .claim(let previous): await claim(previous: previous, through: answers)
                case .wait(let reason): say(reason)
                case .refuse(let reason):
                    end(.excluded(reason))
                    return false
                }
            } catch let old as OldCopy {
                beginAnew(old.description)
            } catch {
                say("the data folder \(settings.dataPath) cannot be used: \(error)")
            }
            try? await platform.clock.sleep(milliseconds: Self.formationMilliseconds)
        }
        return false
    }

    private func found(_ map: ClusterMap) async throws {
        try folder.update { $0.found(by: map) }
        try await keeper.openFirst()
        placement.offer(map)
    }

    /// Has nothing count that peers send who were not asked yet: they may know that this folder is an old copy.
    private func distrust(besides answers: [NodeID: Standing]) async {
        let asked = Set(answers.keys)
        guard !peers.allSatisfy({ asked.contains($0.node) }) else { return }
        try? await lane.eventLoop.submit { [lane] in lane.metPeers = asked }.get()
    }

    private func claim(previous: UInt64, through answers: [NodeID: Standing]) async {
        for node in answers.keys.sorted() where answers[node]?.map != nil {
            let problem = await router.claim(
                identity.incarnation, previous: previous, through: node, by: deadline())
            guard let problem else { return }
            say("the cluster does not take this node's new data folder into use yet: \(problem)")
        }
    }

    private func say(_ reason: String) {
        let isNew = membership.withLock { state in
            defer { state.said = reason }
            return state.said != reason
        }
        if isNew { logger.notice("\(reason)") }
    }

    // MARK: Meeting peers

    /// Where the others are, as far as this node knows.
    var peers: [PeerAddress] {
        peerBook.addresses(by: placement.map, heard: heard.map)
    }

    /// Takes from a peer whom else there is to ask. All nodes that this one knows, by its file or by an old map, may be
    /// gone.
    func hear(_ map: ClusterMap?) {
        guard let map, map.epoch > placement.map?.epoch ?? 0 else { return }
        heard.offer(map)
    }

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
            introduction, to: node, by: deadline(milliseconds: Self.answerMilliseconds))
        keeper.acknowledgements.note(standing?.acknowledged ?? [], by: node)
        return standing
    }

    /// Asks everyone whether this data folder is the newest, before anything of it may count; but not longer than a
    /// replica keeps silent after a start anyway: peers that are away must not keep the others from going on.
    private func introduceBeforeStart() async {
        let end = platform.clock.now.adding(milliseconds: 2 * settings.electionTimeoutMilliseconds)
        while !Task.isCancelled, ending == nil {
            let others = peers.map(\.node)
            let silent = membership.withLock { state in others.filter { !state.met.contains($0) } }
            if silent.isEmpty || platform.clock.now >= end { return }
            await renewIntroductions(to: silent)
            try? await platform.clock.sleep(milliseconds: 20)
        }
    }

    private func renewIntroductions(to nodes: [NodeID]) async {
        await withTaskGroup(of: Void.self) { tasks in
            for node in nodes { tasks.addTask { await self.renewIntroduction(to: node) } }
        }
    }

    func renewIntroduction(to node: NodeID) async {
        guard let standing = await introduce(to: node) else { return }
        placement.offer(standing.map)
        await hold(standing, of: node)
        membership.withLock { _ = $0.met.insert(node) }
        guard placement.map != nil, identity.hasTakenPart else { return }
        let id = settings.nodeID
        switch standing.verdict {
        case .welcome, .undecided, .stranger: break
        case .outdated:
            beginAnew("node \(node) knows a later start of this data folder: it is an old copy")
        case .otherFolder:
            beginAnew("the cluster goes by another data folder of node \(id): this one is an old one")
        case .duplicate:
            self.end(
                .excluded(
                    "another process runs node \(id) on the data folder that counts: stop this one, or give it an id of its own"
                ))
        case .removed: self.end(.excluded(Bootstrap.removal(of: id.rawValue)))
        }
    }

    /// Looks whether this node lost what it acknowledged to a peer: an old image of the folder, of the same start. Only
    /// then does what the peer sends count.
    private func hold(_ standing: Standing, of node: NodeID) async {
        let lost = try? await lane.eventLoop.submit { [lane] in
            let lost = lane.lost(standing.acknowledged)
            if lost == nil { lane.metPeers?.insert(node) }
            return lost
        }.get()
        guard let lost = lost ?? nil else { return }
        beginAnew(
            "node \(node) leads group \(lost.group), and this node acknowledged entry \(lost.index) to it, which is not here: the folder is an old copy"
        )
    }

    // MARK: Ends

    /// Ends the node, and gives this folder up at the next start. Where that cannot be noted, the node takes no part
    /// until it can.
    func beginAnew(_ reason: String) {
        do {
            let target = Quarantine.freeName(in: settings.dataPath)
            try folder.update { identity in
                guard identity.discard == nil else { return }
                identity.discard = NodeIdentity.Discard(reason: reason, folder: target)
            }
        } catch {
            membership.withLock { $0.givesUp = reason }
            lane.eventLoop.execute { [lane] in lane.isHeld = true }
            return say("the data folder cannot be given up, though \(reason): \(error)")
        }
        end(.beginsAnew(reason))
    }

    func end(_ ending: NodeEnding) {
        let isFirst = membership.withLock { state in
            defer { state.ending = state.ending ?? ending }
            return state.ending == nil
        }
        guard isFirst else { return }
        let reason =
            switch ending {
            case .beginsAnew(let reason), .excluded(let reason): reason
            }
        lane.eventLoop.execute { [lane] in lane.end(reason) }
    }
}
