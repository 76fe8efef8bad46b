import Cluster
import Directory
import HistoryChecks
import PeerTransport
import RaftCore
import RecordModel
import RecordStore
import Service
import Storage

/// A whole cluster in one thread, from one seed: production's nodes on simulated machines, clients that use them and
/// write down what they are told, and everything that may go wrong in between.
package final class Simulation: @unchecked Sendable {
    // Touched on one thread only, the one that made it.
    let world: World
    let options: SimulationOptions
    let network: SimulatedNetwork
    let nodes: [SimulatedNode]
    let recorder: Recorder
    let clients: [Client]
    /// Whom a webhook tells; nil where the nodes begin with a build that knows none.
    let receiver: Receiver?
    /// Who changes the cluster's members, and has states hashed.
    let manager: Client
    /// Machines that may be added.
    static let spares = 2
    let groups: [GroupID]
    let root: String
    var raftWatch = RaftWatch()
    private(set) var raftProofs = RaftProofs()
    private var mapWatch = MapWatch()
    private var mapRules = MapRules()
    /// Nodes that were removed.
    private var strays: Set<UInt64> = []
    private var peerWatch = PeerWatch()
    private var raftMembers = RaftMembers()
    private var diskWatch = DiskWatch()
    private var logWatch = LogWatch()
    private var deliveryWatch = DeliveryWatch()
    var report: SimulationReport
    var isHealed = false
    /// Until when nothing new goes wrong.
    var calmUntil: UInt64 = 0
    var isCalm: Bool { world.now < calmUntil }
    var trap: Ambush?
    /// A leader that is cut off, and whose successor will be.
    var rivalry: Ambush?
    /// Until when something went wrong by which nodes may not hear each other.
    var calmSince: UInt64 = 0
    /// When a clock was last set wrong, or right.
    var wrongSince: UInt64 = 0
    /// When a clock was set while several were wrong.
    var severalWrongSince: UInt64 = 0
    /// When all clocks were set ahead by more than a day.
    var longDay: LongDay?
    var robbery: Robbery?
    /// When groups came to another leader last.
    private var reignsBegan: [GroupID: UInt64] = [:]
    /// What all clocks show beyond true time, in milliseconds.
    var commonOffset: Int64 = 0
    /// The last entry of each group that any leader sent.
    var lastSeen: [GroupID: LogIndex] = [:]
    /// Whether a disk altered a value, which must be found.
    var hasAlteredValue = false

    /// - Parameters:
    ///   - folder: where the nodes keep their data meanwhile; best in memory.
    ///   - adjust: changes the options that the seed gave.
    package init(
        seed: UInt64, folder: String, adjust: (inout SimulationOptions) -> Void = { _ in }
    ) {
        let world = World(seed: seed)
        var options = SimulationOptions(using: &world.generator)
        adjust(&options)
        let members = (1...UInt64(options.nodes)).map { Self.member($0) }
        let map = ClusterMap(
            clusterID: "simulation", nodes: members, shardCount: options.shards, replicasPerShard: 3)
        let network = SimulatedNetwork(world: world, nodes: options.nodes + Self.spares)
        network.conditions = options.network
        let root = "\(folder)/seed-\(seed)"
        removeTree(root)
        nodes = (1...options.nodes + Self.spares).map { number in
            // Who joins later knows the first ones and itself.
            let own = number > options.nodes ? [Self.member(UInt64(number))] : []
            return SimulatedNode(
                number: number, world: world, network: network, options: options, members: members + own, root: root)
        }
        // The last zone comes and goes.
        let zones = Self.zoneNames(map) + [ZoneKey.defaultZoneName, "passing"]
        recorder = Recorder(
            world: world, zones: zones.map { Recorder.Zone(key: Place.zone($0), group: map.group(of: Place.zone($0))) },
            stores: Place.accounts.map { Recorder.Store(account: $0) }, files: FileBook(isUsed: options.hasAssets))
        clients = (1...options.clients).map { [nodes, recorder] in
            Client(number: $0, world: world, recorder: recorder, nodes: nodes)
        }
        receiver = options.isUpgraded ? nil : Receiver(world: world, mayLose: options.hasFlood)
        for node in nodes { node.receiver = receiver }
        recorder.limits = options.limits
        manager = Client(number: 0, world: world, recorder: recorder, nodes: nodes)
        groups = map.groups
        report = SimulationReport(seed: seed)
        (self.world, self.options, self.network, self.root) = (world, options, network, root)
    }

    static func member(_ id: UInt64) -> ClusterMap.Node {
        ClusterMap.Node(id: id, peerHost: "simulated", peerPort: Int(id), clientURL: "https://simulated:\(id)")
    }

    /// A name for a zone on each shard.
    private static func zoneNames(_ map: ClusterMap) -> [String] {
        map.shards.indices.compactMap { shard in
            (0..<1_000).map { "zone\($0)" }.first { map.group(of: Place.zone($0)) == .shard(shard) }
        }
    }

    /// Has the story told line by line as it happens.
    package func narrate(_ line: @escaping (String) -> Void) { world.narrator = line }

    /// Runs the seed to its end and judges what happened.
    package func run() -> SimulationReport { QueryTuning.$current.withValue(options.tuning) { runAll() } }

    private func runAll() -> SimulationReport {
        world.note("\(options)")
        watchNetwork()
        for node in nodes { watch(node) }
        for node in nodes.prefix(options.nodes) {
            world.schedule(after: world.milliseconds(0...200), .process, for: nil) { node.start() }
        }
        begin()
        while world.now < options.seconds * World.second {
            world.run(until: world.now + 10 * World.second)
            world.note(
                "events: "
                    + World.Kind.allCases.map { "\($0) \(world.eventsByKind[Int($0.rawValue)])" }.joined(
                        separator: ", "))
            if options.stopsAtViolation, hasViolation { break }
        }
        if !options.stopsAtViolation || !hasViolation { finish() }
        judge()
        close()
        report.trace = world.trace
        return report
    }

    private func watchNetwork() {
        network.observer = { [unowned self] message, sender in if !sender.isDead { sent(message, by: sender) } }
        network.arrivals = { [unowned self] message, receiver in
            guard !receiver.isDead else { return }
            raftProofs.noteArrival(message)
            if !options.network.looseRaftMessages, let fault = deliveryWatch.arrives(message) { violated(fault) }
        }
        network.onViolation = { [unowned self] in violated($0) }
        network.greetings = { [unowned self] peer, process, build in
            if let fault = peerWatch.met(peer, by: process, build) { violated(fault) }
        }
    }

    private func sent(_ message: PeerMessage, by sender: ProcessLife) {
        // Loose ones may come twice.
        if !options.network.looseRaftMessages { deliveryWatch.sent(message) }
        if let fault = raftWatch.judge(message) { violated(fault) }
        if let fault = prove(message, by: sender) { violated(fault) }
        if let fault = judgeMap(by: message, of: sender) { violated(fault) }
        let (node, peer) = (nodes[sender.node - 1], message.message.to.node)
        if let fault = peerWatch.judge(sender, in: node.folder, sendingTo: peer) { violated(fault) }
        for situation in raftWatch.situations { world.met(situation) }
        if let group = raftWatch.newReign {
            reignsBegan[group] = world.now
            lookForEffects(in: group, at: sender.node, .leaderWithEffects)
            rob(inNewReign: group, of: sender.node)
        }
        judgeTimes(of: message)
        spring(at: message)
        springRivalry(at: message)
        rob(atHandover: message)
        if let members = raftWatch.newMembers { disturbChange(to: members, in: message.group, by: sender) }
    }

    private func watch(_ node: SimulatedNode) {
        node.onFailure = { [unowned self, unowned node] in recover(node) }
        node.onError = { [unowned self, unowned node] in heardError($0, of: node) }
        node.onWall = { [unowned self] in
            if nodes.count(where: { $0.wallError != 0 }) > 1 { severalWrongSince = world.now }
        }
        node.onEffects = { [unowned self, unowned node] in lookForEffects(at: node.number, $0) }
        node.onInstall = { [unowned self, unowned node] in readAsSnapshotComes(to: node, $0) }
        node.onOpen = { [unowned self, unowned node] opened in
            requireFound(node, opened)
            if let fault = logWatch.opened(node, { opened.logged(of: $0) }) { violated(fault) }
        }
        node.onEnd = { [unowned self, unowned node] in
            var held: [GroupID: RecoveredGroup]?
            if let cluster = node.cluster {
                held = groups.reduce(into: [:]) { $0[$1] = cluster.logged(of: $1) }
            }
            logWatch.ended(node, held)
        }
    }

    private func prove(_ message: PeerMessage, by sender: ProcessLife) -> String? {
        raftProofs.note(message)
        raftMembers.note(message)
        let (group, node) = (message.group, nodes[sender.node - 1])
        guard node.process === sender, let witness = node.witness(of: group), witness.raft.id == message.message.from
        else { return nil }
        let other = { [nodes] (replica: ReplicaID) -> RaftProofs.Witness? in
            let place = Int(replica.node.rawValue) - 1
            guard let other = nodes[place].witness(of: group), other.raft.id == replica else { return nil }
            return other
        }
        if let fault = raftProofs.judge(message, by: witness, at: world.now, other) { return fault }
        let place = "\(root)/judged.sqlite"
        if let fault = diskWatch.judge(message, by: node, witness.logged(), place: place) { return fault }
        return raftMembers.judge(
            group, witness, payload: { [raftWatch] in raftWatch.payload(of: group, at: $0) }, other
        ) { [nodes] node in
            nodes[Int(node.rawValue) - 1].running?.process.life
        }
    }

    /// Looks at the leaders now and then, also at those that nobody hears, and at the connections.
    private func scheduleLooks() {
        world.schedule(after: 500 * World.millisecond, .client, for: nil) { [unowned self] in
            for node in nodes where node.running != nil {
                for group in groups {
                    guard let leader = node.witness(of: group),
                        let fault = raftProofs.outlastsMajority(leader, at: world.now)
                    else { continue }
                    violated("group \(group): \(leader.raft.id), which leads term \(leader.raft.term), \(fault)")
                }
            }
            for silence in network.silences(at: world.now) { violated(silence) }
            scheduleLooks()
        }
    }

    /// Looks at the map that the sender of a message goes by.
    private func judgeMap(by message: PeerMessage, of sender: ProcessLife) -> String? {
        let (group, node) = (message.group, nodes[sender.node - 1])
        guard node.process === sender, let cluster = node.cluster else { return nil }
        let epoch = cluster.map.epoch
        if mapWatch.isNew(epoch, of: node.number, life: sender.life) {
            let map = cluster.map
            if let fault = mapRules.judge(map) { return fault }
            for id in map.removed where strays.insert(id).inserted { lookForStray(nodes[Int(id) - 1]) }
        }
        if let fault = mapWatch.judge(node.number, life: sender.life, epoch: epoch, at: world.now) { return fault }
        // What was on its way while the process stood still is older than it looks.
        guard sender.pausedUntil + MapWatch.outdatedMax < world.now, let raft = cluster.raft(of: group) else {
            return nil
        }
        return mapWatch.judge(raft, of: group, epoch: epoch, apart: timeWithoutDirectory(node), at: world.now)
    }

    /// For how long a node has surely not been able to ask who leads the directory.
    private func timeWithoutDirectory(_ node: SimulatedNode) -> UInt64 {
        guard let leader = raftWatch.reigns[.directory].map({ Int($0.leader.node.rawValue) }), leader != node.number,
            let since = network.areApart(node.number, leader), let began = reignsBegan[.directory]
        else { return 0 }
        return world.now - max(since, began)
    }

    /// The nodes' data are of an earlier time, so what was seen of them since must not be held against them.
    func forgetNodes() {
        (raftWatch, raftProofs, raftMembers) = (RaftWatch(), RaftProofs(), RaftMembers())
        (mapWatch, mapRules, peerWatch) = (MapWatch(), MapRules(), PeerWatch())
        (diskWatch, logWatch, deliveryWatch) = (DiskWatch(), LogWatch(), DeliveryWatch())
        (reignsBegan, lastSeen) = ([:], [:])
    }

    func violated(_ text: String) {
        world.note("VIOLATION \(text)")
        if report.violations.count < 20 { report.violations.append(text) }
    }

    private var hasViolation: Bool {
        !report.violations.isEmpty || !recorder.violations.isEmpty || nodes.contains { !$0.complaints.isEmpty }
    }

    /// Nodes must not take for damaged what nobody damaged.
    private func heardError(_ text: String, of node: SimulatedNode) {
        // What a sync has not written is written again, so nothing is given up for it.
        let isUncalledFor = text.contains("begins anew") && !node.hasLostData && !node.hasBeenFull
        guard !node.mayFail || isUncalledFor, !nodes.contains(where: \.hasLostData) else { return }
        if text.contains("there is no room for a snapshot"), node.diskFaults.roomForAssets != nil { return }
        // One of an earlier build that comes as the level is raised may be let in by a node that lags behind.
        if text.contains("this build is too old"), node.number > options.nodes, node.life == 1 { return }
        violated("at \(world.now / World.millisecond) ms node \(node.number) has an error without a cause: \(text)")
    }

    private func begin() {
        world.schedule(after: 5 * World.second, .client, for: nil) { [unowned self] in
            clients[0].perform { [clients, options, receiver] client in
                await client.setUp(clients: clients.count, limits: options.limits)
                for zone in client.recorder.zones.indices where !client.recorder.zones[zone].key.isDefault {
                    await client.makeZone(zone)
                }
                if let receiver { await client.makeWebhook(for: receiver) }
            }
        }
        world.schedule(after: 10 * World.second, .client, for: nil) { [unowned self] in
            for client in clients.dropFirst() { client.start(thinkMillisecondsMax: options.thinkMillisecondsMax) }
        }
        scheduleFault(after: 15_000)
        scheduleHashes()
        scheduleLooks()
        if options.membership { scheduleChange() }
        if let loss = options.loss { schedule(loss, then: options.secondLoss) }
        if options.hasLoneWrongClock { scheduleWrongClock() }
        if options.isUpgraded { scheduleUpgrade() }
        if options.hasLongDay { scheduleLongDay() }
        if options.hasPressing { schedulePressing() }
        if options.hasLongReads { scheduleLongReads() }
        // Two disks that lose something are more than is promised.
        if options.hasAssets, options.loss == nil { scheduleRot() }
        informRecorder()
    }

    /// Gives clients what they must know of the world.
    private func informRecorder() {
        receiver?.mayTimeBeWrong = { [unowned self] in isClockWrong || options.hasLongDay || commonOffset != 0 }
        receiver?.disturb = { [unowned self] in disturbDelivery(by: $0) }
        recorder.files.isClockWrong = { [unowned self] in isClockWrong }
        recorder.hideDirectory = { [unowned self] in hideDirectory() }
        recorder.wereClocksRight = { [unowned self] in
            severalWrongSince == 0 || severalWrongSince + $0 < world.now
        }
        recorder.wasCalm = { [unowned self] in calmSince + $0 <= world.now }
        recorder.areMostClocksWrong = { [unowned self] in areMostClocksWrong }
        recorder.depose = { [unowned self] in depose($0) }
        recorder.hasNewLedger = { [unowned self] in
            guard let map = newestMap, let began = reignsBegan[RateExchange.group(of: Place.container, in: map)] else {
                return false
            }
            return world.now < began + 4 * World.second
        }
        recorder.sharesInForce = { [unowned self] in sharesInForce($0) }
        // A build of before takes greater steps of time.
        recorder.mayForgetKeys = { [unowned self] in
            mayForgetOfLongDay || options.isUpgraded && options.wrongDaysPercent > 0
        }
        recorder.mayDisturb = { [unowned self] in
            if isHealed || isCalm { return false }
            disturbed(for: $0)
            return true
        }
    }

    /// Has every replica hash its state now and then.
    private func scheduleHashes() {
        world.schedule(after: world.milliseconds(60_000...240_000), .client, for: nil) { [unowned self] in
            guard !isHealed else { return }
            hashStates(with: manager)
            scheduleHashes()
        }
    }

    /// Has each replica hash its whole state; `recorder.stateHashes` tells what each group answered.
    func hashStates(with client: Client) {
        guard client.hasEnded else { return }
        let groups = groups
        recorder.stateHashes = [:]
        client.perform { client in
            for group in groups {
                let answer = await client.ask(repeats: true) { visit throws(RequestFailure) in
                    try await visit.submit(.hashState, to: group)
                }
                if case .answered(let hash, _) = answer { client.recorder.stateHashes[group] = hash }
            }
        }
    }

    func restartLater(_ node: SimulatedNode) {
        disturbed(for: 0)
        let delay = world.chance(60) ? world.milliseconds(100...3_000) : world.milliseconds(3_000...30_000)
        world.schedule(after: delay, .process, for: nil) { node.start() }
    }

    /// Stops every node and frees what they had.
    private func close() {
        world.narrator = nil
        let complaints = nodes.map(\.complaints.count)
        for node in nodes { node.stop() }
        let end = world.now + 120 * World.second
        while world.step(until: end), !nodes.allSatisfy({ $0.isDown && $0.remains == 0 }) {}
        for (node, count) in zip(nodes, complaints) { for text in node.complaints[count...] { violated(text) } }
        for node in nodes where !node.isDown || node.remains > 0 {
            violated("node \(node.number) does not end: \(node.remains) of its processes are left")
        }
        removeTree(root)
    }
}
