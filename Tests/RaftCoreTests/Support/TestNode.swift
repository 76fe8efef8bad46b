import RaftCore

/// One replica with its disk and state machine, in memory.
///
/// It keeps the shell's contract: persists become durable in order, and messages that wait for one go out with it.
struct TestNode {
    let id: ReplicaID
    /// Nil while crashed.
    var raft: Raft?
    var disk: Disk
    var work: [Work] = []
    var loads: [LoadRequest] = []
    var reads: [ReadReady] = []
    var failedReads: [FailedRead] = []

    /// What survives a crash. The state machine is as durable as it can be, so that being ahead of the log would show.
    struct Disk {
        var hardState = HardState()
        var snapshot: SnapshotMark
        var entries: [Entry] = []
        var applied: [Entry] = []
        var appliedIndex: LogIndex { applied.last?.index ?? .zero }
        var lastLog: LogPosition { entries.last?.position ?? snapshot.position }
    }

    /// What the disk has been asked to do and has not done.
    enum Work {
        case persist(HardState?, [Entry], [Message])
        case install(SnapshotMark, [Entry])
    }

    init(id: ReplicaID, configuration: Configuration) {
        self.id = id
        disk = Disk(snapshot: SnapshotMark(position: .zero, configuration: configuration))
    }

    mutating func start(settings: RaftSettings, seed: UInt64, now: MonotonicTime) {
        var restored = RestoredState(hardState: disk.hardState, snapshot: disk.snapshot, entries: disk.entries)
        restored.applied = disk.appliedIndex
        // Half of the tail is left on disk, so that loads happen.
        restored.tail = Array(disk.entries.suffix(disk.entries.count / 2))
        raft = Raft(id: id, settings: settings, seed: seed, restored: restored, now: now)
    }

    mutating func crash() {
        raft = nil
        work = []
        loads = []
    }

    mutating func append(_ entries: [Entry]) {
        guard let first = entries.first else { return }
        disk.entries.removeAll { $0.index >= first.index }
        disk.entries += entries
    }

    func loaded(_ request: LoadRequest) -> [Entry] {
        let range = disk.entries.filter { $0.index >= request.from && $0.index <= request.through }
        guard range.first?.index == request.from else { return [] }
        return Array(range.prefix(3))
    }

    mutating func compact(through index: LogIndex) {
        guard let raft, index > disk.snapshot.position.index, index <= disk.appliedIndex,
            let entry = disk.entries.first(where: { $0.index == index })
        else { return }
        var configuration = disk.snapshot.configuration
        for entry in disk.entries where entry.index <= index {
            if case .configuration(let newer) = entry.payload { configuration = newer }
        }
        disk.snapshot = SnapshotMark(position: entry.position, configuration: configuration)
        disk.entries.removeAll { $0.index <= index }
        var changed = raft
        changed.compacted(through: disk.snapshot)
        self.raft = changed
    }
}
