import Foundation
import RecordModel
import Testing

@testable import UbiquitousKeyValueStore

@Suite("NSUbiquitousKeyValueStore is what apps expect")
struct CompatibilityTests {
    private let cloud = FakeCloud()
    private let scratch = Scratch()
    private var ann: FakeSession { FakeSession(cloud: cloud, user: "ann") }

    private func device(_ name: String, session: FakeSession? = nil, limits: PreferenceLimits = PreferenceLimits())
        -> Device
    {
        Device(folder: scratch.folder(name), session: session ?? ann, limits: limits)
    }

    @Test("1: a key of 64 bytes is taken, one of 65 is refused without a crash")
    func keyLength() async throws {
        let one = device("one")
        let fits = String(repeating: "ü", count: 32)
        one.store.set("yes", forKey: fits)
        one.store.set("no", forKey: fits + "x")
        #expect(one.store.string(forKey: fits) == "yes")
        #expect(one.store.object(forKey: fits + "x") == nil)
        #expect(one.store.refusals.map(\.key) == [fits + "x"])
        guard case .refused(let refusal) = one.store.status(forKey: fits + "x") else {
            Issue.record("not refused")
            return
        }
        #expect(!refusal.isQuotaViolation && refusal.reason.contains("65 bytes"))
        #expect(one.logged.all.contains { $0.contains("65 bytes") })
        try await one.sync()
        #expect(cloud.visible("ann") == [fits: .string("yes")])
    }

    @Test("2: the 1,025th key is refused with reason 2, and the store is as it was")
    func keyCount() async throws {
        let one = device("one")
        for number in 0..<1024 { one.store.set(Int64(number), forKey: "key\(number)") }
        #expect(one.news().isEmpty)
        one.store.set(Int64(1), forKey: "one too many")
        #expect(one.news() == [.init(reason: 2, keys: ["one too many"])])
        #expect(one.store.status.keyCount == 1024 && one.store.object(forKey: "one too many") == nil)
        try await one.sync()
        #expect(cloud.visible("ann").count == 1024)
        one.store.removeObject(forKey: "key7")
        one.store.set(Int64(1), forKey: "one too many")
        try await one.sync()
        #expect(cloud.visible("ann").count == 1024 && cloud.visible("ann")["one too many"] == .int64(1))
    }

    @Test("3 and 4: one value of 1 MB fills the store; a small one in its place makes room")
    func storeSize() async throws {
        let one = device("one")
        one.store.set(Data(repeating: 1, count: 1_048_576), forKey: "big")
        one.store.set("x", forKey: "second")
        #expect(one.news() == [.init(reason: 2, keys: ["second"])])
        one.store.set(Data(repeating: 1, count: 1_048_577), forKey: "big")
        #expect(one.news() == [.init(reason: 2, keys: ["big"])])
        try await one.sync()
        #expect(cloud.visible("ann")["big"]?.sizeBytes == 1_048_576)
        one.store.set(Data([1]), forKey: "big")
        one.store.set("x", forKey: "second")
        #expect(one.news().isEmpty && one.store.status.byteCount == 2)
        try await one.sync()
        #expect(cloud.visible("ann") == ["big": .data([1]), "second": .string("x")])
    }

    @Test("5: another device learns of exactly the changed keys with reason 0, the writer of nothing")
    func externalChange() async throws {
        let (one, two) = (device("one"), device("two"))
        try await one.sync()
        try await two.sync()
        one.store.set("dark", forKey: "theme")
        one.store.set(Int64(3), forKey: "level")
        try await one.sync()
        try await two.sync()
        #expect(two.news() == [.init(reason: 0, keys: ["level", "theme"])])
        #expect(two.store.string(forKey: "theme") == "dark" && two.store.longLong(forKey: "level") == 3)
        one.store.set("light", forKey: "theme")
        try await one.sync()
        try await two.sync()
        try await one.sync()
        #expect(two.news() == [.init(reason: 0, keys: ["theme"])] && one.news().isEmpty)
        #expect(one.store.status(forKey: "theme") == .synced && two.store.status(forKey: "theme") == .synced)
    }

    @Test("6: of two writes the one that reached the server first counts; the other device is told")
    func conflict() async throws {
        let (one, two) = (device("one"), device("two"))
        try await one.sync()
        try await two.sync()
        cloud.with { $0.isOnline = false }
        two.store.set(Int64(1), forKey: "level")
        await two.pass(milliseconds: 10_000)
        #expect(two.store.status(forKey: "level") == .pending && two.store.status.serviceProblem != nil)
        cloud.with { $0.isOnline = true }
        one.store.set(Int64(13), forKey: "level")
        try await one.sync()
        try await two.sync()
        #expect(two.store.longLong(forKey: "level") == 13)
        #expect(two.news() == [.init(reason: 0, keys: ["level"])] && one.news().isEmpty)
        #expect(cloud.visible("ann") == ["level": .int64(13)])
    }

    @Test("7: the first download has reason 1, and values set before it lose, unless they are explicit")
    func initialSync() async throws {
        cloud.set(["theme": .string("dark"), "level": .int64(9), "hand": .string("left")], user: "ann")
        let one = device("one", limits: PreferenceLimits())
        one.store.set("default", forKey: "theme")
        one.store.set("mine", forKey: "new")
        one.store.setExplicitly("right", forKey: "hand")
        #expect(one.store.status(forKey: "theme") == .provisional || one.store.status(forKey: "theme") == .synced)
        try await one.store.waitForInitialSync()
        try await one.sync()
        #expect(one.store.status.isInitialSyncCompleted)
        #expect(one.store.string(forKey: "theme") == "dark" && one.store.string(forKey: "hand") == "right")
        #expect(one.news() == [.init(reason: 1, keys: ["level", "theme"])])
        #expect(
            cloud.visible("ann") == [
                "theme": .string("dark"), "level": .int64(9), "new": .string("mine"), "hand": .string("right"),
            ])
    }

    @Test("8: another account takes the place of the first with reason 3, and nothing of the first stays")
    func accountSwitch() async throws {
        cloud.set(["theme": .string("dark"), "both": .string("ann's")], user: "ann")
        cloud.set(["both": .string("bob's")], user: "bob")
        let one = device("one")
        try await one.sync()
        _ = one.news()
        let place = PreferencePlace(folder: scratch.folder("one"))
        one.store.engine.use(FakeSession(cloud: cloud, user: "bob"), at: place)
        await one.store.engine.idle()
        try await one.sync()
        let news = one.news()
        #expect(news.first?.reason == 3 && Set(news.flatMap(\.keys)) == ["both", "theme"])
        #expect(one.store.object(forKey: "theme") == nil && one.store.string(forKey: "both") == "bob's")
        #expect(one.store.status.userRecordName == "bob")
        one.store.engine.use(ann, at: place)
        #expect(one.store.string(forKey: "both") == "ann's", "ann's copy is still on this device")
        #expect(cloud.visible("bob") == ["both": .string("bob's")])
    }

    @Test("9: nil deletes everywhere")
    func deletion() async throws {
        cloud.set(["theme": .string("dark"), "level": .int64(1)], user: "ann")
        let (one, two) = (device("one"), device("two"))
        try await one.sync()
        try await two.sync()
        _ = (one.news(), two.news())
        one.store.set(nil as String?, forKey: "theme")
        one.store.removeObject(forKey: "level")
        try await one.sync()
        try await two.sync()
        #expect(two.news() == [.init(reason: 0, keys: ["level", "theme"])])
        #expect(two.store.dictionaryRepresentation.isEmpty && cloud.visible("ann").isEmpty)
    }

    @Test("10: every kind of property list comes back as it was, nested too")
    func types() async throws {
        let date = Date(timeIntervalSince1970: 1_700_000_000.25)
        let list: [String: Any] = [
            "text": "ü\u{0}🐘", "data": Data([0, 255]), "int": Int64.max, "small": 7, "double": 1.0, "yes": true,
            "no": false,
            "date": date, "list": [1, 2.5, "x", ["deep": [true]]] as [Any], "empty": [String: Any](),
        ]
        let (one, two) = (device("one"), device("two"))
        one.store.set(list, forKey: "all")
        one.store.set(true, forKey: "bool")
        one.store.set(2.0, forKey: "double")
        one.store.set(Int64(2), forKey: "int")
        one.store.set(date as Any?, forKey: "date")
        one.store.set(["a", 1] as [Any]?, forKey: "array")
        try await one.sync()
        try await two.sync()
        for store in [one.store, two.store] {
            let read = try #require(store.dictionary(forKey: "all"))
            #expect(read as NSDictionary == list as NSDictionary)
            #expect(try PropertyValue(plist: read) == PropertyValue(plist: list))
            #expect(store.bool(forKey: "bool") && store.object(forKey: "bool") as? Bool == true)
            #expect(store.double(forKey: "double") == 2 && store.longLong(forKey: "int") == 2)
            #expect(store.object(forKey: "int") as? Int == 2 && store.object(forKey: "date") as? Date == date)
            #expect(store.array(forKey: "array")?.count == 2 && store.string(forKey: "int") == nil)
            #expect(store.data(forKey: "none") == nil && store.longLong(forKey: "none") == 0)
        }
        #expect(cloud.visible("ann")["double"] == .double(2) && cloud.visible("ann")["int"] == .int64(2))
        #expect(cloud.visible("ann")["bool"] == .bool(true))
    }

    @Test("11: what was set while nobody was signed in survives a restart and is reconciled at sign-in")
    func signedOut() async throws {
        cloud.set(["theme": .string("dark")], user: "ann")
        let folder = scratch.folder("one")
        do {
            let one = Device(folder: folder, session: nil)
            one.store.set("light", forKey: "theme")
            one.store.set("mine", forKey: "new")
            #expect(one.store.synchronize())
        }
        let again = Device(folder: folder, session: nil)
        #expect(again.store.string(forKey: "new") == "mine" && !again.store.status.isConfigured)
        await #expect(throws: NSUbiquitousKeyValueStore.SyncError.self) { try await again.store.synchronizeNow() }
        again.store.engine.use(ann, at: PreferencePlace(folder: folder))
        await again.store.engine.idle()
        try await again.sync()
        #expect(again.store.string(forKey: "theme") == "dark" && again.store.string(forKey: "new") == "mine")
        #expect(cloud.visible("ann") == ["theme": .string("dark"), "new": .string("mine")])
        let told = again.news()
        #expect(told.contains(.init(reason: 1, keys: ["theme"])) && !told.contains { $0.keys.contains("new") })
        // Nobody's values went with ann.
        again.store.engine.use(FakeSession(cloud: cloud, user: "bob"), at: PreferencePlace(folder: folder))
        await again.store.engine.idle()
        try await again.sync()
        #expect(again.store.dictionaryRepresentation.isEmpty && cloud.visible("bob").isEmpty)
    }

    @Test("12: a hundred writes of a key make few uploads, and the last one counts")
    func burst() async throws {
        let one = device("one")
        try await one.sync()
        for number in 0..<100 {
            one.store.set(Int64(number), forKey: "slider")
            await one.pass(milliseconds: 20)
        }
        for _ in 0..<12 { await one.pass(milliseconds: 100) }
        #expect(cloud.visible("ann") == ["slider": .int64(99)])
        #expect(cloud.with { $0.setRequests } <= 2)
        // Without a pause in between, an upload still goes every five seconds.
        for number in 0..<120 {
            one.store.set(Int64(number), forKey: "slider")
            await one.pass(milliseconds: 100)
        }
        #expect((3...4).contains(cloud.with { $0.setRequests }))
    }
}
