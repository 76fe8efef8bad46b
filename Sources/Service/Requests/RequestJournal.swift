import Cluster
import DequeModule
import RaftCore
package import RecordModel
import Synchronization

/// What a node remembers of its requests: the newest ones, and what all of them came to. In memory, and bounded: a node
/// that starts again begins with nothing.
///
/// A request costs one lock, under which it is added to the log and to the cell of its minute. Any thread.
package final class RequestJournal: Sendable {
    private struct State {
        var log: RequestLog
        var series = TelemetrySeries()
        /// Requests that were refused before anything was known of their sender: nobody else's are to go for them.
        var strangers = PerSecond(max: 20)
    }

    private let state: Mutex<State>
    private let clock: any NodeClock
    /// Tells one start of the node from another, for streams that go on.
    let start: UInt64
    /// When this one began.
    let began: MonotonicTime
    /// Whether anything is remembered.
    package let isOn: Bool

    /// - Parameter bytesMax: of the log; 0: nothing is remembered of requests, nor counted.
    init(platform: any NodePlatform, bytesMax: Int) {
        isOn = bytesMax > 0
        state = Mutex(State(log: RequestLog(bytesMax: bytesMax)))
        clock = platform.clock
        began = platform.clock.now
        start = UInt64(bitPattern: platform.clock.wallMilliseconds) << 16 ^ platform.clock.now.nanoseconds
    }

    /// Takes a request that was answered now.
    /// - Parameter isKnown: whether there is a container of the name that it says. Only such are counted by name, as
    ///   anybody can invent others.
    package func take(_ entry: RequestEntry, isKnown: Bool) {
        guard isOn else { return }
        let now = clock.wallMilliseconds
        state.withLock { state in
            if !entry.isRefresh { state.series.count(entry, in: isKnown ? nil : "", at: now) }
            if Self.isLogged(entry, at: now, &state) { state.log.append(entry) }
        }
    }

    private static func isLogged(_ entry: RequestEntry, at now: Int64, _ state: inout State) -> Bool {
        guard entry.code != nil, entry.credential.isEmpty else { return true }
        return state.strangers.passes(at: now)
    }

    /// Counts notifications that a device or a webhook was told now.
    package func told(_ count: Int, container: String, _ environment: Environment) {
        guard count > 0 else { return }
        let now = clock.wallMilliseconds
        state.withLock { $0.series.count(notifications: count, container: container, environment, at: now) }
    }

    /// Ends the minute at hand before its time.
    package func endMinute() {
        let now = clock.wallMilliseconds
        state.withLock { $0.series.endMinute(at: now + 60_000) }
    }

    /// What minutes that are over came to by day; the journal then forgets it.
    func takeDays() -> [(key: DayCounts.Key, usage: DayUsage)] {
        let now = clock.wallMilliseconds
        return state.withLock { state in
            state.series.endMinute(at: now)
            return state.series.days.takeAll()
        }
    }

    /// Takes back what could not be kept elsewhere.
    func giveBack(_ usage: DayUsage, to key: DayCounts.Key) { state.withLock { $0.series.days.add(usage, to: key) } }

    func newest(_ filter: RequestFilter, before: UUIDv7?, limit: Int) -> [RequestEntry] {
        state.withLock { $0.log.newest(filter, before: before, limit: limit) }
    }

    func entry(of id: UUIDv7) -> RequestEntry? { state.withLock { $0.log.entry(of: id) } }

    /// What was answered after a mark; without one, or after one of another start, nothing but the present mark.
    func after(_ mark: FollowedRequests.Mark?, _ filter: RequestFilter, limit: Int) -> FollowedRequests {
        state.withLock { state in
            let present = FollowedRequests.Mark(start: start, count: state.log.count)
            guard let mark, mark.start == start else { return FollowedRequests(mark: present) }
            let (entries, skipped) = state.log.entries(after: mark.count, filter, limit: limit)
            return FollowedRequests(mark: present, entries: entries, skipped: UInt64(skipped))
        }
    }

    func recent(minutes: Int64) -> [TelemetryPlace: TelemetryCell] {
        let now = clock.wallMilliseconds
        return state.withLock(\.series).recent(minutes: minutes, at: now)
    }

    func sums(_ filter: TelemetryFilter) -> TelemetrySums {
        let now = clock.wallMilliseconds
        // A copy, so that requests need not wait for the sums.
        return state.withLock(\.series).sums(filter, at: now)
    }
}

/// How many of something are let through in a second. A value: time is passed in.
struct PerSecond {
    private let max: Int
    private var second: Int64 = 0
    private var count = 0

    init(max: Int) { self.max = max }

    /// Whether one more passes.
    /// - Parameter time: milliseconds since 1970.
    mutating func passes(at time: Int64) -> Bool {
        if second != time / 1_000 { (second, count) = (time / 1_000, 0) }
        count += 1
        return count <= max
    }
}

/// The newest requests of a node, bounded by their bytes. A value: time and chance are of the entries.
struct RequestLog {
    /// What the entries may take in memory.
    private let bytesMax: Int
    private var entries: Deque<RequestEntry> = []
    private var bytes = 0
    /// How many entries there were before the first one of `entries`.
    private var dropped: UInt64 = 0

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// How many entries there ever were.
    var count: UInt64 { dropped + UInt64(entries.count) }

    mutating func append(_ entry: RequestEntry) {
        entries.append(entry)
        bytes += entry.sizeBytes
        while bytes > bytesMax, entries.count > 1 {
            bytes -= entries.removeFirst().sizeBytes
            dropped += 1
        }
    }

    /// The newest of those that a filter lets through and that came before a request, the newest first.
    func newest(_ filter: RequestFilter, before: UUIDv7?, limit: Int) -> [RequestEntry] {
        var found: [RequestEntry] = []
        // They stand in the order in which they were answered, which is nearly that in which they came.
        for entry in entries.reversed() where before.map({ entry.id < $0 }) ?? true {
            guard filter.admits(entry) else { continue }
            found.append(entry)
            if found.count >= 4 * limit { found = Self.newest(found, limit) }
        }
        return Self.newest(found, limit)
    }

    private static func newest(_ entries: [RequestEntry], _ limit: Int) -> [RequestEntry] {
        Array(entries.sorted { $0.id > $1.id }.prefix(limit))
    }

    /// Those that a filter lets through and that were answered after the first `count` ever, oldest first; of more than
    /// `limit` the newest, and how many others there were.
    func entries(after count: UInt64, _ filter: RequestFilter, limit: Int) -> (entries: [RequestEntry], skipped: Int) {
        let first = count > dropped ? Int(min(count - dropped, UInt64(entries.count))) : 0
        let missed = count < dropped ? Int(clamping: dropped - count) : 0
        let found = entries[first...].filter { filter.admits($0) }
        return (Array(found.suffix(limit)), missed + max(found.count - limit, 0))
    }

    func entry(of id: UUIDv7) -> RequestEntry? { entries.last { $0.id == id } }
}
