/// What a replica finds on disk when it starts.
public struct RestoredState: Hashable, Sendable {
    /// Term and vote as last persisted.
    public var hardState: HardState
    /// Everything up to here is in the state machine and no longer in the log. For a new group: `LogPosition.zero`
    /// and the first configuration.
    public var snapshot: SnapshotMark
    /// The last entry of the log; `snapshot.position` if the log holds none.
    public var lastLog: LogPosition
    /// The first position of each run of equal terms in the log after the snapshot, oldest first.
    public var terms: [LogPosition]
    /// The configuration entries in the log after the snapshot, oldest first. All of them: which are committed is not
    /// known after a start, so any may still be rolled back.
    public var configurations: [ConfigurationAt]
    /// The state machine's applied index: it and all before are known to be committed.
    public var applied: LogIndex
    /// The last entries of the log, without a gap and ending at `lastLog`, to have them in memory. May be empty.
    public var tail: [Entry]

    public init(
        hardState: HardState, snapshot: SnapshotMark, lastLog: LogPosition, terms: [LogPosition],
        configurations: [ConfigurationAt]
    ) {
        self.hardState = hardState
        self.snapshot = snapshot
        self.lastLog = lastLog
        self.terms = terms
        self.configurations = configurations
        applied = snapshot.position.index
        tail = []
    }

    /// The state of a replica whose log holds exactly `entries`, which follow the snapshot without a gap.
    public init(hardState: HardState, snapshot: SnapshotMark, entries: [Entry] = []) {
        var runs: [LogPosition] = []
        var configurations: [ConfigurationAt] = []
        for entry in entries {
            if runs.last?.term != entry.term { runs.append(entry.position) }
            if case .configuration(let configuration) = entry.payload {
                configurations.append(ConfigurationAt(index: entry.index, configuration: configuration))
            }
        }
        self.init(
            hardState: hardState, snapshot: snapshot, lastLog: entries.last?.position ?? snapshot.position, terms: runs,
            configurations: configurations)
        tail = entries
    }

    /// A replica of a new group: nothing but its first members.
    public init(bootstrap configuration: Configuration) {
        self.init(hardState: HardState(), snapshot: SnapshotMark(position: .zero, configuration: configuration))
    }
}

/// A configuration and the index of the entry that brought it.
public struct ConfigurationAt: Hashable, Sendable {
    public var index: LogIndex
    public var configuration: Configuration

    public init(index: LogIndex, configuration: Configuration) {
        self.index = index
        self.configuration = configuration
    }
}
