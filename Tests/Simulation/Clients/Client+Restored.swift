import Cluster
import HistoryChecks
import RecordModel
import Service

// What a client does before and after the cluster is put back to an earlier time.
extension Client {
    /// Changes records and preferences, and now and then looks at them.
    func changeSomething(times: Int) async {
        for _ in 0..<times {
            switch world.random(0...9) {
            case 0..<3: await save()
            case 3: await saveBatch()
            case 4: await delete()
            case 5: await lookUp()
            case 6: await followFeed()
            default: await setKeys()
            }
            await sleep(world.milliseconds(0...200))
        }
    }

    /// Follows all feeds to their ends.
    func learnAll() async {
        for zone in recorder.zones.indices { await readFeed(of: zone) }
        for store in recorder.stores.indices { await readFeed(ofStore: store) }
    }

    /// Goes on with each feed where it was before the cluster was put back: it must be told to begin again, as what it
    /// has may have been undone.
    func tryForgottenTokens() async {
        past = []
        databaseToken = nil
        for (zone, feed) in feeds.sorted(by: { $0.key < $1.key }) {
            guard let token = feed.token else { continue }
            let name = recorder.zones[zone].key.name
            let body = Array(#"{"zoneID":{"zoneName":"\#(name)"},"syncToken":"\#(token)"}"#.utf8)
            let answer = await ask(repeats: true) { visit throws(RequestFailure) in
                try await visit.database { request throws(RequestFailure) in
                    try await ChangeFeeds(request).zone(try RecordChangesRequest(sent: body)).records
                }
            }
            requireForgotten(answer, "zone \(name)")
        }
        for (store, feed) in storeFeeds.sorted(by: { $0.key < $1.key }) {
            guard let token = feed.token else { continue }
            let account = recorder.stores[store].account
            let answer = await ask(repeats: true, account: store) { visit throws(RequestFailure) in
                try await visit.preferences(of: account) { preferences throws(RequestFailure) in
                    try await preferences.changes(since: token, limit: 1, by: visit.deadline).bytes
                }
            }
            requireForgotten(answer, "store \(account)")
        }
        (feeds, storeFeeds) = ([:], [:])
        await tryForgottenNotices(of: watchbook)
    }

    private func tryForgottenNotices(of book: Watchbook) async {
        guard book.isUsed, book.isMade else { return }
        for (device, reader) in book.readers.sorted(by: { $0.key < $1.key }) {
            guard let token = reader.token else { continue }
            let answer = await askForPage(of: book, device, after: token, limit: 1)
            requireForgotten(answer, "notifications of \(book.accountID)")
        }
        book.readers = [:]
        // What it knows of them has other tags now.
        for zone in book.records.keys { book.records[zone] = book.records[zone]?.mapValues(\.withoutVersion) }
    }

    /// Changes what is watched: who watches is told of that, and of all from before the backup.
    func watchRestored() async {
        let book = watchbook
        guard book.isUsed, book.isMade else { return }
        for _ in 0..<3 where book.isUsed { await changeWatched(book) }
        guard book.isUsed, await readBackNotices(of: book) else { return }
        world.met(.watchedRestored)
    }

    private func requireForgotten<Value>(_ answer: Asked<Value>, _ place: String) {
        switch answer {
        case .failed(let failure) where failure.error.detail == .expiredSyncToken: world.met(.refusedForgottenToken)
        // A zone that was made since is not there.
        case .failed(let failure) where failure.error.code == .zoneNotFound: break
        case .failed(let failure):
            recorder.violated("client \(number): \(place): a token from before a restore is refused: \(failure.error)")
        case .answered:
            recorder.violated("client \(number): \(place): a token from before a restore is taken")
        case .nothing: break
        }
    }
}

extension Watchbook.Note {
    fileprivate var withoutVersion: Self {
        var note = self
        note.version = nil
        return note
    }
}
