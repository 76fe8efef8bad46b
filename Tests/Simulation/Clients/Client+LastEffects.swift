import Cluster
import HistoryChecks
import RaftCore
import RecordModel

// What a client does last of all with subscriptions, while groups lose their leaders at the worst moments.
extension Client {
    /// Saves subscriptions, changes what they tell of, and makes one of them anew; whoever has to deliver what follows
    /// from an answer ends with that answer.
    /// - Parameters:
    ///   - zone: of another group than the user's home.
    ///   - endLeader: ends the node that leads a group; of no group: all nodes.
    func strainEffects(
        of zone: WatchedHistory.Zone, in group: GroupID, home: GroupID, endLeader: @Sendable (GroupID?) -> Void
    ) async {
        let book = watchbook
        let (kept, renewed) = (book.newName("s"), book.newName("s"))
        for id in [renewed, kept] {
            await save(subscription(id, to: zone), of: book)
            guard book.isUsed, book.live[id] != nil else { return }
        }
        // Its copy was to be delivered before.
        endLeader(home)
        guard await create(in: zone, book) else { return }
        // What it tells is on its way to the former subscription.
        endLeader(group)
        guard await renew(renewed, zone, book), await create(in: zone, book) else { return }
        endLeader(nil)
        // Nobody writes from here on.
    }

    /// Has a change told of while the user's home has no leader, and then all nodes end: what it tells waits in the
    /// file of the zone's shard, and nobody writes there any more.
    func holdUpEffects(
        of zone: WatchedHistory.Zone, home: GroupID, endLeader: @Sendable (GroupID?) -> Void
    ) async {
        let (book, id) = (watchbook, watchbook.newName("s"))
        await save(subscription(id, to: zone), of: book)
        guard book.isUsed, book.live[id] != nil else { return }
        endLeader(home)
        guard await create(in: zone, book) else { return }
        // All replicas have it by then, and the home has no other leader yet.
        let timeout = nodes[0].options.electionTimeoutMilliseconds
        await sleep(world.milliseconds(timeout / 2...timeout * 9 / 10))
        endLeader(nil)
    }

    private func subscription(_ id: String, to zone: WatchedHistory.Zone) -> NotificationTwin.Subscription {
        .init(id: id, kind: .query, zone: zone.name, events: [.create])
    }

    private func create(in zone: WatchedHistory.Zone, _ book: Watchbook) async -> Bool {
        let change = WatchedHistory.Change(
            name: book.newName("\(book.accountID)-"), event: .create, kind: nil, value: newValue())
        return await save([change], in: zone, from: nil, book)
    }

    /// Deletes a subscription and makes it again while the answer to the deletion waits for its copy.
    private func renew(_ id: String, _ zone: WatchedHistory.Zone, _ book: Watchbook) async -> Bool {
        let called = recorder.watched.nextPlace()
        async let deletion = modify(
            #"{"operationType":"delete","subscription":{"subscriptionID":"\#(id)"}}"#, isPublic: false, of: book)
        await sleep(500 * World.millisecond)
        let subscription = dressed(subscription(id, to: zone), book)
        let creation = await modify(
            #"{"operationType":"create","subscription":\#(subscription.form)}"#, isPublic: false, of: book)
        // Which of them came first is known only where neither was sent again.
        guard await deletion == true, creation == true, await lists(id, of: book) else {
            book.isUsed = false
            return false
        }
        recorder.answered()
        let returned = recorder.watched.nextPlace()
        book.twin.deleted(id, called: called, returned: returned)
        await lookForEnd(of: id, book)
        book.twin.saved(subscription, called: called, returned: returned, isRepeated: false)
        book.live[id] = subscription
        return book.isUsed
    }

    private func lists(_ id: String, of book: Watchbook) async -> Bool {
        await list(book)?.contains { $0.id == id } ?? false
    }
}
