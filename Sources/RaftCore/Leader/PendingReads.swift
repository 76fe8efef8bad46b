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

    /// Lets the waiting reads ride on a round that begins now.
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

    /// Takes all reads, oldest first.
    mutating func removeAll() -> [UInt64] {
        let all = batches.flatMap(\.ids) + waiting
        self = PendingReads()
        return all
    }
}
