/// Why something found no place in a `FairQueue`.
package enum QueueFull: Error, Hashable, Sendable {
    /// Too much of its container waits already.
    case line
    /// Too much waits already.
    case total
}

/// Waiting requests in one line for each container; the lines are served in turn. A value; the caller guards it.
package struct FairQueue: Sendable {
    /// One that waits.
    package struct Waiter: Hashable, Sendable {
        /// Unique.
        package var id: UInt64
        /// Whose line it stands in.
        package var container: String
        /// How many requests of its container may be inside for it to enter.
        package var containerMax: Int

        /// Somebody who has not joined yet.
        package init(id: UInt64, container: String, containerMax: Int) {
            self.id = id
            self.container = container
            self.containerMax = containerMax
        }
    }

    /// The waiters of one container. Who went away stays in `all` until it is passed by, or they are too many.
    private struct Line: Sendable {
        var all: [Waiter] = []
        var first = 0
        /// How many still wait.
        var count = 0
    }

    /// Waiters of one container.
    private let lineMax: Int
    /// Waiters of all containers.
    private let totalMax: Int
    private var lines: [String: Line] = [:]
    /// Who waits.
    private var present: Set<UInt64> = []
    /// The containers that have a line, in the order of their turns; `turn` is who is next.
    private var order: [String] = []
    private var turn = 0

    /// - Parameters:
    ///   - lineMax: Waiters of one container.
    ///   - totalMax: Waiters of all containers.
    package init(lineMax: Int, totalMax: Int) {
        self.lineMax = lineMax
        self.totalMax = totalMax
    }

    /// Who waits, of all containers.
    package var count: Int { present.count }

    /// How many containers somebody waits of.
    package var containerCount: Int { order.count }

    /// Joins a line, or says why there is no place.
    package mutating func join(_ waiter: Waiter) -> QueueFull? {
        let length = lines[waiter.container]?.count ?? 0
        if length >= lineMax { return .line }
        if count >= totalMax { return .total }
        if length == 0 {
            // Behind everyone who waits: just before the one whose turn it is.
            order.insert(waiter.container, at: turn)
            turn = (turn + 1) % order.count
        }
        lines[waiter.container, default: Line()].all.append(waiter)
        lines[waiter.container]?.count += 1
        present.insert(waiter.id)
        return nil
    }

    /// Takes the first waiter of the next container that may enter now; the turn passes on.
    package mutating func next(where mayEnter: (Waiter) -> Bool) -> Waiter? {
        for offset in order.indices {
            let place = (turn + offset) % order.count
            guard let waiter = first(of: order[place]), mayEnter(waiter) else { continue }
            turn = (place + 1) % order.count
            remove(waiter.id, in: waiter.container)
            return waiter
        }
        return nil
    }

    /// Takes a waiter out of its line.
    @discardableResult
    package mutating func remove(_ id: UInt64, in container: String) -> Bool {
        guard present.remove(id) != nil else { return false }
        lines[container]?.count -= 1
        if lines[container]?.count == 0 {
            lines[container] = nil
            endTurns(of: container)
        } else {
            tidy(container)
        }
        return true
    }

    /// The first who still waits.
    private mutating func first(of container: String) -> Waiter? {
        while let line = lines[container], line.first < line.all.count {
            let waiter = line.all[line.first]
            if present.contains(waiter.id) { return waiter }
            lines[container]?.first += 1
        }
        return nil
    }

    private mutating func endTurns(of container: String) {
        guard let place = order.firstIndex(of: container) else { return }
        order.remove(at: place)
        if place < turn { turn -= 1 }
        if turn >= order.count { turn = 0 }
    }

    /// Removes waiters that left when they outnumber those that wait, so that each costs a constant time.
    private mutating func tidy(_ container: String) {
        guard let line = lines[container], line.all.count > 2 * line.count + 32 else { return }
        lines[container]?.all = line.all[line.first...].filter { present.contains($0.id) }
        lines[container]?.first = 0
    }
}
