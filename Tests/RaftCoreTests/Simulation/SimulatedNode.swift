import RaftCore

/// One replica with its disk, its state machine and its clock.
struct SimulatedNode {
    let id: ReplicaID
    /// Nil while it is down.
    var raft: Raft?
    var disk: Disk
    /// Asked of the disk and not done.
    var work: [Work] = []
    var isDiskBusy = false
    var clock = Clock()
    /// Counts starts, so that what was meant for an earlier life is dropped.
    var life = 0
    /// Stopped until then; its clock runs on.
    var pausedUntil: UInt64 = 0
    /// When it is to be woken, in true time; nil if nothing is scheduled.
    var wakeAt: UInt64?
    /// Removed and stopped for good.
    var isRetired = false
    /// Since when it is in no committed configuration; nil while it is.
    var outsideSince: UInt64?

    // The state machine:
    var applied = LogIndex.zero
    /// What it will surely come back to after a crash.
    var checkpoint = LogIndex.zero
    var commitTarget = LogIndex.zero
    var isApplying = false
    /// Reads whose index is not applied yet.
    var reads: [ReadReady] = []

    struct Disk {
        var hardState = HardState()
        var snapshot: SnapshotMark
        var entries: [Entry] = []
        var lastLog: LogPosition { entries.last?.position ?? snapshot.position }

        func entries(from: LogIndex, through: LogIndex) -> ArraySlice<Entry> {
            let first = snapshot.position.index.next
            guard from >= first, from <= through, let last = entries.last?.index, from <= last else { return [] }
            let start = Int(from.rawValue - first.rawValue)
            return entries[start...Int(min(through, last).rawValue - first.rawValue)]
        }

        mutating func append(_ new: [Entry]) {
            guard let first = new.first else { return }
            let keep = Int(first.index.rawValue - snapshot.position.index.next.rawValue)
            entries.removeSubrange(keep...)
            entries += new
        }
    }

    enum Work {
        case persist(HardState?, [Entry], [Message])
        case install(SnapshotMark)
    }

    /// A clock that runs too fast or too slow.
    struct Clock {
        private var baseTrue: UInt64 = 0
        private var baseLocal: UInt64 = 0
        private(set) var driftPartsPerMillion: Int64 = 0

        func local(at time: UInt64) -> MonotonicTime {
            let elapsed = (time - baseTrue) * UInt64(1_000_000 + driftPartsPerMillion) / 1_000_000
            return MonotonicTime(nanoseconds: baseLocal + elapsed)
        }

        /// The first true time at which the clock shows `local` or more.
        func trueTime(of local: MonotonicTime) -> UInt64 {
            guard local.nanoseconds > baseLocal else { return baseTrue }
            let rate = UInt64(1_000_000 + driftPartsPerMillion)
            return baseTrue + ((local.nanoseconds - baseLocal) * 1_000_000 + rate - 1) / rate
        }

        mutating func setDrift(_ partsPerMillion: Int64, at time: UInt64) {
            baseLocal = local(at: time).nanoseconds
            baseTrue = time
            driftPartsPerMillion = partsPerMillion
        }
    }

    init(id: ReplicaID, bootstrap: Configuration) {
        self.id = id
        disk = Disk(snapshot: SnapshotMark(position: .zero, configuration: bootstrap))
    }

    mutating func start(settings: RaftSettings, at time: UInt64, using generator: inout SplitMix64) {
        var restored = RestoredState(hardState: disk.hardState, snapshot: disk.snapshot, entries: disk.entries)
        restored.applied = applied
        restored.tail = disk.entries.suffix(Int.random(in: 0...disk.entries.count, using: &generator))
        raft = Raft(id: id, settings: settings, seed: generator.next(), restored: restored, now: clock.local(at: time))
        commitTarget = applied
    }

    /// Loses what is in memory. Of what the disk was asked for, a part from the beginning is done although nobody was
    /// told.
    mutating func crash(using generator: inout SplitMix64) {
        raft = nil
        life += 1
        for work in work.prefix(Int.random(in: 0...work.count, using: &generator)) { perform(work) }
        work = []
        isDiskBusy = false
        wakeAt = nil
        isApplying = false
        reads = []
        // A database comes back as of its last checkpoint or later.
        applied = LogIndex(UInt64.random(in: checkpoint.rawValue...applied.rawValue, using: &generator))
        // It may hold more than the log only if the log was emptied for a snapshot.
        commitTarget = applied
    }

    mutating func perform(_ work: Work) {
        switch work {
        case .persist(let hardState, let entries, _):
            if let hardState { disk.hardState = hardState }
            disk.append(entries)
        case .install(let mark):
            disk.snapshot = mark
            disk.entries = []
            applied = mark.position.index
            checkpoint = applied
        }
    }
}
