import Cluster
import PeerTransport
import RaftCore
import Synchronization
import Wire

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
