import NIOCore
import Storage
import Synchronization

/// Sends the requests of a run and measures them, all on one event loop: what it knows needs no lock, and the time that
/// its thread takes is the tester's share of the work.
///
/// A wake-up sends whatever is due: arrivals of the schedule, requests that are sent again, workers of a closed loop.
final class LoadEngine {
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

    private(set) var deck: LoadDeck
    private(set) var pools: [LoadPool]
    private(set) var measurement: LoadMeasurement
    private(set) var waiting = DueQueue<Waiting>()
    /// Requests that were handed over and are not answered.
    private(set) var outstanding = 0
    /// All connections that were made and not lost, by identity.
    private var connections: [ObjectIdentifier: LoadConnection] = [:]
    /// Connections made before the clock starts that are neither ready nor lost yet; the promise succeeds when none is
    /// left.
    private var opening: [ObjectIdentifier: LoadConnection] = [:]
    private var opened: EventLoopPromise<Void>?
    private var hasBegun = false
    private var schedule: ArrivalSchedule?
    private var nextArrival: UInt64?
    private var issued = 0
    private var random: LoadRandom
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
        _ settings: LoadSettings, connector: LoadConnector, deck: LoadDeck, targets: [LoadTarget], stop: LoadStop,
        done: EventLoopPromise<Void>
    ) {
        self.settings = settings
        self.connector = connector
        self.deck = deck
        let connectionsMax = (settings.connections + targets.count - 1) / targets.count
        pools = targets.map { LoadPool(target: $0, connectionsMax: connectionsMax) }
        self.stop = stop
        self.done = done
        behaviours = settings.behaviours.values
        measurement = LoadMeasurement(
            behaviours: behaviours.count, targets: targets.count, operations: deck.operations.count)
        random = LoadRandom(seed: settings.seed &+ 0xBAC_0FF)
        if case .open(let profile, let spacing, _) = settings.pace {
            schedule = ArrivalSchedule(profile: profile, spacing: spacing, bound: settings.bound, seed: settings.seed)
        }
    }

    /// Nanoseconds since the start.
    var now: UInt64 { UInt64(max(0, (NIODeadline.now() - start).nanoseconds)) }
    var isOpenLoop: Bool { schedule != nil }

    var result: LoadResult {
        LoadResult(
            measurement: measurement, seconds: Double(ended) / 1_000_000_000, wasInterrupted: wasInterrupted,
            testerCPUSeconds: cpuSeconds)
    }

    // MARK: Begin and end

    /// Makes the connections of the run, so that handshakes happen before the clock starts. Those that fail are made
    /// again when they are needed.
    /// - Returns: succeeds when each is ready or lost, or the run is to end.
    func open() -> EventLoopFuture<Void> {
        let opened = connector.loop.makePromise(of: Void.self)
        self.opened = opened
        // All handshakes at once take the nodes longer than one.
        var patient = connector
        patient.handshakeTimeout = connector.handshakeTimeout + .milliseconds(Int64(settings.connections) * 5)
        for target in pools.indices {
            for _ in 0..<pools[target].connectionsMax {
                let connection = LoadConnection(target: target, engine: self)
                opening[ObjectIdentifier(connection)] = connection
                pools[target].connecting += 1
            }
        }
        for connection in Array(opening.values) { patient.connect(connection, to: pools[connection.target].target) }
        let bound = NIOLoopBound(self, eventLoop: connector.loop)
        sweeping = connector.loop.scheduleRepeatedTask(initialDelay: .milliseconds(100), delay: .milliseconds(100)) {
            _ in bound.value.sweep()
        }
        return opened.futureResult
    }

    private func settle(_ connection: LoadConnection) {
        guard opening.removeValue(forKey: ObjectIdentifier(connection)) != nil, opening.isEmpty else { return }
        opened?.succeed()
    }

    func begin() {
        hasBegun = true
        start = .now()
        cpuAtStart = ThreadTime.seconds()
        switch settings.pace {
        case .open: nextArrival = schedule?.next()
        case .closed(let concurrency): for worker in 0..<concurrency { waiting.add(.worker(worker), due: 0) }
        }
        sendDue()
    }

    /// Sends what is due, and schedules the next call for when more is.
    private func sendDue() {
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

    private func end() {
        isOver = true
        nextArrival = nil
        while let (_, item) = waiting.pop(by: .max) {
            if case .again(let flight) = item { measurement.recordGivenUp(behaviour: flight.behaviour) }
        }
        wake?.task.cancel()
    }

    private func finishIfIdle() {
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
            sendDue()
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
            dispatch(flight, on: connection, now: now)
        } else {
            pools[target].waiting.append(flight)
            openIfUseful(target)
        }
    }

    private func dispatch(_ flight: LoadFlight, on connection: LoadConnection, now: UInt64) {
        var flight = flight
        flight.sent = now
        measurement.recordSent(
            due: flight.due, submitted: flight.submitted, now: now, isExactRetry: flight.isExactRetry)
        pools[connection.target].busy += 1
        connection.flight = flight
        connection.send(deck.request(flight.card, target: connection.target))
    }

    /// Makes a connection where a request waits for one and there may be more.
    private func openIfUseful(_ target: Int) {
        let pool = pools[target]
        guard pool.connecting < pool.waiting.count, pool.open < pool.connectionsMax else { return }
        pools[target].connecting += 1
        connector.connect(LoadConnection(target: target, engine: self), to: pool.target)
    }

    private func sweep() {
        guard hasBegun else {
            // A run that is to end does not wait for handshakes.
            if stop.isSet { for connection in Array(opening.values) { connection.close("stopped") } }
            return
        }
        let limit = UInt64(settings.timeoutSeconds) * 1_000_000_000
        let now = now
        expire(submittedBy: now > limit ? now - limit : nil)
        sendDue()
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
        let late = connections.values.filter { ($0.flight?.submitted ?? .max) <= deadline }
        for connection in late { connection.close("deadlineExceeded") }
    }
}

// What connections tell, on the event loop.
extension LoadEngine {
    func connectionBecameReady(_ connection: LoadConnection) {
        connections[ObjectIdentifier(connection)] = connection
        pools[connection.target].connecting -= 1
        becameFree(connection)
        settle(connection)
    }

    func connection(_ connection: LoadConnection, received answer: HTTPAnswer) {
        guard let flight = connection.flight else { return connection.close("an answer to no request") }
        connection.flight = nil
        pools[connection.target].busy -= 1
        let outcome = answer.body.withUnsafeReadableBytes { body -> LoadOutcome in
            let outcome = LoadAnswer.judge(
                status: answer.status, body: body, proof: deck.proofs[flight.card.operation],
                retryAfterHeader: answer.retryAfterSeconds, namesLimit: answer.budget != nil)
            if outcome == .succeeded, !deck.isWhole(body.count, for: flight.card) {
                return .failed(status: answer.status, code: LoadAnswer.otherLength, reason: nil)
            }
            if outcome == .succeeded { deck.take(body, for: flight.card) }
            return outcome
        }
        measurement.budget = answer.budget ?? measurement.budget
        if answer.closes {
            openIfUseful(connection.target)
        } else {
            becameFree(connection)
        }
        finished(flight, target: connection.target, outcome)
        continueOrFinish()
    }

    func connection(_ connection: LoadConnection, wasLost reason: String) {
        let target = connection.target
        let wasOpen = connections.removeValue(forKey: ObjectIdentifier(connection)) != nil
        if let flight = connection.flight {
            connection.flight = nil
            pools[target].busy -= 1
            finished(flight, target: target, .unanswered(reason))
        } else if wasOpen {
            pools[target].idle.removeAll { $0 === connection }
        } else {
            pools[target].connecting -= 1
            failWaiting(target, reason)
        }
        settle(connection)
        guard hasBegun else { return }
        openIfUseful(target)
        continueOrFinish()
    }

    /// A node that is down is a result: requests that wait for a connection to it fail, unless another connection to
    /// the node is open. One that is being made does not count, as there would always be another.
    private func failWaiting(_ target: Int, _ reason: String) {
        guard pools[target].idle.isEmpty, pools[target].busy == 0 else { return }
        let flights = pools[target].waiting
        pools[target].waiting.removeAll()
        for flight in flights { finished(flight, target: target, .unanswered(reason)) }
    }

    private func becameFree(_ connection: LoadConnection) {
        if let next = pools[connection.target].waiting.popFirst() {
            dispatch(next, on: connection, now: now)
        } else {
            pools[connection.target].idle.append(connection)
        }
    }

    /// Counts an attempt that ended, and decides whether and when it is repeated.
    private func finished(_ flight: LoadFlight, target: Int, _ outcome: LoadOutcome) {
        let now = now
        outstanding -= 1
        let again = again(flight, outcome, now: now)
        measurement.record(
            LoadAttempt(
                outcome: outcome, behaviour: flight.behaviour, target: target, operation: flight.card.operation,
                firstDue: flight.firstDue, due: flight.due, sent: flight.sent, ended: now,
                isExactRetry: flight.isExactRetry,
                isTriedAgain: again != nil))
        if let again {
            waiting.add(.again(again), due: again.due)
        } else if !isOpenLoop, !isOver {
            // A connection that is refused is refused at once: without a pause the worker would take the CPU from the
            // nodes that are up.
            let pause: UInt64 = if case .unanswered = outcome { 50_000_000 } else { 0 }
            waiting.add(.worker(flight.turn), due: now + pause)
        }
    }

    private func again(_ flight: LoadFlight, _ outcome: LoadOutcome, now: UInt64) -> LoadFlight? {
        guard !isOver, case .throttled(_, let retryAfter) = outcome else { return nil }
        let behaviour = behaviours[flight.behaviour]
        guard
            let pause = behaviour.pause(attempt: flight.attempt, retryAfter: retryAfter, unit: random.unit())
        else { return nil }
        var again = flight
        again.attempt += 1
        again.due = now + pause
        again.isExactRetry = behaviour == .honour
        return again
    }

    /// Sends what an answer made due: in a closed loop the worker's next request.
    private func continueOrFinish() {
        if isOver { finishIfIdle() } else { sendDue() }
    }
}

/// How far a run has come: what a live view shows.
struct LoadSnapshot: Sendable {
    var seconds: Double
    /// Requests a second that are due now; nil in a closed loop.
    var dueRate: Double?
    var sent: Int
    var accepted: Int
    var throttled: Int
    /// Failed otherwise, and not answered.
    var failed: Int
    var outstanding: Int
    var waitingToRetry: Int
    var notIssued: Int
    /// The last whole seconds, oldest first, at most 60.
    var lately: [LoadTimeline.Second]
    var latencies: LatencyHistogram
    /// Most frequent first, at most 6.
    var errors: [(name: String, count: Int)]
    var budget: RateBudget?
}

extension LoadEngine {
    var snapshot: LoadSnapshot {
        let seconds = Double(now) / 1_000_000_000
        let tally = measurement.tally
        var latencies = LatencyHistogram()
        for share in measurement.byTarget { latencies.add(share.latencies) }
        let errors =
            tally.errorsByCode.map { (name: $0.key, count: $0.value) }
            + tally.errorsByTransport.map { (name: $0.key, count: $0.value) }
        var dueRate: Double?
        if case .open(let profile, _, _) = settings.pace { dueRate = profile.rate(at: seconds) }
        return LoadSnapshot(
            seconds: seconds, dueRate: dueRate, sent: measurement.sent, accepted: tally.succeeded,
            throttled: tally.throttled, failed: tally.failed - tally.throttled, outstanding: outstanding,
            waitingToRetry: waiting.count, notIssued: tally.notIssued,
            lately: measurement.timeline.seconds.prefix(Int(seconds)).suffix(60), latencies: latencies,
            errors: Array(errors.sorted { ($1.count, $0.name) < ($0.count, $1.name) }.prefix(6)),
            budget: measurement.budget)
    }

    /// Closes the connections; to be called once, at the end.
    func close() {
        for connection in Array(connections.values) { connection.close("the run is over") }
    }
}
