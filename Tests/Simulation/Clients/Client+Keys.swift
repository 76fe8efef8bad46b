import Cluster
import HistoryChecks
import KeyValueStore
import RecordModel
import Service

// What a client does with preferences.
extension Client {
    private static let keyNames = ["k0", "k1", "k2", "k3"]

    func setKeys() async {
        let store = world.random(0...(recorder.stores.count - 1))
        let keys = Self.keyNames.shuffled(using: &world.generator).prefix(world.random(1...3))
        let writes = keys.map { newWrite($0, in: store) }
        let account = recorder.stores[store].account
        let key = world.chance(85) ? newKey() : nil
        let commands = writes.map { write in
            let expected: ChangeTag? =
                switch write.expectation {
                case .anything: nil
                case .absent: KeyValueTables.absent
                case .version(let version): version.tag
                }
            return KeyValueCommand.Write(
                key: write.key, value: write.value.map { .string($0) }, expectedVersion: expected)
        }
        let call = recorder.begin(store: store, .write(writes), by: number)
        let set: PastRequest.Body<Preferences.Written> = { visit throws(RequestFailure) in
            try await visit.preferences(of: account) { preferences throws(RequestFailure) in
                try await preferences.set(commands, idempotencyKey: key, device: nil, by: visit.deadline)
            }
        }
        let answer = await ask(repeats: key != nil, account: store, set)
        if key != nil { remember("a batch of preferences", answer, account: store, set) { $0.mark } }
        switch answer {
        case .nothing(mayHaveBeenDone: true): break
        case .nothing(mayHaveBeenDone: false): recorder.withdraw(store: store, call)
        case .answered(.applied(let versions, let usage), _):
            let versions = versions.map { $0.map { Version($0) } }
            for (write, version) in zip(writes, versions) { known[storePlace(write.key, in: store)] = version }
            recorder.end(store: store, call, .applied(versions, .init(keys: usage.keys, bytes: usage.bytes)))
        case .answered(.conflict(let conflicts), _):
            for conflict in conflicts {
                known[storePlace(conflict.key, in: store)] = conflict.version.map { Version($0) }
            }
            recorder.end(store: store, call, .conflict(conflicts.map { $0.key }))
        case .failed(let failure): recorder.violated("client \(number) was refused: \(failure.error)")
        }
    }

    private func newWrite(_ key: String, in store: Int) -> KeyValueModel.Write {
        let value = world.chance(80) ? newValue() : nil
        switch world.random(0...9) {
        case 0..<2: return KeyValueModel.Write(key, value, expecting: .absent)
        case 2..<5:
            guard let version = known[storePlace(key, in: store)] else { fallthrough }
            return KeyValueModel.Write(key, value, expecting: .version(version))
        default: return KeyValueModel.Write(key, value)
        }
    }

    private func storePlace(_ key: String, in store: Int) -> String { "store \(store)/\(key)" }

    func readKeys() async {
        let store = world.random(0...(recorder.stores.count - 1))
        let keys = Array(Self.keyNames.shuffled(using: &world.generator).prefix(world.random(1...3)))
        await read(
            store, .read(keys),
            { (preferences, deadline) throws(RequestFailure) in
                try await preferences.get(keys, by: deadline)
            }
        ) { [self] answer throws(UnexpectedAnswer) in
            .found(try values(answer, in: store))
        }
    }

    func listKeys(of store: Int) async {
        await read(
            store, .view,
            { (preferences, deadline) throws(RequestFailure) in
                try await preferences.list(after: nil, by: deadline)
            }
        ) { [self] answer throws(UnexpectedAnswer) in
            .found(try values(answer, in: store))
        }
    }

    private func values(
        _ answer: [UInt8], in store: Int
    ) throws(UnexpectedAnswer) -> [String: Versioned<String>] {
        var values: [String: Versioned<String>] = [:]
        for (key, value, version) in try answer.keys("values") {
            guard let value else { throw UnexpectedAnswer("\(key) has no value") }
            known[storePlace(key, in: store)] = version
            see(key, version, value, in: store)
            values[key] = Versioned(value, version)
        }
        return values
    }

    private func see(_ key: String, _ version: Version, _ value: String?, in store: Int) {
        recorder.saw(
            key, in: "store \(store)", version, value.map { [Place.valueField: $0] }, by: "client \(number)")
    }

    func followStore() async {
        await followStore(
            world.random(0...(recorder.stores.count - 1)), from: storeFeeds, pagesMax: world.random(1...6))
    }

    func readFeed(ofStore store: Int) async { await followStore(store, from: [:], pagesMax: 50) }

    private func followStore(_ store: Int, from start: [Int: StoreFeed], pagesMax: Int) async {
        storeFeeds[store] = start[store]
        for _ in 0..<pagesMax {
            let feed = storeFeeds[store] ?? StoreFeed()
            var isOver = false
            let limit = world.random(1...4)
            await read(
                store, .view,
                { (preferences, deadline) throws(RequestFailure) in
                    try await preferences.changes(since: feed.token, limit: limit, by: deadline)
                }
            ) {
                [self] answer throws(UnexpectedAnswer) in
                let next = try take(answer, onto: feed, of: store)
                storeFeeds[store] = next
                isOver = !answer.hasMore
                return answer.hasMore ? nil : .found(next.copy.records)
            }
            if isOver || storeFeeds[store]?.token == feed.token { return }
        }
    }

    private func take(
        _ answer: ShardAnswer, onto feed: StoreFeed, of store: Int
    ) throws(UnexpectedAnswer) -> StoreFeed {
        var feed = feed
        var page: [FeedCopy<String>.Entry] = []
        for (key, value, version) in try answer.bytes.keys("changes") {
            see(key, version, value, in: store)
            page.append(.init(key, version, value))
        }
        do throws(FeedCopy<String>.Fault) { try feed.copy.take(page) } catch {
            throw UnexpectedAnswer("in store \(store) \(error)")
        }
        feed.token = answer.cursor.map { String(decoding: $0, as: UTF8.self) }
        return feed
    }

    private func read<Found: Sendable>(
        _ store: Int, _ operation: KeyValueModel.Operation,
        _ look: @escaping @Sendable (Preferences, Deadline) async throws(RequestFailure) -> Found,
        _ outcome: (Found) throws(UnexpectedAnswer) -> KeyValueModel.Outcome?
    ) async {
        let account = recorder.stores[store].account
        let call = recorder.begin(store: store, operation, by: number)
        let answer = await ask(repeats: true, triesMax: 4, account: store) { visit throws(RequestFailure) in
            try await visit.preferences(of: account) { preferences throws(RequestFailure) in
                try await look(preferences, visit.deadline)
            }
        }
        do {
            if case .failed(let failure) = answer {
                guard takesNoEarlierToken(failure.error) else { throw UnexpectedAnswer("\(failure.error)") }
                storeFeeds[store] = nil
            }
            guard case .answered(let found, _) = answer else { return recorder.withdraw(store: store, call) }
            guard let outcome = try outcome(found) else { return recorder.withdraw(store: store, call) }
            recorder.end(store: store, call, outcome)
        } catch {
            recorder.violated("client \(number) was answered \(error)")
            recorder.withdraw(store: store, call)
        }
    }
}
