import Cluster
import Logging
import NIOCore
import PeerTransport
import RaftCore
import Storage

/// What a node runs on in a simulation: virtual time, one thread, a network and a disk that fail as the seed has it.
/// One for each life of a node.
final class SimulatedPlatform: NodePlatform, @unchecked Sendable {
    // Touched on the simulation's thread only.
    let world: World
    let process: ProcessLife
    var delays: Delays
    /// How many the machine has, for all that the node knows: they bound what one container has inside beside others.
    let processors: Int
    let eventLoop: any EventLoop
    let executor: SimulatedExecutor
    private let loop: SimulatedLoop
    private let network: SimulatedNetwork
    private var isLogWoken = false

    /// How long things take, in microseconds.
    struct Delays: Sendable {
        /// A write of the log and its sync.
        var syncMax: UInt64 = 2_000
        /// Work on a pool, such as a read of a database.
        var workMax: UInt64 = 1_000
        /// A turn of an apply worker.
        var applyMax: UInt64 = 1_000
    }

    init(world: World, process: ProcessLife, network: SimulatedNetwork, delays: Delays, processors: Int) {
        self.world = world
        self.process = process
        self.network = network
        self.delays = delays
        self.processors = processors
        loop = SimulatedLoop(world: world, process: process)
        eventLoop = loop
        executor = SimulatedExecutor(world: world, process: process)
    }

    var clock: any NodeClock { ProcessClock(world: world, process: process) }

    func random() -> UInt64 { world.generator.next() }

    var logScheduling: LogScheduling {
        .manual { [self] log in
            if isLogWoken { return }
            isLogWoken = true
            world.schedule(after: delay(upTo: delays.syncMax), .log, for: process) { [self] in
                isLogWoken = false
                log.work()
            }
        }
    }

    func makeWorkPool(threads: Int) -> any WorkPool {
        SimulatedPool(platform: self, isOrdered: threads == 1)
    }

    func makeSerialQueue(name: String) -> any SerialQueue { SimulatedQueue(platform: self) }

    func makeRounds(
        name: String, everyMilliseconds: UInt64, _ round: @escaping @Sendable () -> Void
    ) -> any Rounds {
        SimulatedRounds(platform: self, everyMilliseconds: everyMilliseconds, round)
    }

    func makeNetwork(
        _ configuration: PeerTransportConfiguration, delegate: any PeerTransportDelegate, logger: Logger
    ) throws -> any PeerNetwork {
        network.makeEndpoint(configuration, process: process, loop: loop, delegate: delegate, logger: logger)
    }

    func startTask(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> { executor.start(body) }

    /// What is left of a dead process has no time to lose.
    func delay(upTo microseconds: UInt64) -> UInt64 {
        process.isDead ? 0 : world.microseconds(10...max(10, microseconds))
    }
}

/// A process's clocks.
struct ProcessClock: NodeClock, @unchecked Sendable {
    // Read on the simulation's thread only.
    let world: World
    let process: ProcessLife

    var now: MonotonicTime { process.clock.local(at: world.now) }

    var wallMilliseconds: Int64 { process.clock.wallMilliseconds(at: world.now) }

    func sleep(milliseconds: UInt64) async throws {
        let after = process.clock.trueDuration(of: milliseconds * World.millisecond)
        try await Sleep().wait { world.schedule(after: after, .timer, for: process, $0) }
    }
}
