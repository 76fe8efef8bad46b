import Cluster
import KeyValueStore
import RaftCore
import Synchronization
import Wire

/// Which key-value stores of one group changed lately on this node, for nodes that hold no replica of it. Pure.
///
/// It holds hashes in a ring; whoever asks from too long ago, or from the journal of another start or node, is told
/// that anything may have changed.
struct StoreJournal: Sendable {
    /// A place in one journal.
    struct Mark: Hashable, Sendable {
        /// Names the journal; random for each start of a node.
        var journal: UInt64
        /// How many changes had been noted.
        var count: UInt64
    }

    /// What changed since a mark.
    struct News: Hashable, Sendable {
        /// Where to go on.
        var mark: Mark
        /// Hashes of the stores; nil where anything may have changed.
        var changed: [UInt64]?
    }

    private let journal: UInt64
    private let capacity: Int
    /// The hash of change `n` is at `n % capacity`.
    private var ring: [UInt64] = []
    private var count: UInt64 = 0
    /// Marks below it are too old.
    private var floor: UInt64 = 0

    init(journal: UInt64, capacity: Int = 1_024) {
        precondition(capacity > 0)
        self.journal = journal
        self.capacity = capacity
    }

    static func hash(of store: StoreKey) -> UInt64 { fnv1a(store.encoded()) }

    mutating func note(_ stores: [StoreKey]) {
        for store in stores {
            let place = Int(count % UInt64(capacity))
            if place < ring.count { ring[place] = Self.hash(of: store) } else { ring.append(Self.hash(of: store)) }
            count += 1
        }
        floor = max(floor, count > UInt64(capacity) ? count - UInt64(capacity) : 0)
    }

    /// Any store may have changed.
    mutating func noteEverything() {
        count += 1
        if ring.count < capacity { ring.append(0) } else { ring[Int((count - 1) % UInt64(capacity))] = 0 }
        floor = count
    }

    func news(since mark: Mark?) -> News {
        let now = Mark(journal: journal, count: count)
        guard let mark, mark.journal == journal, (floor...count).contains(mark.count) else {
            return News(mark: now, changed: nil)
        }
        return News(mark: now, changed: (mark.count..<count).map { ring[Int($0 % UInt64(capacity))] })
    }
}

extension StoreJournal.News: WireCodable {
    /// 1 and 2 the mark, 3 whether the hashes that follow (4) are all.
    func encode(to writer: inout WireWriter) {
        writer.field(1, mark.journal)
        writer.field(2, mark.count)
        guard let changed else { return }
        writer.field(3, true)
        for hash in changed { writer.field(4, hash) }
    }

    init(from reader: inout WireReader) throws(WireError) {
        self.init(mark: StoreJournal.Mark(journal: 0, count: 0), changed: nil)
        while let field = try reader.nextField() {
            switch field {
            case 1: mark.journal = try reader.unsigned()
            case 2: mark.count = try reader.unsigned()
            case 3: changed = try reader.bool() ? [] : nil
            case 4: changed?.append(try reader.unsigned())
            default: try reader.skip()
            }
        }
    }
}

/// Hears of changes in groups of which this node holds no replica: while a store of one is watched here, it asks the
/// node that leads it ten times a second which stores changed, which that node answers from memory.
///
/// What it last heard is a place in one node's journal. From another leader, or one that was started anew, it hears
/// that anything may have changed; so a change of leaders costs looks and no change.
final class StoreFollower: Sendable {
    private static let pauseMilliseconds: UInt64 = 100
    private static let answerMilliseconds: UInt64 = 1_000

    private struct State {
        var marks: [GroupID: StoreJournal.Mark] = [:]
        /// Groups that are being asked for; each is asked for once at a time, so that one without a leader holds up no
        /// other.
        var asking: Set<GroupID> = []
    }

    private let node: ClusterNode
    private let hub: WatchHub
    private let state = Mutex(State())
    private let work: PeriodicTask

    init(node: ClusterNode, hub: WatchHub) {
        self.node = node
        self.hub = hub
        work = PeriodicTask(platform: node.platform)
    }

    /// Begins. Where this node holds every group, as in a cluster with as many nodes as replicas, nothing is asked; but
    /// that may change.
    func start() {
        work.start(everyMilliseconds: Self.pauseMilliseconds) { [weak self] in self?.ask() }
    }

    func stop() { work.stop() }

    private func ask() {
        let groups = hub.groups.filter { !node.holdsReplica(of: $0) }
        let due = state.withLock { state in
            // Of a group that nobody watches nothing need be remembered: the next watch looks by itself.
            state.marks = state.marks.filter { groups.contains($0.key) }
            return groups.filter { state.asking.insert($0).inserted }
        }
        for group in due { node.platform.startTask { await self.ask(for: group) } }
    }

    private func ask(for group: GroupID) async {
        let mark = state.withLock { $0.marks[group] }
        let question = PeerExchange.Question.stores(since: mark).encoded()
        let answer = try? await node.router.confer(
            question, with: group, by: node.deadline(milliseconds: Self.answerMilliseconds))
        let news = answer.flatMap { try? StoreJournal.News(decoding: $0) }
        state.withLock { state in
            state.asking.remove(group)
            if let news { state.marks[group] = news.mark }
        }
        if let news { hub.hear(news, of: group) }
    }
}
