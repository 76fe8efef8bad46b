import Cluster
import RaftCore
import Synchronization
import TestSupport
import Testing

@testable import Service

@Suite("Fair places for concurrent requests")
struct FairGateTests {
    /// Waits until so many requests wait at the gate; others run meanwhile.
    private func settle(_ gate: FairGate, waiting: Int) async {
        while gate.load.waiting != waiting { await Task.yield() }
    }

    @Test("lines are served in turn, whoever is long or short")
    func turns() {
        var queue = FairQueue(lineMax: 10, totalMax: 100)
        var id: UInt64 = 0
        func join(_ container: String) -> QueueFull? {
            id += 1
            return queue.join(FairQueue.Waiter(id: id, container: container, containerMax: 9))
        }
        for _ in 0..<4 { #expect(join("heavy") == nil) }
        #expect(join("light") == nil)
        #expect(join("other") == nil)
        var order: [String] = []
        while let waiter = queue.next(where: { _ in true }) {
            order.append(waiter.container)
            // Somebody new waits until all who wait now had a turn.
            if order.count == 2 { #expect(join("new") == nil) }
        }
        #expect(order == ["heavy", "light", "other", "heavy", "new", "heavy", "heavy"])
        #expect(queue.count == 0)
    }

    @Test("lines are bounded, one and all")
    func bounds() {
        var queue = FairQueue(lineMax: 2, totalMax: 3)
        func waiter(_ id: UInt64, _ container: String) -> FairQueue.Waiter {
            FairQueue.Waiter(id: id, container: container, containerMax: 1)
        }
        #expect(queue.join(waiter(1, "a")) == nil)
        #expect(queue.join(waiter(2, "a")) == nil)
        #expect(queue.join(waiter(3, "a")) == .line)
        #expect(queue.join(waiter(4, "b")) == nil)
        #expect(queue.join(waiter(5, "c")) == .total)
        #expect(queue.remove(1, in: "a") && !queue.remove(1, in: "a"))
        #expect(queue.next { $0.container != "a" }?.id == 4)
        #expect(queue.next { _ in true }?.id == 2)
    }

    @Test("a request enters while there is room, waits when there is none, and is refused when the line is full")
    func room() async {
        let gate = FairGate(limit: 2, queueMax: 1)
        #expect(await gate.enter(container: "a", containerMax: 9) == .entered)
        #expect(await gate.enter(container: "a", containerMax: 9) == .entered)
        async let third = gate.enter(container: "a", containerMax: 9)
        await settle(gate, waiting: 1)
        #expect(await gate.enter(container: "a", containerMax: 9) == .refused(.containerQueueFull))
        gate.leave(container: "a")
        #expect(await third == .entered)
        gate.leave(container: "a")
        gate.leave(container: "a")
        #expect(gate.load == (0, 0))
    }

    @Test("a container may not have more inside than its own limit")
    func containerMax() async {
        let gate = FairGate(limit: 10, queueMax: 0)
        #expect(await gate.enter(container: "a", containerMax: 1) == .entered)
        #expect(await gate.enter(container: "a", containerMax: 1) == .refused(.containerQueueFull))
        #expect(await gate.enter(container: "b", containerMax: 1) == .entered)
    }

    @Test("a container that takes what it can leaves an eighth for somebody new")
    func newcomer() async {
        let gate = FairGate(limit: 16, queueMax: 0)
        var entered = 0
        while await gate.enter(container: "heavy", containerMax: 100) == .entered { entered += 1 }
        #expect(entered == 14)
        #expect(await gate.enter(container: "new", containerMax: 100) == .entered)
        #expect(await gate.enter(container: "newer", containerMax: 100) == .entered)
    }

    @Test("beside a long line, another container's request is next but one at the latest")
    func fairness() async {
        let gate = FairGate(limit: 1, queueMax: 50)
        let order = Journal()
        #expect(await gate.enter(container: "heavy", containerMax: 100) == .entered)
        await withTaskGroup(of: Void.self) { group in
            func ask(_ container: String) {
                group.addTask {
                    guard await gate.enter(container: container, containerMax: 100) == .entered else { return }
                    order.append(container)
                    gate.leave(container: container)
                }
            }
            for _ in 0..<20 { ask("heavy") }
            await settle(gate, waiting: 20)
            ask("light")
            await settle(gate, waiting: 21)
            gate.leave(container: "heavy")
        }
        #expect(order.all.firstIndex(of: "light") ?? 99 <= 1)
        #expect(order.all.count == 21)
        #expect(gate.load == (0, 0))
    }

    @Test("a request that goes away while it waits leaves the line")
    func cancellation() async {
        let gate = FairGate(limit: 1, queueMax: 5)
        #expect(await gate.enter(container: "a", containerMax: 9) == .entered)
        let waiting = Task { await gate.enter(container: "a", containerMax: 9) }
        await settle(gate, waiting: 1)
        waiting.cancel()
        #expect(await waiting.value == .refused(.cancelled))
        #expect(gate.load == (1, 0))
        gate.leave(container: "a")
        #expect(await gate.enter(container: "a", containerMax: 9) == .entered)
    }

    @Test("under a crowd, nobody is forgotten and the room is never exceeded")
    func crowd() async {
        let gate = FairGate(limit: 4, queueMax: 1_000)
        let inside = Tally()
        let excess = Tally()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<400 {
                group.addTask {
                    let container = "c\(number % 7)"
                    guard await gate.enter(container: container, containerMax: 3) == .entered else {
                        excess.add(1)
                        return
                    }
                    if inside.add(1) > 4 {
                        excess.add(1)
                    }
                    await Task.yield()
                    inside.add(-1)
                    gate.leave(container: container)
                }
            }
        }
        #expect(excess.value == 0)
        #expect(gate.load == (0, 0))
    }

    @Test("where one container waits for its own limit, others pass, and its requests enter in turn when its own leave")
    func ownLimit() async {
        let gate = FairGate(limit: 16, queueMax: 5)
        #expect(await gate.enter(container: "heavy", containerMax: 1) == .entered)
        async let second = gate.enter(container: "heavy", containerMax: 1)
        await settle(gate, waiting: 1)
        for number in 0..<5 { #expect(await gate.enter(container: "c\(number)", containerMax: 9) == .entered) }
        #expect(gate.load == (6, 1))
        for number in 0..<5 { gate.leave(container: "c\(number)") }
        #expect(gate.load == (1, 1))
        gate.leave(container: "heavy")
        #expect(await second == .entered)
        gate.leave(container: "heavy")
        #expect(gate.load == (0, 0))
    }

    @Test("beside one that asks for little, a container has as many inside as there are processors, and alone all room")
    func besideLittle() {
        let clock = HandClock()
        let recent = RecentWork { clock.now }
        let gate = FairGate(limit: 64, queueMax: 0, processors: 2, beside: recent)
        func enter(_ container: String) -> Bool { gate.enterNow(container: container, containerMax: 100) }
        for _ in 0..<20 { #expect(enter("heavy")) }
        #expect(enter("light"))
        #expect(!enter("heavy"))
        for _ in 0..<19 { gate.leave(container: "heavy") }
        #expect(enter("heavy") && !enter("heavy"))
        // Its next request is on its way, for all that is known.
        gate.leave(container: "light")
        func staysShared() {
            clock.advance(milliseconds: RecentWork.memoryMilliseconds - 1)
            for _ in 0..<30 {
                gate.leave(container: "heavy")
                #expect(enter("heavy") && !enter("heavy"))
            }
        }
        staysShared()
        // It asks another node, and this one applies what it changes.
        recent.note("light")
        staysShared()
        clock.advance(milliseconds: 1)
        for _ in 0..<40 { #expect(enter("heavy")) }
    }

    @Test("whose work is recent is known of the two that had work last, whoever asks", arguments: 0..<20)
    func recentWork(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let clock = HandClock()
        let recent = RecentWork { clock.now }
        let owners = ["a", "b", "c"]
        var all: [(owner: String, time: MonotonicTime)] = []
        for _ in 0..<200 {
            clock.advance(milliseconds: UInt64.random(in: 0...200, using: &generator))
            let owner = owners[Int.random(in: 0...2, using: &generator)]
            recent.note(owner)
            all.append((owner, clock.now))
            clock.advance(milliseconds: UInt64.random(in: 0...200, using: &generator))
            for asking in owners + ["d"] {
                let isShared = all.contains {
                    $0.owner != asking && clock.now < $0.time.adding(milliseconds: RecentWork.memoryMilliseconds)
                }
                #expect(recent.hasOthers(than: asking) == isShared)
            }
        }
    }

    @Test("containers that all ask for much do not hold each other up, also where they wait")
    func besideMuch() async {
        let gate = FairGate(limit: 64, queueMax: 5, processors: 2)
        for container in ["a", "b"] {
            for _ in 0..<10 { #expect(gate.enterNow(container: container, containerMax: 10)) }
        }
        async let waiting = gate.enter(container: "a", containerMax: 10)
        await settle(gate, waiting: 1)
        #expect(gate.enterNow(container: "b", containerMax: 100), "10 of the other are inside, and 1 waits")
        #expect(!gate.enterNow(container: "b", containerMax: 100))
        gate.leave(container: "a")
        #expect(await waiting == .entered)
    }

    /// Has clients of two containers ask for one thing after another; each turn answers who is inside for longest.
    /// - Returns: how many requests of the container with four clients were answered, once those had left that were
    ///   inside before.
    private func answers(turns: Int, besideClients heavyClients: Int) async -> Int {
        let clock = HandClock()
        let gate = FairGate(
            limit: 1_024, queueMax: 1_024, processors: 2, beside: RecentWork { clock.now })
        let entries = Journal()
        return await withTaskGroup(of: Void.self) { group in
            var (asked, answered, light) = (0, 0, 0)
            func ask(_ container: String) async {
                asked += 1
                group.addTask {
                    guard await gate.enter(container: container, containerMax: 1_024) == .entered else { return }
                    entries.append(container)
                }
                await settle()
            }
            // Whoever asks is inside, or waits.
            func settle() async {
                while gate.load.inside + gate.load.waiting < asked - answered
                    || entries.all.count < answered + gate.load.inside
                { await Task.yield() }
            }
            for _ in 0..<heavyClients { await ask("heavy") }
            for _ in 0..<4 { await ask("light") }
            while answered < asked {
                let container = entries.all[answered]
                answered += 1
                gate.leave(container: container)
                await settle()
                if answered > heavyClients + turns { continue }
                if answered > heavyClients, container == "light" { light += 1 }
                await ask(container)
            }
            return light
        }
    }

    @Test("clients of a busy container leave those of another half of what they have alone")
    func halves() async {
        #expect(await answers(turns: 1_000, besideClients: 0) == 1_000)
        #expect(await answers(turns: 1_000, besideClients: 64) >= 499)
    }

    @Test("a line whose waiters go away from the middle keeps its order, and no place for them", arguments: 1...3)
    func gone(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var queue = FairQueue(lineMax: 1_000, totalMax: 1_000)
        var waiting: [UInt64] = []
        for id in 1...2_000 as ClosedRange<UInt64> {
            #expect(queue.join(FairQueue.Waiter(id: id, container: "a", containerMax: 1)) == nil)
            waiting.append(id)
            let isLong = waiting.count > 40
            if isLong || Bool.random(using: &generator) {
                let place = Int.random(in: 0..<waiting.count, using: &generator)
                let isRemoved = queue.remove(waiting.remove(at: place), in: "a")
                #expect(isRemoved)
            }
            if Int.random(in: 0..<8, using: &generator) == 0 {
                #expect(queue.next { _ in true }?.id == (waiting.isEmpty ? nil : waiting.removeFirst()))
            }
            #expect(queue.count == waiting.count)
        }
        while let waiter = queue.next(where: { _ in true }) { #expect(waiter.id == waiting.removeFirst()) }
        #expect(waiting.isEmpty)
    }
}

/// A count that tasks share.
private final class Tally: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .sequentiallyConsistent) }

    /// The count afterwards.
    @discardableResult
    func add(_ amount: Int) -> Int { count.add(amount, ordering: .sequentiallyConsistent).newValue }
}

/// A list that tasks share.
private final class Journal: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock(\.self) }

    func append(_ line: String) { lines.withLock { $0.append(line) } }
}
