import RaftCore

/// The dissertation's promises (figure 3.2), checked over the whole history of a cluster.
struct Checker {
    /// Who led each term.
    private(set) var leaders: [Term: ReplicaID] = [:]
    /// What was applied, by index; once here it must never change.
    private(set) var committed: [Entry] = []
    private var readFloors: [UInt64: LogIndex] = [:]
    private(set) var readsServed = 0

    var committedIndex: LogIndex { committed.last?.index ?? .zero }

    mutating func transition(from before: Raft, to after: Raft) throws {
        guard after.term >= before.term else { throw Violation("\(after.id) went back to term \(after.term)") }
        guard after.commitIndex >= before.commitIndex else { throw Violation("\(after.id) uncommitted entries") }
        guard after.role == .leader else { return }
        if before.role == .leader, before.term == after.term {
            guard after.lastLog.index >= before.lastLog.index else { throw Violation("leader \(after.id) cut its log") }
            return
        }
        if let other = leaders[after.term], other != after.id {
            throw Violation("\(other) and \(after.id) both lead term \(after.term)")
        }
        leaders[after.term] = after.id
    }

    mutating func applied(_ entry: Entry, by replica: ReplicaID) throws {
        let place = Int(entry.index.rawValue) - 1
        if place < committed.count {
            guard committed[place] == entry else {
                throw Violation("\(replica) applied \(entry.position) where \(committed[place].position) was applied")
            }
        } else {
            guard place == committed.count else { throw Violation("\(replica) skipped to \(entry.position)") }
            committed.append(entry)
        }
    }

    mutating func readInvoked(_ id: UInt64) { readFloors[id] = committedIndex }

    mutating func readReady(_ read: ReadReady) throws {
        guard let floor = readFloors[read.id] else { throw Violation("read \(read.id) answered twice or never asked") }
        guard read.index >= floor else {
            throw Violation("read \(read.id) at \(read.index), but \(floor) was committed when it came")
        }
        readFloors[read.id] = nil
        readsServed += 1
    }

    /// Log matching, leader completeness and durability, over what is on the disks.
    func check(_ nodes: [TestNode], quorum configuration: Configuration) throws {
        for (place, left) in nodes.enumerated() {
            for right in nodes[(place + 1)...] { try checkMatching(left.disk, right.disk) }
        }
        guard let last = committed.last else { return }
        let holds = Quorum.isMajority(configuration) { id in
            nodes.contains { $0.id == id && ($0.disk.appliedIndex >= last.index || $0.disk.entries.contains(last)) }
        }
        guard holds else { throw Violation("\(last.position) was committed, but no majority holds it") }
        let newest = nodes.compactMap { $0.raft?.role == .leader ? $0.raft : nil }.max { $0.term < $1.term }
        if let newest, newest.term >= last.term, newest.lastLog.index < last.index {
            throw Violation("leader \(newest.id) of term \(newest.term) lacks \(last.position)")
        }
    }

    private func checkMatching(_ left: TestNode.Disk, _ right: TestNode.Disk) throws {
        let from = max(left.snapshot.position.index, right.snapshot.position.index).next
        let one = left.entries.drop { $0.index < from }
        let other = right.entries.drop { $0.index < from }
        // If two logs hold the same entry, everything before it is the same.
        let pairs = Array(zip(one, other))
        if let latest = pairs.lastIndex(where: { $0.0.position == $0.1.position }),
            let differing = pairs[..<latest].first(where: { $0.0 != $0.1 })
        {
            throw Violation("\(differing.0.position) and \(differing.1.position) under \(pairs[latest].0.position)")
        }
    }
}
