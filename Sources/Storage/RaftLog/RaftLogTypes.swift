import Glibc
package import RaftCore
package import Telemetry

/// One group's part of a submission, written in the order: mark, hard state, entries.
package struct LogWrite: Sendable {
    /// The group whose log it concerns.
    package var group: GroupID
    /// Replaces the group's term and vote.
    package var hardState: HardState?
    /// Contiguous entries. The first index is at most one above the group's last, and above its snapshot's; entries
    /// from it on are replaced.
    package var entries: [Entry]
    /// A snapshot that was installed or taken: nothing at or before it is needed. If the log does not hold the entry at
    /// its position, the whole log of the group is replaced by the mark. A mark at or before the present one changes
    /// nothing. A submission names a group with a mark once.
    package var snapshotMark: SnapshotMark?
    /// Forgets the group; the other fields must then be empty.
    package var removeGroup: Bool
    /// May go into the reserve segment when the disk is full. Set it for commands that free space; writes without
    /// entries may always.
    package var mayUseReserve: Bool

    package init(
        group: GroupID, hardState: HardState? = nil, entries: [Entry] = [], snapshotMark: SnapshotMark? = nil,
        removeGroup: Bool = false
    ) {
        self.group = group
        self.hardState = hardState
        self.entries = entries
        self.snapshotMark = snapshotMark
        self.removeGroup = removeGroup
        mayUseReserve = false
    }

    /// Its size against `RaftLogOptions.queueBytesMax`, in bytes.
    package var sizeBytes: Int { 64 + entries.reduce(0) { $0 + $1.sizeBytes } }
}

/// A group's part of the log when it was opened.
package struct RecoveredGroup: Hashable, Sendable {
    /// Term and vote.
    package var hardState: HardState
    /// The position after which the retained log begins; nil if it begins at index 1.
    package var snapshot: SnapshotMark?
    /// The first index that is retained (one above the snapshot's), or would be if the log is empty.
    package var firstIndex: LogIndex
    /// The last entry, or the snapshot's position without entries.
    package var lastLog: LogPosition
    /// The first position of each run of equal terms in the retained log, ascending.
    package var terms: [LogPosition]
    /// The configuration entries in the retained log, ascending.
    package var configurations: [PlacedConfiguration]

    package init(hardState: HardState = HardState(), snapshot: SnapshotMark? = nil) {
        self.hardState = hardState
        self.snapshot = snapshot
        firstIndex = snapshot?.position.index.next ?? LogIndex(1)
        lastLog = snapshot?.position ?? .zero
        terms = []
        configurations = []
    }
}

/// A configuration and the index of the entry that brought it.
package struct PlacedConfiguration: Hashable, Sendable {
    /// The index of the entry.
    package var index: LogIndex
    /// The configuration in that entry.
    package var configuration: Configuration
}

/// The options of a log.
package struct RaftLogOptions: Sendable {
    /// The size of a segment file; bounds the size of one entry (`recordBytesMax`). At most 2 GiB.
    package var segmentBytes = 16 << 20
    /// Above this, groups that hold up collection are named by `pinningGroups`, and `keepEntries` is disregarded; above
    /// twice as much, so is what followers need that are sent a copy.
    /// Collected segments are kept for another use as long as the log and they are not larger.
    package var sizeBytesTarget = 256 << 20
    /// What may wait for the writer; beyond it `submit` answers `.overloaded`.
    package var queueBytesMax = 64 << 20
    /// How many entries below a group's durable index are kept for followers that lag a little.
    package var keepEntries = 1_000
    /// After a submission was refused, whether every later one is too until `resume`: for a caller whose submissions
    /// only make sense in order. What was taken before a submission for which there was no room in the queue is written
    /// all the same.
    package var haltsAfterRefusal = false
    /// The disk's calls.
    package var disk: any LogDisk = PosixDisk()
    /// The thread that does the log's work.
    package var scheduling = LogScheduling.threads
    /// Where syncs are timed.
    package var timers = NodeTimers(MetricsRegistry())
    /// The source of a new log's number.
    package var random: @Sendable () -> UInt64 = { .random(in: 0 ... .max) }

    package init() {}

    /// The most bytes of one record, header and padding included: an empty segment's room.
    package var recordBytesMax: Int { segmentBytes - SegmentHeader.sizeBytes }
}

/// The thread that does the work of a log.
package enum LogScheduling: Sendable {
    /// Two threads of the log's own.
    case threads
    /// The owner: `wake` is called when something waits in the log, on the thread that brought it; the owner then calls
    /// `RaftLog.work()` once, later, and on one thread only.
    case manual(wake: @Sendable (RaftLog) -> Void)
}

/// Counts of the log's work since it was opened.
package struct RaftLogCounters: Hashable, Sendable {
    /// Calls of fdatasync for writes.
    package var syncs = 0
    /// Bytes of records and segment headers written.
    package var bytesWritten = 0
    /// Submissions that became durable.
    package var appends = 0
    /// Groups of submissions that were written together.
    package var batches = 0
    /// Segments taken into use.
    package var segmentsUsed = 0
    /// Segments collected.
    package var segmentsCollected = 0

    package init() {}
}

/// Why the log refused or failed a request.
package enum RaftLogError: Error, Hashable, Sendable {
    /// Another process, or another part of this one, has the log open. A retry helps once it is closed.
    case locked(path: String)
    /// Data that was durable is damaged, or its disk cannot read it any more. Nothing was changed or removed; the
    /// replicas need a good copy from their peers.
    case corrupt(segment: String, position: Int, detail: String)
    /// No room on the disk. Nothing of the submission was written; a retry helps once there is room.
    case diskFull
    /// A call failed for good; what it wrote may or may not be durable. Every later submission fails the same way: the
    /// node must stop.
    case failed(errno: Int32, operation: String)
    /// Too many bytes wait already. Nothing was written; a retry helps later.
    case overloaded
    /// The log is closed.
    case closed
    /// A submission before this one was refused, and the log was told to halt then; see `RaftLog.resume`.
    case halted
    /// The submission's entries do not follow the group's log, which ends at `last`: an earlier submission failed, or
    /// the caller is wrong. Nothing of the submission was written.
    case outOfOrder(group: GroupID, first: LogIndex, last: LogIndex)
    /// An entry that fits in no segment. Nothing of the submission was written; a retry does not help.
    case tooLarge(bytes: Int, bytesMax: Int)

    /// The log's view of a failed call.
    init(_ error: DiskError) {
        self = error.isDiskFull ? .diskFull : .failed(errno: error.code, operation: "\(error.operation) \(error.path)")
    }

    /// What it says that a part of the log cannot be read: a sector that is lost is damage, as one is that holds
    /// something else.
    init(reading error: DiskError, of segment: String, at position: Int) {
        self =
            error.code == EIO
            ? .corrupt(segment: segment, position: position, detail: "cannot be read: \(error)") : RaftLogError(error)
    }
}

extension DiskError {
    /// The code of a sector that cannot be read or written.
    package static let ioFailure: Int32 = EIO

    /// Whether there is no room, by the disk or by a quota.
    package var isDiskFull: Bool { code == ENOSPC || code == EDQUOT }
}
