import EventQueue
import Glibc
import RaftCore

/// The one thread of a simulation: what will happen, when, and to whom. All of it follows from the seed.
final class World: @unchecked Sendable {
    // Touched on the thread that made it only, which every way in checks: that makes it safe to hand to code that asks
    // for `Sendable`.

    /// What an event is, for the trace.
    enum Kind: UInt64, CaseIterable {
        case task = 1
        case loop, timer, pool, apply, round, log, message, dial, client, fault, process
    }

    /// Something that will happen.
    private struct Event {
        var kind: Kind
        var process: ProcessLife?
        var loop: SimulatedLoop?
        /// For how long the process's clock had stood still when this was planned.
        var suspension: UInt64
        var body: () -> Void
    }

    static let microsecond: UInt64 = 1_000
    static let millisecond: UInt64 = 1_000_000
    static let second: UInt64 = 1_000_000_000

    /// True time in nanoseconds, which no process sees.
    private(set) var now: UInt64 = 0
    /// True time in milliseconds since 1970, but for an error that all clocks have.
    var wallMilliseconds: Int64 { SimulatedClock.wallOrigin + Int64(now / Self.millisecond) }
    var generator: SplitMix64
    /// How many events happened.
    private(set) var events: UInt64 = 0
    /// The same by kind.
    private(set) var eventsByKind = [UInt64](repeating: 0, count: Kind.allCases.count + 1)
    /// A number that two runs share only if the same things happened in the same order.
    private(set) var trace: UInt64 = 0xcbf2_9ce4_8422_2325
    /// The loop whose event is happening.
    private(set) var currentLoop: SimulatedLoop?
    /// How often each situation was met.
    private(set) var situations: [Situation: Int] = [:]
    /// Lines for a reader, where somebody wants them.
    var narrator: ((String) -> Void)?
    private var queue = EventQueue<Event>()
    private let thread = pthread_self()
    /// Events since time last moved.
    private var standing = 0
    private static let standingMax = 500_000

    init(seed: UInt64) { generator = SplitMix64(seed: seed) }

    /// - Parameters:
    ///   - process: whose event it is; it waits while that process is paused.
    ///   - loop: the event loop that it happens on, if any.
    func schedule(
        after nanoseconds: UInt64, _ kind: Kind, for process: ProcessLife?, on loop: SimulatedLoop? = nil,
        _ body: @escaping () -> Void
    ) {
        checkThread()
        let event = Event(
            kind: kind, process: process, loop: loop, suspension: process?.suspension ?? 0, body: body)
        queue.add(event, at: now + nanoseconds)
    }

    /// Traps where simulated code has left the simulation's thread: nothing after that would follow from the seed.
    func checkThread() {
        precondition(pthread_equal(thread, pthread_self()) != 0, "simulated code runs on a thread of its own")
    }

    /// Lets the next event happen.
    /// - Returns: whether there was one that is due by `end`.
    func step(until end: UInt64 = .max) -> Bool {
        guard let due = queue.nextTime, due <= end, let (time, event) = queue.next() else { return false }
        precondition(time >= now, "\(time) after \(now)")
        standing = time == now ? standing + 1 : 0
        precondition(standing < Self.standingMax, "time stands still at \(time) ns: something waits without waiting")
        now = time
        // What is due by a clock that stood still since comes later.
        if let process = event.process, event.kind == .timer || event.kind == .round,
            process.suspension > event.suspension, !process.isDead
        {
            var later = event
            later.suspension = process.suspension
            queue.add(later, at: time + process.suspension - event.suspension)
            return true
        }
        if let process = event.process, process.pausedUntil > time {
            queue.add(event, at: min(process.pausedUntil, time + ProcessLife.pauseStep))
            return true
        }
        events += 1
        eventsByKind[Int(event.kind.rawValue)] += 1
        mark(time, event.kind.rawValue, UInt64(event.process?.node ?? 0))
        currentLoop = event.loop
        event.body()
        currentLoop = nil
        return true
    }

    /// Lets everything happen that is due by `end`, and moves there.
    func run(until end: UInt64) {
        while step(until: end) {}
        now = max(now, end)
    }

    /// Folds values into the trace (FNV-1a by words).
    func mark(_ first: UInt64, _ second: UInt64, _ third: UInt64 = 0) {
        trace = (trace ^ first) &* 0x0000_0100_0000_01b3
        trace = (trace ^ second) &* 0x0000_0100_0000_01b3
        trace = (trace ^ third) &* 0x0000_0100_0000_01b3
    }

    func note(_ text: @autoclosure () -> String) {
        guard let narrator else { return }
        let milliseconds = String(now / Self.millisecond)
        narrator(String(repeating: " ", count: max(0, 7 - milliseconds.count)) + milliseconds + " " + text())
    }

    func met(_ situation: Situation) { situations[situation, default: 0] += 1 }

    // MARK: Chance

    func chance(_ percent: Int) -> Bool { percent > 0 && Int.random(in: 0..<100, using: &generator) < percent }

    /// Nanoseconds out of a range of microseconds.
    func microseconds(_ range: ClosedRange<UInt64>) -> UInt64 {
        UInt64.random(in: range, using: &generator) * Self.microsecond
    }

    /// Nanoseconds out of a range of milliseconds.
    func milliseconds(_ range: ClosedRange<UInt64>) -> UInt64 {
        UInt64.random(in: range.lowerBound * 1_000...range.upperBound * 1_000, using: &generator) * Self.microsecond
    }

    func random(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

    func pick<Element>(_ elements: [Element]) -> Element {
        precondition(!elements.isEmpty, "nothing to pick from")
        return elements[Int.random(in: elements.indices, using: &generator)]
    }
}
