import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import Synchronization

/// What a run measured.
struct LoadResult: Sendable {
    var tally: LoadTally
    /// From the start to the last answer.
    var seconds: Double
    var wasInterrupted: Bool
}

/// Sends the requests of a run and measures them.
struct LoadRun: Sendable {
    let settings: LoadSettings
    private let client: LoadClient
    private let bodies: [ByteBuffer]
    private let proof: BytePattern?
    private let templates: [HTTPClientRequest]
    private let clock = ContinuousClock()
    private let stop: LoadStop
    private let recorder = LoadRecorder()

    init(_ settings: LoadSettings, client: LoadClient, tokens: LoadTokens, stop: LoadStop) {
        self.settings = settings
        self.client = client
        self.stop = stop
        let bodies = LoadBodies(settings)
        self.bodies = bodies.ring.map { ByteBuffer(bytes: $0) }
        proof = bodies.proof
        let path = LoadBodies.path(bodies.action, for: settings, tokens: tokens)
        templates = client.targets.indices.map { client.template(.POST, path, target: $0) }
    }

    func run() async -> LoadResult {
        await openConnections()
        let start = clock.now
        switch settings.pace {
        case .closed(let concurrency): await runClosed(concurrency: concurrency, from: start)
        case .open(let rate, let spacing, let outstandingMax):
            let schedule = ArrivalSchedule(rate: rate, spacing: spacing, bound: settings.bound, seed: settings.seed)
            await runOpen(schedule, outstandingMax: outstandingMax, from: start)
        }
        let elapsed = start.duration(to: clock.now)
        return LoadResult(
            tally: recorder.tally, seconds: Double(elapsed.nanoseconds) / 1_000_000_000, wasInterrupted: stop.isSet)
    }

    /// Handshakes happen before the clock starts.
    private func openConnections() async {
        await withDiscardingTaskGroup { tasks in
            for number in 0..<settings.connections {
                let target = number % templates.count
                tasks.addTask { _ = try? await client.exchange(.GET, "/health/live", target: target) }
            }
        }
    }

    private func runClosed(concurrency: Int, from start: ContinuousClock.Instant) async {
        let issued = SharedCounter()
        let end = settings.bound.seconds.map { start + .seconds($0) }
        await withDiscardingTaskGroup { tasks in
            for worker in 0..<concurrency {
                tasks.addTask {
                    var now = clock.now
                    while !stop.isSet, end.map({ now < $0 }) ?? true {
                        let number = issued.value.add(1, ordering: .relaxed).oldValue
                        if let count = settings.bound.count, number >= count { return }
                        // A worker stays with its node, so that each has its connection.
                        now = await issue(number, target: worker % templates.count, countingFrom: now)
                    }
                }
            }
        }
    }

    private func runOpen(
        _ schedule: ArrivalSchedule, outstandingMax: Int, from start: ContinuousClock.Instant
    ) async {
        var schedule = schedule
        let outstanding = SharedCounter()
        await withDiscardingTaskGroup { tasks in
            var number = 0
            while let offset = schedule.next() {
                let due = start + .nanoseconds(Int64(offset))
                guard await wait(until: due) else { return }
                recorder.record(latenessNanoseconds: due.duration(to: clock.now).nanoseconds)
                guard outstanding.value.load(ordering: .relaxed) < outstandingMax else {
                    recorder.countNotIssued()
                    continue
                }
                outstanding.value.add(1, ordering: .relaxed)
                let request = number
                number += 1
                tasks.addTask {
                    _ = await issue(request, target: request % templates.count, countingFrom: due)
                    outstanding.value.subtract(1, ordering: .relaxed)
                }
            }
        }
    }

    /// - Returns: false when the run was stopped meanwhile.
    private func wait(until due: ContinuousClock.Instant) async -> Bool {
        while !stop.isSet {
            let now = clock.now
            if due <= now { return true }
            // In slices, so that a slow rate does not keep a stop waiting.
            try? await clock.sleep(until: min(due, now + .milliseconds(200)), tolerance: .zero)
        }
        return false
    }

    /// - Returns: when the next request may be sent.
    private func issue(
        _ number: Int, target: Int, countingFrom begin: ContinuousClock.Instant
    ) async -> ContinuousClock.Instant {
        let outcome = await client.send(templates[target], body: bodies[number % bodies.count], proof: proof)
        let end = clock.now
        recorder.record(outcome, nanoseconds: begin.duration(to: end).nanoseconds)
        guard case .unanswered = outcome, case .closed = settings.pace else { return end }
        // A connection that is refused is refused at once: without a pause the worker would take the CPU from the nodes that are up.
        try? await clock.sleep(until: end + .milliseconds(50), tolerance: .zero)
        return clock.now
    }
}

/// The tally that the tasks of a run share.
private final class LoadRecorder: Sendable {
    private let state = Mutex(LoadTally())

    var tally: LoadTally { state.withLock { $0 } }

    func record(_ outcome: LoadOutcome, nanoseconds: UInt64) {
        state.withLock { $0.record(outcome, nanoseconds: nanoseconds) }
    }

    func record(latenessNanoseconds: UInt64) {
        state.withLock { $0.record(latenessNanoseconds: latenessNanoseconds) }
    }

    func countNotIssued() { state.withLock { $0.countNotIssued() } }
}

/// A number that the tasks of a run share.
private final class LoadCount: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .relaxed) }

    /// 0, then 1, and so on: each once.
    func next() -> Int { count.add(1, ordering: .relaxed).oldValue }

    func increment() { count.add(1, ordering: .relaxed) }

    func decrement() { count.subtract(1, ordering: .relaxed) }
}

/// Whether a run was asked to end early.
final class LoadStop: Sendable {
    private let flag = Atomic<Bool>(false)

    var isSet: Bool { flag.load(ordering: .relaxed) }

    /// - Returns: whether it was set already.
    @discardableResult
    func set() -> Bool { flag.exchange(true, ordering: .relaxed) }
}

extension Duration {
    /// Whole nanoseconds; 0 for a negative duration.
    fileprivate var nanoseconds: UInt64 {
        let parts = components
        let total = parts.seconds * 1_000_000_000 + parts.attoseconds / 1_000_000_000
        return total > 0 ? UInt64(total) : 0
    }
}

/// A number that the tasks of a run count in.
private final class SharedCounter: Sendable {
    let value = Atomic<Int>(0)
}
