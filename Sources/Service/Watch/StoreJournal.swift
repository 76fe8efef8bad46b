import Cluster
import KeyValueStore
import PeerTransport
import RaftCore
import Synchronization
import Wire

/// Which key-value stores of one group changed lately on this node, for nodes that do not lead it. Pure.
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

extension StoreJournal.News: WireMessage {
    static var blank: Self { Self(mark: StoreJournal.Mark(journal: 0, count: 0), changed: nil) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &mark.journal)
        try wire.field(2, &mark.count)
        try wire.field(3, &changed, members: 4)
    }
}

/// The journals of a node's replicas, and who waits for what comes into one.
struct StoreJournals: Sendable {
    /// Tells somebody of news; called without any lock.
    typealias Answer = @Sendable (StoreJournal.News) -> Void

    /// A question that has no answer yet.
    private struct Held {
        var group: GroupID
        var mark: StoreJournal.Mark
        /// When it is answered though nothing came.
        var end: UInt64
        var answer: Answer
    }

    /// Names the journals; random for each start of a node.
    private let number: UInt64
    private var journals: [GroupID: StoreJournal] = [:]
    /// In the order in which they came: one for each other node and group at most, but for those that gave up waiting.
    private var held: [Held] = []

    init(number: UInt64) { self.number = number }

    private func journal(of group: GroupID) -> StoreJournal { journals[group] ?? StoreJournal(journal: number) }

    /// Notes something in a group's journal.
    /// - Returns: whom to tell of it.
    mutating func note(in group: GroupID, _ body: (inout StoreJournal) -> Void) -> [@Sendable () -> Void] {
        body(&journals[group, default: StoreJournal(journal: number)])
        return release { $0.group == group }
    }

    /// Asks what came into a group's journal after a mark.
    /// - Parameter end: until when it waits for something.
    /// - Returns: whom to tell now: nobody where it waits.
    mutating func ask(
        _ group: GroupID, since mark: StoreJournal.Mark?, until end: UInt64, now: UInt64, _ answer: @escaping Answer
    ) -> [@Sendable () -> Void] {
        let news = journal(of: group).news(since: mark)
        guard let mark, news.changed?.isEmpty == true, now < end else { return [{ answer(news) }] }
        held.append(Held(group: group, mark: mark, end: end, answer: answer))
        return []
    }

    /// The clock was looked at.
    /// - Returns: whom to tell that nothing came.
    mutating func ticked(_ now: UInt64) -> [@Sendable () -> Void] { release { $0.end <= now } }

    private mutating func release(_ isDue: (Held) -> Bool) -> [@Sendable () -> Void] {
        guard held.contains(where: isDue) else { return [] }
        let due = held.filter(isDue)
        held.removeAll(where: isDue)
        return due.map { question in
            let news = journal(of: question.group).news(since: question.mark)
            return { question.answer(news) }
        }
    }
}

/// Hears what changes in groups that another node leads: while a store of one is watched here, it asks that node which
/// stores changed, which answers from memory once something did.
///
/// A replica here applies the same changes too, but up to some hundred milliseconds later: when it next hears from its
/// leader, and then in larger pieces. So as long as the leader answers, its word is what rings; once it does not, it is
/// assumed that anything changed, and the replica's word counts again.
///
/// What was last heard is a place in one node's journal. From another leader, or one that was restarted, comes that
/// anything may have changed; so a change of leaders costs looks and no change.
final class StoreFollower: Sendable {
    /// How often groups are looked for whose leader is not asked yet.
    private static let pauseMilliseconds: UInt64 = 100
    /// How long a leader waits for a change before it answers that there is none.
    private static let waitMilliseconds: UInt64 = 1_000
    private static let answerMilliseconds: UInt64 = 2_000
    /// After news comes a pause, so that many changes come with one answer.
    private static let newsPauseMilliseconds: UInt64 = 5

    private let node: ClusterNode
    private let hub: WatchHub
    /// Groups that are being followed, each by one task, so that one without a leader holds up no other; and who led
    /// them when they were last heard of.
    private let following = Mutex<[GroupID: NodeID?]>([:])
    private let work: PeriodicTask

    init(node: ClusterNode, hub: WatchHub) {
        self.node = node
        self.hub = hub
        work = PeriodicTask(platform: node.platform)
    }

    /// Begins. A node that leads all groups, as one that is alone does, asks nobody.
    func start() {
        work.start(everyMilliseconds: Self.pauseMilliseconds) { [weak self] in self?.look() }
    }

    func stop() { work.stop() }

    private func look() {
        let due = hub.groups.filter { isToFollow($0) }
        let (new, deserted) = following.withLock { following in
            let deserted = following.filter { $0.value != node.leader(of: $0.key) }.keys.sorted()
            let new = due.filter { following[$0] == nil }
            for group in new { following[group] = .some(node.leader(of: group)) }
            return (new, deserted)
        }
        // The node that is asked may still wait for what comes no more.
        for group in deserted { hub.unfollow(group) }
        for group in new { node.platform.startTask { await self.follow(group) } }
    }

    private func isToFollow(_ group: GroupID) -> Bool { hub.isWatched(group) && !node.leads(group) }

    /// Asks until nobody watches, this node leads, or nobody answers, which is tried again.
    private func follow(_ group: GroupID) async {
        let clock = node.platform.clock
        var mark: StoreJournal.Mark?
        while isToFollow(group), !hub.isClosed {
            let due = clock.now.adding(milliseconds: Self.waitMilliseconds / 2)
            guard let news = await news(of: group, since: mark) else { break }
            following.withLock { $0[group] = .some(node.leader(of: group)) }
            hub.hear(news, of: group)
            let isNews = news.mark != mark
            mark = news.mark
            // An older build answers at once that nothing came.
            guard isNews || clock.now < due else { continue }
            let pause = isNews ? Self.newsPauseMilliseconds : Self.pauseMilliseconds
            do { try await clock.sleep(milliseconds: pause) } catch { break }
        }
        hub.unfollow(group)
        following.withLock { $0[group] = nil }
    }

    private func news(of group: GroupID, since mark: StoreJournal.Mark?) async -> StoreJournal.News? {
        let question = PeerExchange.Question.stores(since: mark, waitMilliseconds: Self.waitMilliseconds).encoded()
        let answer = try? await node.router.confer(
            question, with: group, by: node.deadline(milliseconds: Self.answerMilliseconds))
        return answer.flatMap { try? StoreJournal.News(decoding: $0) }
    }
}
