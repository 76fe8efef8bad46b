import HistoryChecks
import RecordModel
import RecordStore
import Service

// What the feeds of its own zone and of its database tell a client must be what it did.
extension Client {
    /// One page of the zone's feed; nil where there was no answer, or the token has expired.
    private func page(
        after token: String?, isReverse: Bool
    ) async -> (records: [(name: String, note: Notebook.Note?, version: Version?)], token: String, hasMore: Bool)? {
        let body = notebook.changes(after: token, limit: world.random(1...3), isReverse: isReverse)
        let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.database { request throws(RequestFailure) in
                try await ChangeFeeds(request).zone(try RecordChangesRequest(sent: body))
            }
        }
        switch answer {
        case .answered(let page, _):
            do {
                return (try page.records.notes(), Base64.encode(page.token), page.hasMore)
            } catch {
                complain("the feed: \(error)")
            }
        // Tombstones may be gone.
        case .failed(let failure) where failure.error.reason.hasPrefix("client knowledge differs"):
            notebook.forgetFeed()
        case .failed(let failure): complain("the feed is refused: \(failure.error)")
        case .nothing: break
        }
        return nil
    }

    /// Follows the zone's feed from where it was left.
    func followNotes() async {
        for _ in 0..<60 {
            guard let page = await page(after: notebook.token, isReverse: false) else { return }
            do throws(FeedCopy<Notebook.Note>.Fault) {
                try notebook.copy.take(
                    page.records.compactMap { name, note, version in
                        version.map { .init(name, $0, note) }
                    })
            } catch {
                return complain("\(error)")
            }
            notebook.token = page.token
            guard !page.hasMore else { continue }
            return judge("the feed") { () throws(UnexpectedAnswer) in
                try expect(notebook.copy.records.mapValues(\.content), told(notebook.copy))
            }
        }
        complain("the feed does not end")
    }

    /// What a copy must hold. A field that the schema lost is no change of a record: copies may have it still.
    private func told(_ copy: FeedCopy<Notebook.Note>) -> [String: Notebook.Note] {
        var expected = notebook.notes
        for (name, note) in expected where note.extra == nil {
            expected[name]?.extra = copy.records[name]?.content.extra
        }
        return expected
    }

    /// Walks back through the zone's changes while more of them come, then follows these.
    func walkBackwards() async {
        var token: String?
        var seen: [String: Notebook.Note?] = [:]
        var isReverse = true
        for _ in 0..<60 {
            guard let page = await page(after: token, isReverse: isReverse) else { return }
            for (name, note, _) in page.records where !isReverse || seen[name] == nil { seen[name] = .some(note) }
            token = page.token
            guard !page.hasMore else {
                if isReverse, world.chance(40), !(await changeNotes(newChanges())) { return }
                continue
            }
            if isReverse {
                isReverse = false
                continue
            }
            return judge("the feed backwards") { () throws(UnexpectedAnswer) in
                var notes = seen.compactMapValues { $0 }
                for name in notes.keys where notebook.notes[name]?.extra == nil { notes[name]?.extra = nil }
                try expect(notes, notebook.notes)
            }
        }
        complain("the feed does not end backwards")
    }

    /// Follows the feed of the database: it must tell of the notebook's zone where that changed.
    func followDatabase() async {
        var names: Set<String> = []
        for _ in 0..<60 {
            let (after, limit) = (databaseToken, world.random(1...3))
            let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
                try await visit.database { request throws(RequestFailure) in
                    try await ChangeFeeds(request).database(after: after, limit: limit)
                }
            }
            guard case .answered(let page, _) = answer else {
                if case .failed = answer { databaseToken = nil }
                return
            }
            databaseToken = page.token
            names.formUnion(page.zones.filter { !$0.isDeleted }.map(\.state.name))
            if names.contains(notebook.zone) { notebook.hasNews = false }
            guard !page.hasMore else { continue }
            if notebook.hasNews { complain("the feed of the database does not tell of it") }
            return
        }
    }
}
