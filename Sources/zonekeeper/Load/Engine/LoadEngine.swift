import NIOCore
import Storage
import Synchronization

/// Sends the requests of a run and measures them, all on one event loop: what it knows needs no lock, and the time that its thread
/// takes is the tester's share of the work.
///
/// A wake-up sends whatever is due: arrivals of the schedule, requests that are sent again, workers of a closed loop.
final class LoadEngine {
    /// What waits for its time.
    enum Waiting: Sendable {
        case again(LoadFlight)
        case worker(Int)
    }

    let settings: LoadSettings
    let connector: LoadConnector
    let behaviours: [ThrottleBehaviour]
    private(set) var start = NIODeadline.now()
    private let stop: LoadStop
    private let done: EventLoopPromise<Void>

    var deck: LoadDeck
    var pools: [LoadPool]
    var measurement: LoadMeasurement
    var waiting = RetryBook<Waiting>()
    /// Requests that were handed over and are not answered.
    var outstanding = 0
    private var schedule: ArrivalSchedule?
    private var nextArrival: UInt64?
    private var issued = 0
    var random: LoadRandom
    private var wake: (due: UInt64, task: Scheduled<Void>)?
    private var sweeping: RepeatedTask?
    private(set) var isOver = false
    private(set) var wasInterrupted = false
    private var isDone = false
    private var cpuAtStart = ThreadTime.seconds()
    private(set) var cpuSeconds = 0.0
    private var ended: UInt64 = 0

    /// - Parameter done: succeeds when the run is over and each request was answered or given up.
    init(
        _ settings: LoadSettings, connector: LoadConnector, deck: LoadDeck, pools: [LoadPool], stop: LoadStop,
        done: EventLoopPromise<Void>
    ) {
        self.settings = settings
        self.connector = connector
        self.deck = deck
        self.pools = pools
        self.stop = stop
        self.done = done
        behaviours = settings.behaviours.values
        measurement = LoadMeasurement(
            behaviours: behaviours.count, targets: pools.count, operations: deck.operations.count)
        random = LoadRandom(seed: settings.seed &+ 0xBAC_0FF)
        if case .open(let profile, let spacing, _) = settings.pace {
            schedule = ArrivalSchedule(profile: profile, spacing: spacing, bound: settings.bound, seed: settings.seed)
        }
    }

    /// Nanoseconds since the start.
    var now: UInt64 { UInt64(max(0, (NIODeadline.now() - start).nanoseconds)) }
    var isOpenLoop: Bool { schedule != nil }

    /// What the run came to; to be asked for when it is done.
    var result: LoadResult {
        LoadResult(
            measurement: measurement, seconds: Double(ended) / 1_000_000_000, wasInterrupted: wasInterrupted,
            testerCPUSeconds: cpuSeconds)
    }

    // MARK: Begin and end

    func begin() {
        start = .now()
        cpuAtStart = ThreadTime.seconds()
        let bound = NIOLoopBound(self, eventLoop: connector.loop)
        sweeping = connector.loop.scheduleRepeatedTask(initialDelay: .milliseconds(100), delay: .milliseconds(100)) {
            _ in bound.value.sweep()
        }
        switch settings.pace {
        case .open: nextArrival = schedule?.next()
        case .closed(let concurrency): for worker in 0..<concurrency { waiting.add(.worker(worker), due: 0) }
        }
        turn()
    }

    /// Sends what is due, and sees to it that it is called again when more is.
    func turn() {
        let now = now
        if !isOver { checkBounds(now) }
        while let due = nextArrival, due <= now, !isOver { issueArrival(due: due, now: now) }
        while let (due, item) = waiting.pop(by: now) {
            switch item {
            case .again(let flight): submit(flight, now: now)
            case .worker(let worker): issueWork(worker, due: max(due, now), now: now)
            }
        }
        if isOver { finishIfIdle() } else { sleep() }
    }

    private func checkBounds(_ now: UInt64) {
        if stop.isSet {
            wasInterrupted = true
            end()
        } else if let seconds = settings.bound.seconds, now >= UInt64(seconds * 1_000_000_000) {
            // Arrivals whose time had come are still sent; those of a closed loop are not due at any time.
            while let due = nextArrival, due <= now { issueArrival(due: due, now: now) }
            end()
        } else if outstanding == 0, waiting.count == 0 {
            // Every request of the run was issued, and none is to be sent again.
            let count = settings.bound.count ?? .max
            if isOpenLoop ? nextArrival == nil : issued >= count { end() }
        }
    }

    /// Nothing is sent any more; what waits for its time is given up.
    private func end() {
        isOver = true
        nextArrival = nil
        while let (_, item) = waiting.pop(by: .max) {
            if case .again(let flight) = item { measurement.recordGivenUp(behaviour: flight.behaviour) }
        }
        wake?.task.cancel()
    }

    func finishIfIdle() {
        guard isOver, outstanding == 0, !isDone else { return }
        isDone = true
        sweeping?.cancel()
        ended = now
        measurement.finish(at: ended)
        cpuSeconds = ThreadTime.seconds() - cpuAtStart
        done.succeed()
    }

    private func sleep() {
        // A bound by time ends the run with nothing due; else the sweep looks ten times a second.
        let end = settings.bound.seconds.map { UInt64($0 * 1_000_000_000) } ?? .max
        let due = min(nextArrival ?? .max, waiting.nextDue ?? .max, end)
        if due == .max { return }
        if let wake {
            guard due < wake.due || wake.due <= now else { return }
            wake.task.cancel()
        }
        let task = connector.loop.assumeIsolated().scheduleTask(
            deadline: start + .nanoseconds(Int64(min(due, 1 << 62)))
        ) {
            [self] in
            wake = nil
            turn()
        }
        wake = (due, task)
    }

    // MARK: Issuing

    private func issueArrival(due: UInt64, now: UInt64) {
        nextArrival = schedule?.next()
        guard case .open(_, _, let outstandingMax) = settings.pace, outstanding < outstandingMax else {
            measurement.countNotIssued()
            return
        }
        submit(newFlight(turn: issued, due: due), now: now)
    }

    private func issueWork(_ worker: Int, due: UInt64, now: UInt64) {
        if isOver { return }
        if let count = settings.bound.count, issued >= count { return }
        // A worker stays with its node, so that each has its connection.
        submit(newFlight(turn: worker, due: due), now: now)
    }

    private func newFlight(turn: Int, due: UInt64) -> LoadFlight {
        issued += 1
        return LoadFlight(
            card: deck.draw(), behaviour: settings.behaviours.draw(&random), turn: turn, firstDue: due, due: due)
    }

    private func submit(_ flight: LoadFlight, now: UInt64) {
        var flight = flight
        flight.submitted = now
        outstanding += 1
        measurement.recordSubmitted(due: flight.due, now: now, countsLateness: isOpenLoop)
        let target = settings.nodes.target(turn: flight.turn, nanoseconds: now, count: pools.count)
        if let connection = pools[target].idle.popLast() {
            fly(flight, on: connection, now: now)
        } else {
            pools[target].waiting.append(flight)
            openIfUseful(target)
        }
    }

    /// Gives the request up to the network.
    func fly(_ flight: LoadFlight, on connection: LoadConnection, now: UInt64) {
        var flight = flight
        flight.sent = now
        measurement.recordSent(
            due: flight.due, submitted: flight.submitted, now: now, isExactRetry: flight.isExactRetry)
        pools[connection.target].busy += 1
        connection.flight = flight
        var buffer = ByteBuffer()
        deck.write(flight.card, target: connection.target, to: &buffer)
        connection.send(buffer)
    }

    /// Makes a connection where a request waits for one and there may be more.
    func openIfUseful(_ target: Int) {
        let pool = pools[target]
        guard pool.connecting < pool.waiting.count, pool.open < pool.connectionsMax else { return }
        pools[target].connecting += 1
        connector.connect(LoadConnection(target: target, owner: self), to: pool.target)
    }

    private func sweep() {
        let limit = UInt64(settings.timeoutSeconds) * 1_000_000_000
        let now = now
        expire(submittedBy: now > limit ? now - limit : nil)
        turn()
    }

    /// Requests that were handed over by a time and are not answered count as unanswered; nil: none is that old.
    private func expire(submittedBy deadline: UInt64?) {
        guard let deadline else { return }
        for target in pools.indices {
            while let first = pools[target].waiting.first, first.submitted <= deadline {
                pools[target].waiting.removeFirst()
                finished(first, target: target, .unanswered("deadlineExceeded"))
            }
        }
        for connection in connectionsUnderWay where (connection.flight?.submitted ?? .max) <= deadline {
            connection.close("deadlineExceeded")
        }
    }

    /// The connections with a request under way.
    var connectionsUnderWay: [LoadConnection] { underWay.values.filter { $0.flight != nil } }
    /// All connections that were made and not lost, by identity.
    var underWay: [ObjectIdentifier: LoadConnection] = [:]
}
