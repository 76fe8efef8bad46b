import Foundation
import RecordModel
import Synchronization
import Testing

@testable import UbiquitousKeyValueStore

@Suite("Sessions that come, go and become another user's")
struct SessionTests {
    private typealias Problem = NSUbiquitousKeyValueStore.SyncError
    private let cloud = FakeCloud()
    private let scratch = Scratch()
    private var ann: FakeSession { FakeSession(cloud: cloud, user: "ann") }
    private var bob: FakeSession { FakeSession(cloud: cloud, user: "bob") }

    @Test("a session that becomes another user's sends nothing of the first one's")
    func otherUser() async throws {
        let session = ScriptedSession(cloud, user: "ann")
        let folder = scratch.folder("a")
        let one = Device(folder: folder, session: session)
        try await one.sync()
        one.store.set("ann's", forKey: "a")
        session.with { $0.user = "bob" }
        await #expect(throws: Problem.self) { try await one.store.synchronizeNow() }
        await one.store.engine.idle()
        await one.pass(milliseconds: 61_000)
        #expect(one.store.status.userRecordName == "bob" && one.store.object(forKey: "a") == nil)
        try await one.sync()
        #expect(cloud.visible("bob").isEmpty && cloud.visible("ann").isEmpty)
        // Ann's edit waits for her.
        let again = Device(folder: folder, session: nil)
        again.store.engine.use(ann, at: PreferencePlace(folder: folder))
        await again.store.engine.idle()
        try await again.sync()
        #expect(cloud.visible("ann") == ["a": .string("ann's")] && cloud.visible("bob").isEmpty)
    }

    @Test("a batch that was formed for one user is not sent by the session of another that came in between")
    func changeInBetween() async throws {
        let folder = scratch.folder("a")
        let place = PreferencePlace(folder: folder)
        place.remember("bob", of: bob.name)
        let (one, two) = (Device(folder: folder, session: ann), Device(folder: folder, session: ann))
        try await one.sync()
        try await two.sync()
        cloud.with { $0.isOnline = false }
        two.store.set("two", forKey: "b")
        #expect(two.store.synchronize())
        cloud.with { $0.isOnline = true }
        one.store.set("one", forKey: "a")
        // The next transaction tells of what the other process wrote, and begins an upload; the telling is in between.
        let changes = Mutex(0)
        let bob = bob
        one.store.engine.onChange { [engine = one.store.engine] _ in
            let isFirst = changes.withLock { count in
                count += 1
                return count == 1
            }
            if isFirst { engine.use(bob, at: place) }
        }
        try? await one.store.synchronizeNow()
        await one.store.engine.idle()
        #expect(changes.withLock { $0 } > 0 && one.store.status.userRecordName == "bob")
        #expect(cloud.visible("bob").isEmpty)
        try await two.sync()
        #expect(cloud.visible("ann") == ["a": .string("one"), "b": .string("two")])
    }

    @Test("what was set before anybody signed in goes with the first user, also after a restart, and with no other")
    func claimedLater() async throws {
        let folder = scratch.folder("a")
        var place = PreferencePlace(folder: folder)
        place.unconfiguredFolder = scratch.folder("unconfigured")
        do {
            let one = Device(folder: folder, session: nil)
            one.store.set("mine", forKey: "new")
            #expect(one.store.synchronize())
            let other = Device(folder: scratch.folder("unconfigured"), session: nil)
            other.store.set("earlier", forKey: "old")
            #expect(other.store.synchronize())
        }
        // The server was asked in an earlier run who the session is.
        place.remember("ann", of: ann.name)
        let again = Device(place: place, session: ann)
        await again.store.engine.idle()
        try await again.sync()
        #expect(cloud.visible("ann") == ["new": .string("mine"), "old": .string("earlier")])
        #expect(again.news().contains(.init(reason: 3, keys: ["new", "old"])))
        again.store.engine.use(bob, at: place)
        await again.store.engine.idle()
        try await again.sync()
        #expect(cloud.visible("bob").isEmpty && again.store.dictionaryRepresentation.isEmpty)
    }

    @Test("what was set before anybody signed in goes to no user of another container")
    func otherContainer() async throws {
        let (here, there) = (PreferencePlace(folder: scratch.folder("a")), PreferencePlace(folder: scratch.folder("b")))
        try FileManager.default.createDirectory(atPath: there.folder, withIntermediateDirectories: true)
        // The server was asked in an earlier run who the session is.
        there.remember("ann", of: ann.name)
        let one = Device(place: here, session: nil)
        one.store.set("mine", forKey: "new")
        one.store.engine.use(ann, at: there)
        await one.store.engine.idle()
        try await one.sync()
        #expect(cloud.visible("ann").isEmpty && one.store.dictionaryRepresentation.isEmpty)
        one.store.engine.use(nil, at: here)
        await one.store.engine.idle()
        #expect(one.store.string(forKey: "new") == "mine")
    }

    @Test("a process that ends between the two files of a claim leaves it to the same user, and to no other")
    func claimRepeated() async throws {
        let folder = scratch.folder("a")
        let place = PreferencePlace(folder: folder)
        do {
            let one = Device(folder: folder, session: nil)
            one.store.set("mine", forKey: "new")
            #expect(one.store.synchronize())
            let file = PreferenceFile(path: place.path(of: nil))
            try file.lock()
            var copy = file.load().copy
            copy.claimant = "ann"
            try file.write(copy)
        }
        // Once with a user whom the server has to name first, once with one who is known.
        for _ in 0..<2 {
            let other = Device(folder: folder, session: bob)
            await other.store.engine.idle()
            try await other.sync()
            #expect(cloud.visible("bob").isEmpty && other.store.dictionaryRepresentation.isEmpty)
        }
        place.remember("ann", of: ann.name)
        try await Device(folder: folder, session: ann).sync()
        #expect(cloud.visible("ann") == ["new": .string("mine")])
    }

    @Test("nobody waits for a pause, a server that forgets, or a session that is gone")
    func nobodyHangs() async throws {
        let session = ScriptedSession(cloud, user: "ann")
        let one = Device(folder: scratch.folder("a"), session: session)
        try await one.sync()
        one.store.set("x", forKey: "a")
        session.with { $0.forgetsBatches = true }
        await #expect(throws: Problem.self) { try await one.store.synchronizeNow() }
        session.with { $0.forgetsBatches = false }
        cloud.with { $0.pauseMilliseconds = 7000 }
        for _ in 0..<2 {
            let problem = await #expect(throws: Problem.self) { try await one.store.synchronizeNow() }
            #expect(problem?.code == .unavailable)
            await one.store.engine.idle()
        }
        cloud.with { $0.pauseMilliseconds = nil }
        let waiting = await #expect(throws: Problem.self) { try await one.store.synchronizeNow() }
        #expect(waiting?.description.contains("7 s") == true, "the server said when: \(waiting?.description ?? "")")
        one.clock.advance(by: 7000)
        try await one.sync()
        #expect(cloud.visible("ann") == ["a": .string("x")])
    }

    @Test("a session that is taken again is used at once, however long the refused one was to wait")
    func takenAgain() async throws {
        let session = ScriptedSession(cloud, user: "ann")
        let place = PreferencePlace(folder: scratch.folder("a"))
        let one = Device(place: place, session: session)
        try await one.sync()
        one.store.set("x", forKey: "a")
        session.with { $0.isRefused = true }
        let refused = await #expect(throws: Problem.self) { try await one.store.synchronizeNow() }
        #expect(refused?.code == .notSignedIn)
        await one.store.engine.idle()
        session.with { $0.isRefused = false }
        // As after a sign-in that another part of the program noticed.
        one.store.engine.use(session, at: place)
        await one.store.engine.idle()
        #expect(cloud.visible("ann") == ["a": .string("x")])
        try await one.sync()
    }

    @Test(
        "after a change of users the next one's changes are pushed, though nothing ends the watch of the one before",
        .timeLimit(.minutes(10)))
    func otherUsersWatch() async throws {
        var (ann, bob) = (ann, bob)
        (ann.pushes, bob.pushes) = (true, true)
        let place = PreferencePlace(folder: scratch.folder("a"))
        let one = Device(place: place, session: ann)
        try await one.sync()
        cloud.set(["a": .int64(1)], user: "ann")
        #expect(await one.nextNews() == [.init(reason: 0, keys: ["a"])])
        one.store.engine.use(bob, at: place)
        await one.store.engine.idle()
        try await one.sync()
        _ = one.news()
        cloud.set(["b": .int64(2)], user: "bob")
        #expect(await one.nextNews() == [.init(reason: 0, keys: ["b"])])
    }

    @Test("watches that end at once are begun again later and later, whatever the server says; useful ones soon")
    func watchesThatEnd() {
        var backoff = WatchBackoff()
        #expect(backoff.ended(broughtPages: true, requested: nil) == 0...0)
        #expect(backoff.ended(broughtPages: false, requested: nil) == 250...312)
        #expect(backoff.ended(broughtPages: false, requested: 0) == 500...625)
        #expect(backoff.ended(broughtPages: false, requested: 7000) == 7000...7250)
        for _ in 0..<100 { #expect(backoff.ended(broughtPages: false, requested: nil).lowerBound <= 60_000) }
        #expect(backoff.ended(broughtPages: false, requested: .max).lowerBound == 86_400_000)
        #expect(backoff.ended(broughtPages: true, requested: 1000) == 1000...1062)
        #expect(backoff.ended(broughtPages: false, requested: nil).lowerBound == 250)
    }
}
