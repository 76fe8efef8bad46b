import NIOCore

extension LoadEngine: LoadConnectionOwner {
    func connectionBecameReady(_ connection: LoadConnection) {
        underWay[ObjectIdentifier(connection)] = connection
        pools[connection.target].connecting -= 1
        becameFree(connection)
    }

    func connection(_ connection: LoadConnection, received answer: HTTPAnswer) {
        guard let flight = connection.flight else { return connection.close("an answer to no request") }
        connection.flight = nil
        pools[connection.target].busy -= 1
        let outcome = answer.body.withUnsafeReadableBytes { body in
            let outcome = LoadAnswer.judge(
                status: answer.status, body: body, proof: deck.proofs[flight.card.operation],
                retryAfterHeader: answer.retryAfterSeconds, namesLimit: answer.budget != nil)
            if outcome == .succeeded { deck.take(body, for: flight.card) }
            return outcome
        }
        if let budget = answer.budget { measurement.recordBudget(budget) }
        if answer.closes {
            openIfUseful(connection.target)
        } else {
            becameFree(connection)
        }
        finished(flight, target: connection.target, outcome)
        turnSoon()
    }

    func connection(_ connection: LoadConnection, wasLost reason: String) {
        let target = connection.target
        let wasOpen = underWay.removeValue(forKey: ObjectIdentifier(connection)) != nil
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
        openIfUseful(target)
        turnSoon()
    }

    /// A node that is down is a result, to be counted when it is met: requests that wait for a connection end with it, unless
    /// another connection to the node stands. One that is only being made is no hope: there would always be another.
    private func failWaiting(_ target: Int, _ reason: String) {
        guard pools[target].idle.isEmpty, pools[target].busy == 0 else { return }
        let flights = pools[target].waiting
        pools[target].waiting.removeAll()
        for flight in flights { finished(flight, target: target, .unanswered(reason)) }
    }

    private func becameFree(_ connection: LoadConnection) {
        if let next = pools[connection.target].waiting.popFirst() {
            fly(next, on: connection, now: now)
        } else {
            pools[connection.target].idle.append(connection)
        }
    }

    /// Counts an attempt that ended, and decides whether and when it is made again.
    func finished(_ flight: LoadFlight, target: Int, _ outcome: LoadOutcome) {
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
            // A connection that is refused is refused at once: without a pause the worker would take the CPU from the nodes that
            // are up.
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

    /// Sends what became due by an answer. In a closed loop that is the worker's next request.
    private func turnSoon() {
        if isOver { finishIfIdle() } else { turn() }
    }
}
