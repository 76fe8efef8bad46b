import Cluster

/// Threads for work that blocks: each piece of work happens at once, after a while.
final class SimulatedPool: WorkPool, @unchecked Sendable {
    // Touched on the simulation's thread only.
    let parallelism: Int
    private let platform: SimulatedPlatform
    private let isOrdered: Bool
    private var isStopped = false
    private var lastEnd: UInt64 = 0

    /// - Parameter isOrdered: whether there is one thread, so that nothing overtakes.
    init(platform: SimulatedPlatform, isOrdered: Bool) {
        self.platform = platform
        self.isOrdered = isOrdered
        parallelism = platform.processors
    }

    func submit(_ work: @escaping @Sendable (Bool) -> Void) {
        let world = platform.world
        guard !isStopped else { return work(false) }
        var end = world.now + platform.delay(upTo: platform.delays.workMax)
        if isOrdered {
            end = max(end, lastEnd)
            lastEnd = end
        }
        world.schedule(after: end - world.now, .pool, for: platform.process) { [self] in work(!isStopped) }
    }

    func stop() async { isStopped = true }
}

/// A thread that works in order.
final class SimulatedQueue: SerialQueue, @unchecked Sendable {
    // Touched on the simulation's thread only.
    private let platform: SimulatedPlatform
    private var waiting: [@Sendable () -> Void] = []
    private var isScheduled = false

    init(platform: SimulatedPlatform) { self.platform = platform }

    func schedule(_ work: @escaping @Sendable () -> Void) {
        waiting.append(work)
        if isScheduled { return }
        isScheduled = true
        platform.world.schedule(
            after: platform.delay(upTo: platform.delays.applyMax), .apply, for: platform.process
        ) { [self] in
            isScheduled = false
            drain()
        }
    }

    func stop() { drain() }

    private func drain() {
        while !waiting.isEmpty {
            let works = waiting
            waiting = []
            for work in works { work() }
        }
    }
}

/// Something done every so often.
final class SimulatedRounds: Rounds, @unchecked Sendable {
    // Touched on the simulation's thread only.
    private let platform: SimulatedPlatform
    private let intervalNanoseconds: UInt64
    private let round: @Sendable () -> Void
    private var isStopped = false

    init(platform: SimulatedPlatform, everyMilliseconds: UInt64, _ round: @escaping @Sendable () -> Void) {
        self.platform = platform
        self.round = round
        intervalNanoseconds = everyMilliseconds * World.millisecond
        scheduleNext()
    }

    private func scheduleNext() {
        let after = platform.process.clock.trueDuration(of: intervalNanoseconds)
        platform.world.schedule(after: after, .round, for: platform.process) { [self] in
            guard !isStopped else { return }
            round()
            scheduleNext()
        }
    }

    func stop() { isStopped = true }
}
