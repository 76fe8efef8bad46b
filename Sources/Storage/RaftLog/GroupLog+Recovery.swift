import RaftCore

extension GroupLog {
    /// Ends the reading back: drops what lies below the snapshot, and checks that nothing is missing between the two.
    /// - Returns: what is missing, or nil.
    mutating func settle() -> String? {
        guard snapshotIndex >= base else {
            return "entries \(snapshotIndex.next) to \(base) are missing"
        }
        trim(through: min(snapshotIndex, lastIndex))
        return nil
    }

    /// What the log tells the replica at start.
    var recovered: RecoveredGroup {
        var group = RecoveredGroup(hardState: hardState, snapshot: snapshot)
        group.firstIndex = firstIndex
        if let last = terms.last { group.lastLog = LogPosition(index: lastIndex, term: last.term) }
        group.terms = terms
        group.configurations = configurations
        return group
    }
}
