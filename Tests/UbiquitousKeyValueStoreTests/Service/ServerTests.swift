import Dispatch
import Foundation
import RecordModel
import ServiceClient
import Synchronization
import TestSupport
import Testing

@testable import UbiquitousKeyValueStore

@Suite("Preferences against real nodes over HTTPS", .serialized, .timeLimit(.minutes(10)))
struct ServerTests {
    /// A node with a container and two users.
    private final class World {
        let cluster: ProcessCluster
        let scratch = Scratch()
        private var sessions: [String: String] = [:]
        private var apiToken = ""

        init(users: [String]) async throws {
            cluster = try ProcessCluster(nodeCount: 1)
            try await cluster.startAll()
            try await cluster.prepare()
            apiToken = cluster.environment["ZONEKEEPER_API_TOKEN"] ?? ""
            for user in users {
                _ = try await cluster.client.admin("POST", "users", #"{"name": "\#(user)"}"#)
                let made = try await cluster.client.admin(
                    "POST", "tokens",
                    #"{"kind": "session", "container": "\#(cluster.container)", "user": "\#(user)"}"#)
                sessions[user] = made["secret"]?.string
            }
        }

        func configuration(_ user: String) -> ZonekeeperConfiguration {
            ZonekeeperConfiguration(
                urls: cluster.clientPorts.map { "https://127.0.0.1:\($0)" },
                certificateAuthorityPath: cluster.folder + "/data/certs/client-ca.pem", container: cluster.container,
                apiToken: apiToken, webAuthToken: sessions[user])
        }

        func device(_ name: String, of user: String) throws -> (NSUbiquitousKeyValueStore, Ear) {
            let engine = try ConfiguredPreferences.engine(of: configuration(user), folder: scratch.folder(name))
            let store = NSUbiquitousKeyValueStore(engine: engine, queue: DispatchQueue(label: name))
            return (store, Ear(store))
        }
    }

    /// Hears a store's notifications.
    private final class Ear: Sendable {
        private let heard = Mutex((list: [Device.Told](), waiters: [CheckedContinuation<Void, Never>]()))
        private let store: NSUbiquitousKeyValueStore
        // The token is only kept, to be taken back.
        nonisolated(unsafe) private var token: (any NSObjectProtocol)?

        init(_ store: NSUbiquitousKeyValueStore) {
            self.store = store
            token = NotificationCenter.default.addObserver(
                forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: nil
            ) { [weak self] in self?.hear($0) }
        }

        deinit {
            if let token { NotificationCenter.default.removeObserver(token) }
            store.close()
        }

        private func hear(_ notification: Notification) {
            let reason = notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int ?? -1
            let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? ["?"]
            let waiters = heard.withLock { heard in
                heard.list.append(Device.Told(reason: reason, keys: keys))
                defer { heard.waiters = [] }
                return heard.waiters
            }
            for waiter in waiters { waiter.resume() }
        }

        /// The notifications so far; waits where there is none.
        func next() async -> [Device.Told] {
            await withCheckedContinuation { continuation in
                let isThere = heard.withLock { heard in
                    if heard.list.isEmpty { heard.waiters.append(continuation) }
                    return !heard.list.isEmpty
                }
                if isThere { continuation.resume() }
            }
            return heard.withLock { heard in
                defer { heard.list = [] }
                return heard.list
            }
        }

        var isSilent: Bool { heard.withLock { $0.list.isEmpty } }
    }

    @Test("two devices of one user converge by pushes; another user sees nothing; a node that is killed is waited for")
    func devices() async throws {
        let world = try await World(users: ["ann", "bob"])
        let ((one, earOne), (two, earTwo)) = (try world.device("one", of: "ann"), try world.device("two", of: "ann"))
        let (other, earOther) = try world.device("other", of: "bob")
        for store in [one, two, other] { try await store.waitForInitialSync() }
        one.set("dark", forKey: "theme")
        one.set(["list": [1, 2.5, true, Data([1])] as [Any]] as [String: Any], forKey: "all")
        try await one.synchronizeNow()
        // Nobody asks here: the server tells.
        var told: Set<String> = []
        while told.count < 2 {
            for news in await earTwo.next() {
                #expect(news.reason == 0)
                told.formUnion(news.keys)
            }
        }
        #expect(told == ["all", "theme"] && two.string(forKey: "theme") == "dark")
        #expect(two.dictionary(forKey: "all") as NSDictionary? == one.dictionary(forKey: "all") as NSDictionary?)
        // A conflict over the wire: the other device wrote first.
        try await other.synchronizeNow()
        #expect(other.dictionaryRepresentation.isEmpty && earOther.isSilent && earOne.isSilent)
        world.cluster.kill(1)
        two.set("light", forKey: "theme")
        two.removeObject(forKey: "all")
        await #expect(throws: NSUbiquitousKeyValueStore.SyncError.self) { try await two.synchronizeNow() }
        #expect(two.status(forKey: "theme") == .pending && two.string(forKey: "theme") == "light")
        try world.cluster.start(1)
        try await world.cluster.awaitReady(1)
        // The restarted node takes up work again.
        try await awaitTrue("the second device syncs") {
            try await two.synchronizeNow()
            return true
        }
        told = []
        while told.count < 2 { for news in await earOne.next() { told.formUnion(news.keys) } }
        #expect(told == ["all", "theme"])
        #expect(one.string(forKey: "theme") == "light" && one.object(forKey: "all") == nil && earOther.isSilent)
    }

    /// Ids that were used, are from the future, or are too old: a batch of them is not taken, with the reason.
    private func expectRefusals(of used: String, by service: SessionPreferenceService, of user: String) async throws {
        let hours: Int64 = 3_600_000
        let write = PreferenceBatch.Write(key: PreferenceKey("b"), value: .int64(2), expected: PreferenceCopy.absent)
        for (id, reason) in [
            (used, "another batch"), (IdempotencyKeys.make(now: WallClock.now + 2 * hours), "the client's clock"),
            (IdempotencyKeys.make(now: WallClock.now - 25 * hours), "more than a day ago"),
        ] {
            let problem = await #expect(throws: PreferenceServiceProblem.self) {
                try await service.set(PreferenceBatch(id: id, writes: [write]), of: user, device: "one")
            }
            guard case .rejected(let said)? = problem, said.contains(reason) else {
                throw TestFailure("\(problem?.description ?? "no error") does not say '\(reason)'")
            }
        }
    }

    @Test("the real server's conflicts, limits and tokens mean what the core takes them for")
    func answers() async throws {
        let world = try await World(users: ["cat"])
        let service = SessionPreferenceService(try ServiceSession.of(world.configuration("cat")))
        let cat = try await service.account()
        func batch(_ key: String, _ value: PropertyValue?, _ expected: ChangeTag = PreferenceCopy.absent)
            -> PreferenceBatch
        {
            PreferenceBatch(
                id: IdempotencyKeys.make(), writes: [.init(key: PreferenceKey(key), value: value, expected: expected)])
        }
        let first = batch("a", .double(.nan))
        guard case .applied(let versions) = try await service.set(first, of: cat, device: "one"),
            let version = versions[0]
        else { throw TestFailure("the first write was not done") }
        #expect(try await service.set(first, of: cat, device: "one") == .applied([version]), "the same batch again")
        #expect(try await service.set(batch("a", .int64(1)), of: cat, device: "two") == .conflict)
        #expect(try await service.set(batch("none", nil), of: cat, device: "one") == .applied([nil]))
        guard
            case .refused(.keyBytes, let key, _) = try await service.set(
                batch(String(repeating: "k", count: 65), .bool(true)), of: cat, device: "one")
        else { throw TestFailure("a long key was taken") }
        #expect(key?.text.utf8.count == 65)
        let big = PropertyValue.data(Array(repeating: 7, count: 1_048_577))
        guard case .refused(.valueBytes, _, _) = try await service.set(batch("big", big), of: cat, device: "one") else {
            throw TestFailure("a large value was taken")
        }
        try await expectRefusals(of: first.id, by: service, of: cat)
        let page = try await service.changes(since: nil, of: cat)
        #expect(page.changes.map(\.key.text) == ["a"] && page.changes.map(\.version) == [version] && !page.isMoreComing)
        #expect(page.changes.first?.device == "one")
        #expect(try await service.changes(since: page.token, of: cat).changes.isEmpty)
        await #expect(throws: PreferenceServiceProblem.tokenExpired) {
            try await service.changes(since: "AAAAAAAAAAAAAAAA", of: cat)
        }
    }
}
