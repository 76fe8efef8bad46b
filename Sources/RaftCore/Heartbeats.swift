/// Reads that wait until a round of heartbeats proves that their leader still led after they came (dissertation
/// section 6.4). Reads that wait together share a round; one round that serves reads is under way at a time, unless the
/// heartbeat timer starts another.
struct PendingReads: Hashable, Sendable {
    private(set) var waiting: [UInt64] = []
    private(set) var batches: [Batch] = []
    private(set) var count = 0

    struct Batch: Hashable, Sendable {
        var round: UInt64
        var index: LogIndex
        var ids: [UInt64]
    }

    mutating func add(_ id: UInt64) {
        waiting.append(id)
        count += 1
    }

    /// Attaches the waiting reads to a round that begins now.
    mutating func begin(round: UInt64, index: LogIndex) {
        if let latest = batches.last { precondition(latest.round < round, "round \(round) after \(latest.round)") }
        if waiting.isEmpty { return }
        batches.append(Batch(round: round, index: index, ids: waiting))
        waiting = []
    }

    /// Takes the reads whose round, or a later one, is confirmed.
    mutating func confirm(through round: UInt64) -> [ReadReady] {
        var ready: [ReadReady] = []
        while let batch = batches.first, batch.round <= round {
            ready += batch.ids.map { ReadReady(id: $0, index: batch.index) }
            batches.removeFirst()
        }
        count -= ready.count
        precondition(count >= 0, "\(count) reads wait")
        return ready
    }

    /// All reads, oldest first.
    var all: [UInt64] { batches.flatMap(\.ids) + waiting }
}

/// When the latest rounds of heartbeats were sent: what a lease is counted from.
struct HeartbeatRounds: Hashable, Sendable {
    /// More rounds than this are not under way at once, so an answer to an older one is rare and worth nothing.
    private static let countMax = 64

    private var recent: [Round] = []

    private struct Round: Hashable, Sendable {
        var number: UInt64
        var sentAt: MonotonicTime
    }

    /// Notes a round that is sent now, and forgets those too old to give a lease.
    mutating func begin(_ number: UInt64, now: MonotonicTime, lease: LeaseSettings) {
        if let latest = recent.last { precondition(latest.number < number, "round \(number) after \(latest.number)") }
        let expired = recent.prefix { $0.sentAt.adding(nanoseconds: lease.nanoseconds) <= now }.count
        recent.removeFirst(max(expired, recent.count - (Self.countMax - 1), 0))
        recent.append(Round(number: number, sentAt: now))
    }

    /// When the round was sent; nil if that is too long ago to matter.
    func sentAt(_ number: UInt64) -> MonotonicTime? {
        recent.last { $0.number == number }?.sentAt
    }
}
