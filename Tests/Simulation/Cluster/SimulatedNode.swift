import Cluster
import Directory
import RaftCore
import RecordModel
import Service
import Storage

/// One node of the cluster: its machine, its folder, and the process that runs there, if any.
final class SimulatedNode: @unchecked Sendable {
    // Touched on the simulation's thread only.

    /// What the process is at.
    enum State {
        case down
        /// Opening its folder and getting started.
        case starting
        case up(RecordService)
        /// Ending in order.
        case stopping
    }

    let number: Int
    let world: World
    let network: SimulatedNetwork
    let options: SimulationOptions
    let members: [ClusterMap.Node]
    let root: String
    private(set) var state = State.down
    private(set) var process: ProcessLife?
    /// That of the process, once its folder is open.
    private(set) weak var cluster: ClusterNode?
    private(set) var platform: SimulatedPlatform?
    private(set) var disk: SimulatedDisk?
    /// Where the next or present process keeps its data.
    private(set) var folder: String
    /// Of its machine; a start takes them over.
    var driftPartsPerMillion: Int64 = 0
    private var wallOffsetMilliseconds: Int64 = 0
    /// How far its wall clock is from those of the others.
    private(set) var wallError: Int64 = 0
    /// When its wall clock was last set right.
    private(set) var rightSince: UInt64?
    /// The feature levels that its program follows; a start takes them over.
    var levels = FeatureLevel.supported
    /// Those of the present process, or the last one.
    private(set) var runningLevels = FeatureLevel.supported
    /// When its process began to take requests.
    private(set) var upSince: UInt64 = 0
    private(set) var life = 0
    private var images = 0
    /// What the last process left in the system's memory.
    private var unsynced = SimulatedDisk.Unsynced()
    /// Dead processes that are not stopped yet.
    private(set) var remains = 0
    /// Said by a node that should not have ended.
    private(set) var complaints: [String] = []
    /// Why a node may end by itself: its disk was made to fail.
    var mayFail = false
    /// Whether its disk had no room, so that a start may have to write over what is on it.
    var hasBeenFull = false
    /// Why it may give its folder up: something happened to it.
    var hasLostData = false
    /// The life of the process whose folder was copied aside.
    var imageLife = 0
    /// Whether its folder is an old image of an earlier start, which must be found out.
    var hasOldImage = false
    /// Why it must give its folder up, until it does.
    var mustBeginAnew: String?
    /// Why it may be told to leave: somebody removed it.
    var mayLeave = false
    /// Whether it was told so, and never starts again.
    private(set) var isRetired = false
    /// Whether it has been started at all.
    private(set) var isEnlisted = false
    /// What its disk does wrong, whichever process uses it.
    var diskFaults = SimulatedDisk.Faults() {
        didSet { if process?.isDead == false { disk?.faults = diskFaults } }
    }
    /// Called before each call of its log's disk.
    var beforeDiskCall: ((SimulatedDisk.Call) -> Void)? {
        didSet { if process?.isDead == false { disk?.beforeCall = beforeDiskCall } }
    }
    /// Sets its wall clock, in milliseconds.
    /// - Parameters:
    ///   - common: beyond true time, as all clocks.
    ///   - error: beyond the others.
    func setWall(common: Int64, error: Int64) {
        if wallError != 0, error == 0 { rightSince = world.now }
        wallError = error
        wallOffsetMilliseconds = common + error
        process?.setWall(wallOffsetMilliseconds, at: world.now)
        onWall?()
    }

    /// Called when its wall clock was set.
    var onWall: (() -> Void)?

    /// How long things take on its machine; a start takes it over.
    private var delays: SimulatedPlatform.Delays

    /// Makes the log's disk take up to so much longer, for the rest of this life of the process at most.
    func slowDisk(byMicroseconds most: UInt64) { platform?.delays.syncMax += most }

    /// Makes a turn of applying take up to so much longer, for as long.
    func slowApplying(byMicroseconds most: UInt64) { platform?.delays.applyMax += most }

    /// Makes work on a pool, such as reading the log, take up to so much longer, for as long.
    func slowWork(byMicroseconds most: UInt64) { platform?.delays.workMax += most }

    /// Nothing takes longer any more than it does on this machine.
    func quickenDisk() { platform?.delays = delays }

    /// Nothing takes long on its machine from now on.
    func quicken() {
        delays = SimulatedPlatform.Delays()
        quickenDisk()
    }

    /// Called where effects on other groups may wait on it, with what is met if they do.
    var onEffects: ((Situation) -> Void)?
    /// Called with what the node says as it is about to install a snapshot.
    var onInstall: ((String) -> Void)?
    /// Called when a process has opened its folder, before it meets any peer.
    var onOpen: ((ClusterNode) -> Void)?
    /// Called when a process has ended, and its folder is that of the next one.
    var onEnd: (() -> Void)?
    /// Whom a webhook tells, if anybody.
    var receiver: Receiver?
    /// Called when the process ended by itself.
    var onFailure: (() -> Void)?
    /// Called with what the process logs as an error.
    var onError: ((String) -> Void)?

    init(
        number: Int, world: World, network: SimulatedNetwork, options: SimulationOptions, members: [ClusterMap.Node],
        root: String
    ) {
        self.number = number
        self.world = world
        self.network = network
        self.options = options
        delays = options.delays
        self.members = members
        self.root = root
        folder = "\(root)/node-\(number)-0"
    }

    /// What is in the folder is not what the last process left.
    func forgetUnsynced() { unsynced = SimulatedDisk.Unsynced() }

    var isDown: Bool { if case .down = state { true } else { false } }

    /// Its replica of a group, where its process runs and has one.
    func witness(of group: GroupID) -> RaftProofs.Witness? {
        guard !isDown, let process, !process.isDead, let raft = cluster?.raft(of: group) else { return nil }
        return RaftProofs.Witness(
            raft: raft, clock: process.clock, life: process.life, mayHaveLost: hasLostData || hasBeenFull,
            pausedUntil: process.pausedUntil, disagreedAt: process.noticedDisagreement(at: world.now),
            mayNotKnowTime: process.mayNotKnowTime(at: world.now), logged: { [cluster] in cluster?.logged(of: group) })
    }

    /// The node, while its process takes requests.
    var running: (service: RecordService, process: ProcessLife, executor: SimulatedExecutor)? {
        guard case .up(let service) = state, let process, let platform else { return nil }
        return (service, process, platform.executor)
    }

    // MARK: Life

    func start() {
        guard isDown, !isRetired else { return }
        isEnlisted = true
        life += 1
        // What is left of the last process may take a while to end.
        cluster = nil
        state = .starting
        var clock = SimulatedClock(
            at: world.now, origin: UInt64.random(in: 1...1_000_000_000_000, using: &world.generator))
        clock.setDrift(driftPartsPerMillion, at: world.now)
        clock.wallOffsetMilliseconds = wallOffsetMilliseconds
        let process = ProcessLife(node: number, life: life, clock: clock)
        let platform = SimulatedPlatform(
            world: world, process: process, network: network, delays: delays, processors: options.processors)
        let disk = SimulatedDisk(world: world, unsynced)
        unsynced = SimulatedDisk.Unsynced()
        disk.faults = diskFaults
        disk.beforeCall = beforeDiskCall
        (self.process, self.platform, self.disk) = (process, platform, disk)
        runningLevels = levels
        world.note("node \(number) starts")
        let (settings, folder) = (settings(disk), folder)
        platform.executor.start { [self] in
            await run(settings, on: platform, as: process, folder: folder)
        }
    }

    private func run(
        _ settings: NodeSettings, on platform: SimulatedPlatform, as process: ProcessLife, folder: String
    ) async {
        do {
            let node = try await ClusterNode.open(
                settings, platform: platform, logger: logger(of: process))
            if !process.isDead {
                cluster = node
                onOpen?(node)
                try await node.start { [self, weak node] in failed($0, process, node?.ending) }
            }
            let service = RecordService(node: node, logger: logger(of: process))
            guard !process.isDead else { return await bury(service, folder: folder) }
            service.start()
            if let receiver { service.webhooks.start(service, WayToReceiver(receiver: receiver, process: process)) }
            state = .up(service)
            upSince = world.now
            world.note("node \(number) is up")
            if process.life > 1 { onEffects?(.restartWithEffects) }
            let waiting = platform.executor.start { [self] in
                do {
                    try await node.awaitMap()
                } catch is CancellationError {
                } catch {
                    complain("node \(number) does not serve: \(error)")
                }
            }
            _ = process.onDeath { waiting.cancel() }
        } catch {
            if !process.isDead { failed("it does not start: \(error)", process, nil) }
            removeTree(folder)
            remains -= 1
        }
    }

    /// The node ends itself, as it does when its disk fails, or when it must begin anew or leave.
    private func failed(_ reason: String, _ process: ProcessLife, _ ending: NodeEnding?) {
        guard !process.isDead else { return }
        world.note("node \(number) ends: \(reason)")
        let isExpected =
            switch ending {
            case .excluded: mayLeave
            case .beginsAnew: hasLostData
            // No disk has the log written in another order.
            case nil: mayFail && !reason.contains("outOfOrder")
            }
        if !isExpected { complain("node \(number) ends: \(reason)") }
        if case .excluded = ending { isRetired = true }
        if case .beginsAnew = ending { hasOldImage = false }
        crash(.process)
        onFailure?()
    }

    func complain(_ text: String) { complaints.append("at \(world.now / World.millisecond) ms \(text)") }

    /// Ends the process at once. What its disk holds then is what the next one finds.
    func crash(_ crash: SimulatedDisk.Crash) {
        guard let process, !process.isDead, let disk else { return }
        noteAssetCounts()
        let old = passOn(disk, after: crash)
        disk.faults = SimulatedDisk.Faults()
        disk.beforeCall = nil
        network.crashed(process, isSilent: crash == .power && world.chance(50))
        let before = state
        state = .down
        process.die()
        world.note("node \(number) crashes (\(crash))")
        remains += 1
        // While it is starting or stopping, who does that goes on to bury it.
        if case .up(let service) = before, let platform {
            platform.executor.start { [self] in await bury(service, folder: old) }
        }
    }

    /// Makes what the end of the process leaves the folder of the next one.
    /// - Returns: the folder that the process had.
    private func passOn(_ disk: SimulatedDisk, after crash: SimulatedDisk.Crash) -> String {
        let old = folder
        images += 1
        folder = "\(root)/node-\(number)-\(images)"
        do {
            try writeImage(of: old, to: folder, disk, after: crash)
        } catch {
            preconditionFailure("no image of \(old): \(error)")
        }
        onEnd?()
        if crash == .process { unsynced = disk.unsynced(of: old, movedTo: folder) }
        return old
    }

    private func bury(_ service: RecordService, folder: String) async {
        await service.stop()
        await service.node.stop()
        removeTree(folder)
        remains -= 1
    }

    /// Stops the process in order.
    func stop(_ done: @escaping @Sendable () -> Void = {}) {
        guard case .up(let service) = state, let process, let platform, let disk else { return done() }
        noteAssetCounts()
        state = .stopping
        let old = folder
        world.note("node \(number) stops")
        platform.executor.start { [self] in
            await service.stop()
            await service.node.stop()
            if process.isDead {
                remains -= 1
            } else {
                if disk.failures == 0, !diskFaults.isFull, !LogImage.isVouchedFor(in: old + "/log") {
                    complain("node \(number) stops, and its log does not say that all of it is durable")
                }
                // The system still has what was not synced, as after the crash of a process.
                _ = passOn(disk, after: .process)
                state = .down
                process.die()
            }
            removeTree(old)
            done()
        }
    }
}
