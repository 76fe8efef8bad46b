import RaftCore

/// One life of a simulated process: from a start to a crash or a stop.
final class ProcessLife: @unchecked Sendable {
    // Touched on the simulation's thread only.
    /// The node's number, from 1; 0 for the clients.
    let node: Int
    /// Counts the node's lives, from 1.
    let life: Int
    var clock: SimulatedClock
    /// Stopped until then, as by SIGSTOP: its events wait, its clocks run on, or only the one on the wall does.
    var pausedUntil: UInt64 = 0
    /// For how long its monotonic clock has stood still by now, or will have when its pause is over.
    private(set) var suspension: UInt64 = 0
    /// What the monotonic clock showed when the two last came to disagree; nil where it need not have noticed.
    private var disagreed: MonotonicTime?
    /// Until when its monotonic clock stood still last.
    private var suspendedUntil: UInt64?
    /// When the two came to disagree, or may have.
    private var lastDisagreed: UInt64 = 0
    /// By when its lane has looked at its clocks.
    private static let noticeMax = 500 * World.millisecond
    /// Whether it has crashed. What is left of it goes on to be stopped and freed, and reaches nobody.
    private(set) var isDead = false
    /// Called once when it dies, in order.
    private var deathWatches: [(id: UInt64, body: () -> Void)] = []
    private var nextWatch: UInt64 = 0

    init(node: Int, life: Int, clock: SimulatedClock) {
        self.node = node
        self.life = life
        self.clock = clock
    }

    /// How long it takes at most until a pause that ends early is over: all that waits goes on at one moment then, in
    /// its order.
    static let pauseStep = 100 * World.millisecond

    /// Ends a pause early.
    func resume(at now: UInt64) {
        // What waits for its clock to go on is planned for that time.
        if lastDisagreed < pausedUntil { pausedUntil = min(pausedUntil, now + Self.pauseStep) }
    }

    /// Stands still, and so does its monotonic clock, as on a virtual machine that is suspended.
    func suspend(for nanoseconds: UInt64, at now: UInt64) {
        guard pausedUntil <= now else { return }
        pausedUntil = now + nanoseconds
        suspension += nanoseconds
        clock.suspend(at: now, until: pausedUntil)
        suspendedUntil = pausedUntil
        (disagreed, lastDisagreed) = (clock.local(at: pausedUntil), pausedUntil)
    }

    /// Whether its monotonic clock stood still, and it need not have noticed yet.
    func mayNotKnowTime(at now: UInt64) -> Bool { hasStoodStill(at: now, within: Self.noticeMax) }

    /// Whether its monotonic clock stands still, or did within so many nanoseconds.
    func hasStoodStill(at now: UInt64, within nanoseconds: UInt64) -> Bool {
        suspendedUntil.map { now <= $0 + nanoseconds } ?? false
    }

    /// Its wall clock is set.
    func setWall(_ milliseconds: Int64, at now: UInt64) {
        let change = (milliseconds - clock.wallOffsetMilliseconds).magnitude
        clock.wallOffsetMilliseconds = milliseconds
        if change == 0 { return }
        // Two changes of which it sees one may come to nothing.
        let isSeen = change > 100 && lastDisagreed + Self.noticeMax < now && pausedUntil + Self.noticeMax < now
        (disagreed, lastDisagreed) = (isSeen ? clock.local(at: now) : nil, now)
    }

    /// When its clocks last came to disagree, on its own, as it must have noticed by now; nil for never, or in doubt.
    func noticedDisagreement(at now: UInt64) -> MonotonicTime? {
        lastDisagreed + Self.noticeMax < now ? disagreed : nil
    }

    func onDeath(_ body: @escaping () -> Void) -> UInt64 {
        nextWatch += 1
        deathWatches.append((nextWatch, body))
        return nextWatch
    }

    func forgetWatch(_ id: UInt64) { deathWatches.removeAll { $0.id == id } }

    func die() {
        guard !isDead else { return }
        isDead = true
        pausedUntil = 0
        let watches = deathWatches
        deathWatches = []
        for watch in watches { watch.body() }
    }
}

/// A machine's clocks: one that counts from a start and may run too fast or too slow, and one on the wall that may also
/// jump.
struct SimulatedClock {
    private var baseTrue: UInt64
    private var baseLocal: UInt64
    private(set) var driftPartsPerMillion: Int64 = 0
    /// What the wall clock shows beyond true time, in milliseconds.
    var wallOffsetMilliseconds: Int64 = 0
    /// What wall clocks show when a simulation begins: in the year 2026.
    static let wallOrigin: Int64 = 1_780_000_000_000

    /// - Parameter origin: what the monotonic clock shows at `time`.
    init(at time: UInt64, origin: UInt64) {
        baseTrue = time
        baseLocal = origin
    }

    func local(at time: UInt64) -> MonotonicTime {
        // It stands still until then.
        guard time > baseTrue else { return MonotonicTime(nanoseconds: baseLocal) }
        let elapsed = (time - baseTrue) * UInt64(1_000_000 + driftPartsPerMillion) / 1_000_000
        return MonotonicTime(nanoseconds: baseLocal + elapsed)
    }

    func wallMilliseconds(at time: UInt64) -> Int64 {
        Self.wallOrigin + Int64(time / 1_000_000) + wallOffsetMilliseconds
    }

    /// How much true time passes while the clock counts `nanoseconds`.
    func trueDuration(of nanoseconds: UInt64) -> UInt64 {
        if driftPartsPerMillion == 0 { return nanoseconds }
        let rate = UInt64(1_000_000 + driftPartsPerMillion)
        return rate.dividingFullWidth(nanoseconds.multipliedFullWidth(by: 1_000_000)).quotient
    }

    mutating func setDrift(_ partsPerMillion: Int64, at time: UInt64) {
        baseLocal = local(at: time).nanoseconds
        baseTrue = max(baseTrue, time)
        driftPartsPerMillion = partsPerMillion
    }

    /// Has the monotonic clock stand still for a while.
    mutating func suspend(at time: UInt64, until end: UInt64) {
        baseLocal = local(at: time).nanoseconds
        baseTrue = end
    }
}
