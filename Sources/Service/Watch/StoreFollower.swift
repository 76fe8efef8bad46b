import Cluster
import RaftCore
import Synchronization
import Wire

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
