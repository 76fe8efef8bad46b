import Foundation
import RecordModel
import Synchronization
import Testing

@testable import UbiquitousKeyValueStore

@Suite("Synchronising now, whatever was under way before, and asking the server whose the session is")
struct AskingTests {
    private typealias Problem = NSUbiquitousKeyValueStore.SyncError
    private let cloud = FakeCloud()
    private let scratch = Scratch()
    private var ann: FakeSession { FakeSession(cloud: cloud, user: "ann") }

    /// Where ann is remembered from an earlier run.
    private func known() throws -> PreferencePlace {
        let place = PreferencePlace(folder: scratch.folder("a"))
        try FileManager.default.createDirectory(atPath: place.folder, withIntermediateDirectories: true)
        place.remember("ann", of: ann.name)
        return place
    }

    @Test("whose the session is is remembered also where the answer comes before the folder is there")
    func remembered() async throws {
        let place = PreferencePlace(folder: scratch.folder("a"))
        let engine = PreferenceEngine(
            place: place, service: ann, dependencies: .init(makeBatchID: { UUID().uuidString }))
        engine.resolveAccount()
        await engine.idle()
        #expect(place.rememberedAccount(of: ann.name) == "ann")
        engine.close()
    }

    @Test("a pause ends as soon as another service is asked, also where it just began", .timeLimit(.minutes(10)))
    func endedPause() async {
        let work = WorkCounter()
        let inquiry = AccountInquiry(work: work, clock: ManualClock(), queue: DispatchQueue(label: "pauses"))
        inquiry.begin(epoch: 1, hasService: true)
        work.begin()
        await inquiry.pause(nil, or: 1_000, epoch: 1) { inquiry.begin(epoch: 2, hasService: true) }
        #expect(inquiry.isUnderWay)
        work.end()
    }

    @Test("a request does not wait for the pause before the server is asked again who this is")
    func accountAtOnce() async throws {
        cloud.with { $0.isOnline = false }
        let one = Device(folder: scratch.folder("a"), session: ann)
        await one.store.engine.idle()
        let problem = await #expect(throws: Problem.self) { try await one.sync() }
        #expect(problem?.description.contains("no network") == true)
        await one.store.engine.idle()
        cloud.with { $0.isOnline = true }
        try await one.sync()
        #expect(one.store.status.userRecordName == "ann")
    }

    @Test("a pause that the server asked for stays, and the request fails with the reason")
    func serversPause() async throws {
        cloud.with { $0.pauseMilliseconds = 7000 }
        let one = Device(folder: scratch.folder("a"), session: ann)
        await one.store.engine.idle()
        cloud.with { $0.pauseMilliseconds = nil }
        let problem = await #expect(throws: Problem.self) { try await one.sync() }
        #expect(problem?.description.contains("come back later") == true)
        await one.pass(milliseconds: 7000)
        try await one.sync()
    }

    @Test("an attempt that began before the request, and fails, is made once more", arguments: [true, false])
    func underWay(isKnown: Bool) async throws {
        cloud.with { $0.isOnline = false }
        cloud.hold()
        let place = isKnown ? try known() : PreferencePlace(folder: scratch.folder("a"))
        let one = Device(place: place, session: ann)
        // Where the user is known, the fetch asks as well who the session is.
        await cloud.awaitHeld(isKnown ? 2 : 1)
        cloud.with { $0.isOnline = true }
        async let synchronised: Void = one.store.synchronizeNow()
        while !one.store.engine.waiters.hasArmed { await Task.yield() }
        cloud.release()
        try await synchronised
        await one.store.engine.idle()
        #expect(one.store.status.userRecordName == "ann" && one.store.status.isInitialSyncCompleted)
    }

    @Test("an upload that was under way and failed is repeated for the request, with what it had")
    func uploadUnderWay() async throws {
        let one = Device(place: try known(), session: ann)
        try await one.sync()
        cloud.with { $0.isOnline = false }
        cloud.hold()
        one.store.set("x", forKey: "a")
        await one.pass(milliseconds: 100)
        one.clock.advance(by: 600)
        await cloud.awaitHeld(1)
        cloud.with { $0.isOnline = true }
        async let synchronised: Void = one.store.synchronizeNow()
        while !one.store.engine.waiters.hasArmed { await Task.yield() }
        cloud.release()
        try await synchronised
        #expect(cloud.visible("ann") == ["a": .string("x")])
    }
}
