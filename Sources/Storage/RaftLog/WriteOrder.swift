import RaftCore

/// Where each group's log will end once what is encoded so far is durable: refuses entries that leave a gap.
struct WriteOrder {
    struct End {
        var snapshot = LogIndex.zero
        var last = LogIndex.zero
        /// The term at an index, for a mark; marks begin a batch, so the index knows everything before.
        var log: GroupLog?
        /// Whether something before in this batch wrote to the group.
        var isTouched = false
    }

    /// A submission's view, accepted as a whole or not at all.
    struct Changes {
        fileprivate var ends: [(group: GroupID, end: End)]

        /// The end of a group that the submission names.
        subscript(group: GroupID) -> End {
            get { ends.first { $0.group == group }?.end ?? End() }
            set {
                if let index = ends.firstIndex(where: { $0.group == group }) {
                    ends[index].end = newValue
                } else {
                    ends.append((group, newValue))
                }
            }
        }
    }

    private var ends: [GroupID: End] = [:]

    /// Looks up the groups that the submissions name.
    init(_ table: borrowing LogIndexTable, _ submissions: [Submission]) {
        for submission in submissions {
            for write in submission.writes where ends[write.group] == nil {
                let log = table.groups[write.group]
                ends[write.group] = End(
                    snapshot: log?.snapshotIndex ?? .zero, last: log?.lastIndex ?? .zero,
                    log: submission.hasMark ? log : nil)
            }
        }
    }

    func changes(by submission: Submission) -> Changes {
        var changes = Changes(ends: [])
        // One for each group, however often it is named: a second one would bring a stale end back.
        for write in submission.writes where !changes.ends.contains(where: { $0.group == write.group }) {
            changes.ends.append((write.group, ends[write.group] ?? End()))
        }
        return changes
    }

    mutating func accept(_ changes: Changes) {
        for change in changes.ends { ends[change.group] = change.end }
    }
}

extension BatchEncoder {
    /// Adds one group's records: mark, hard state, entries.
    mutating func append(_ write: LogWrite, in order: inout WriteOrder.Changes) throws(RaftLogError) {
        var end = order[write.group]
        let essential = write.isEssential
        if write.removeGroup {
            try append(.removal, .removal, of: write.group, mayUseReserve: essential) { _ in }
            end = WriteOrder.End()
        }
        precondition(
            write.snapshotMark == nil || !end.isTouched,
            "group \(write.group) is named twice in a submission with a mark")
        if let mark = write.snapshotMark, mark.position.index > end.snapshot {
            let isHeld = end.log?.holds(mark.position) ?? false
            try append(
                isHeld ? .trim : .reset, isHeld ? .trim(mark) : .reset(mark), of: write.group, mayUseReserve: essential
            ) { mark.encode(to: &$0) }
            end.snapshot = mark.position.index
            end.last = isHeld ? max(end.last, mark.position.index) : mark.position.index
        }
        if let hardState = write.hardState {
            try append(.hardState, .hardState(hardState), of: write.group, mayUseReserve: essential) {
                hardState.encode(to: &$0)
            }
        }
        for (offset, entry) in write.entries.enumerated() {
            guard entry.index > end.snapshot, entry.index <= end.last.next,
                offset == 0 || entry.index == write.entries[offset - 1].index.next
            else { throw .outOfOrder(group: write.group, first: entry.index, last: end.last) }
            try append(entry, of: write.group, mayUseReserve: essential)
            end.last = entry.index
        }
        end.log = nil
        end.isTouched = true
        order[write.group] = end
    }

    private mutating func append(_ entry: Entry, of group: GroupID, mayUseReserve: Bool) throws(RaftLogError) {
        var configuration: Configuration?
        if case .configuration(let value) = entry.payload { configuration = value }
        try append(.entry, .entry(entry.position, configuration), of: group, mayUseReserve: mayUseReserve) {
            entry.encode(to: &$0)
        }
    }
}
