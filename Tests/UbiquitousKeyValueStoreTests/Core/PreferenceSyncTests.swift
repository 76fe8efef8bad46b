import RecordModel
import Testing

@testable import UbiquitousKeyValueStore

@Suite("The core of preferences that sync")
struct PreferenceSyncTests {
    /// A core that has read an empty store to its end.
    private struct World {
        var sync = PreferenceSync(account: "ann", copy: PreferenceCopy(device: "one"))
        var now: Int64 = 1000
        var names = 0

        init() {
            _ = handle(.woken)
            page([], token: "t0", since: nil)
        }

        mutating func handle(_ event: PreferenceEvent) -> PreferenceEffects {
            names += 1
            return sync.handle(event, at: PreferenceMoment(milliseconds: now, batchID: "batch\(names)"))
        }

        @discardableResult
        mutating func page(
            _ changes: [PreferencePage.Change], token: String, since: String?, isMoreComing: Bool = false
        ) -> PreferenceEffects {
            handle(
                .pageArrived(
                    PreferenceTicket(account: "ann", since: since),
                    PreferencePage(changes: changes, token: token, isMoreComing: isMoreComing)))
        }

        mutating func set(_ key: String, _ value: PropertyValue?) -> PreferenceEffects {
            handle(.edited(PreferenceKey(key), value, isExplicit: false))
        }

        mutating func later(_ milliseconds: Int64) -> PreferenceEffects {
            now += milliseconds
            return handle(.woken)
        }

        subscript(key: String) -> PropertyValue? { sync.copy.value(PreferenceKey(key)) }
    }

    private func version(_ sequence: UInt64, life: UInt64 = 1) -> ChangeTag {
        ChangeTag(incarnation: life, sequence: sequence)
    }

    private func change(_ key: String, _ value: PropertyValue?, _ sequence: UInt64) -> PreferencePage.Change {
        .init(key: PreferenceKey(key), value: value, version: version(sequence), device: "two")
    }

    @Test(
        "edits wait half a second for more, and five at most, and go as one batch that is persisted before it is sent")
    func coalescing() {
        var world = World()
        let first = world.set("a", .int64(1))
        #expect(first.persist && first.upload == nil && first.wakeAt == world.now + 500)
        #expect(world.later(400).upload == nil)
        _ = world.set("b", .int64(2))
        #expect(world.later(499).upload == nil)
        let sent = world.later(1)
        #expect(sent.persist && sent.upload?.writes.map(\.key.text) == ["a", "b"])
        #expect(sent.upload?.writes.map(\.expected) == [PreferenceCopy.absent, PreferenceCopy.absent])
        #expect(world.sync.copy.batch == sent.upload)
        // While one is under way, no other is.
        _ = world.set("c", .int64(3))
        #expect(world.later(6000).upload == nil)
        var more = world.handle(.uploadAnswered("\(sent.upload?.id ?? "")", .applied([version(1), version(2)])))
        #expect(more.upload?.writes.map(\.key.text) == ["c"] && more.notifications.isEmpty)
        // Edits without a pause are sent after five seconds all the same.
        more = world.handle(.uploadAnswered(more.upload?.id ?? "", .applied([version(3)])))
        // The first of them is at the first turn.
        let begin = world.now + 300
        while more.upload == nil, world.now < begin + 10_000 {
            world.now += 300
            more = world.set("a", .int64(world.now))
        }
        #expect((5000...5300).contains(world.now - begin))
    }

    @Test("a batch whose answer is lost is repeated as it is, later and later; the server's own pause counts more")
    func repeats() throws {
        var world = World()
        _ = world.set("a", .int64(1))
        let batch = try #require(world.later(500).upload)
        _ = world.set("a", .int64(2))
        let failed = world.handle(.uploadAnswered(batch.id, .unknown(retryAfterMilliseconds: nil)))
        #expect(failed.upload == nil && failed.wakeAt == world.now + 1000)
        #expect(world.later(1000).upload == batch)
        #expect(
            world.handle(.uploadAnswered(batch.id, .unknown(retryAfterMilliseconds: nil))).wakeAt == world.now + 2000)
        #expect(world.handle(.syncRequested).upload == batch, "somebody wants it now")
        #expect(
            world.handle(.uploadAnswered(batch.id, .unknown(retryAfterMilliseconds: 7000))).wakeAt == world.now + 7000)
        #expect(world.handle(.syncRequested).upload == nil, "the server said when")
        #expect(world.later(7000).upload == batch && world["a"] == .int64(2))
        let next = world.handle(.uploadAnswered(batch.id, .applied([version(1)])))
        #expect(next.upload?.writes == [.init(key: PreferenceKey("a"), value: .int64(2), expected: version(1))])
    }

    @Test("our own writes are no news, whichever comes first, the answer or the feed; older news are none either")
    func echoes() throws {
        var world = World()
        _ = world.set("a", .int64(1))
        var batch = try #require(world.later(500).upload)
        #expect(world.page([change("a", .int64(1), 1)], token: "t1", since: "t0").notifications.isEmpty)
        #expect(world.handle(.uploadAnswered(batch.id, .applied([version(1)]))).notifications.isEmpty)
        _ = world.set("a", .int64(2))
        batch = try #require(world.later(500).upload)
        _ = world.handle(.uploadAnswered(batch.id, .applied([version(5)])))
        // The page was read before our write.
        #expect(world.page([change("a", .int64(9), 4)], token: "t4", since: "t1").notifications.isEmpty)
        #expect(world.page([change("a", .int64(2), 5)], token: "t5", since: "t4").notifications.isEmpty)
        #expect(world["a"] == .int64(2))
        // A page that comes twice, or for another's question.
        #expect(world.page([change("a", .int64(7), 7)], token: "t7", since: "t4").notifications.isEmpty)
        #expect(world["a"] == .int64(2) && world.sync.copy.token == "t5")
    }

    @Test("a deletion is remembered until the feed repeats it, so that older news do not bring the key back")
    func deletions() throws {
        var world = World()
        world.page([change("a", .int64(1), 1)], token: "t1", since: "t0")
        _ = world.set("a", nil)
        let batch = try #require(world.later(500).upload)
        _ = world.handle(.uploadAnswered(batch.id, .applied([version(3)])))
        #expect(world.page([change("a", .int64(2), 2)], token: "t2", since: "t1").notifications.isEmpty)
        #expect(world["a"] == nil)
        world.page([change("a", nil, 3)], token: "t3", since: "t2")
        #expect(world.sync.copy.rows.isEmpty)
    }

    @Test("an expired token: all is read again, what is gone is deleted, and the app is told of differences only")
    func expiry() {
        var world = World()
        world.page([change("a", .int64(1), 1), change("b", .int64(2), 2)], token: "t2", since: "t0")
        let expired = world.handle(.tokenExpired(PreferenceTicket(account: "ann", since: "t2")))
        #expect(
            expired.persist && expired.fetch == nil && expired.wakeAt == world.now + 1000,
            "not at once: it may expire again")
        #expect(world.later(1000).fetch == PreferenceTicket(account: "ann", since: nil))
        #expect(world["b"] == .int64(2), "the old values are shown meanwhile")
        let more = world.page([change("c", .int64(3), 3)], token: "r1", since: nil, isMoreComing: true)
        #expect(more.fetch?.since == "r1" && more.notifications == [.init(.serverChange, [PreferenceKey("c")])])
        let end = world.page([change("a", .int64(1), 1)], token: "r2", since: "r1")
        #expect(end.notifications == [.init(.serverChange, [PreferenceKey("b")])])
        #expect(world["a"] == .int64(1) && world["b"] == nil && world.sync.copy.token == "r2")
    }

    @Test("where other devices filled the store, the latest edits are undone with reason 2 after a look at the server")
    func serverIsFull() throws {
        var world = World()
        _ = world.set("mine", .data(Array(repeating: 1, count: 600_000)))
        let batch = try #require(world.later(500).upload)
        let refused = world.handle(.uploadAnswered(batch.id, .refused(.storeBytes, key: nil, reason: "full")))
        #expect(refused.notifications.map(\.reason) == [.quotaViolation], "one write alone is at fault by itself")
        _ = world.set("mine", .data(Array(repeating: 1, count: 600_000)))
        _ = world.set("small", .int64(1))
        let two = try #require(world.later(500).upload)
        let held = world.handle(.uploadAnswered(two.id, .refused(.storeBytes, key: nil, reason: "full")))
        #expect(held.notifications.isEmpty && held.upload == nil && held.fetch?.since == "t0")
        let seen = world.page(
            [change("theirs", .data(Array(repeating: 1, count: 600_000)), 9)], token: "t9", since: "t0")
        let told = seen.notifications.map { [$0.reason.rawValue.description] + $0.keys }
        #expect(told == [["0", "theirs"], ["2", "mine"]])
        #expect(
            world["mine"] == nil && seen.upload?.writes.map(\.key.text) == ["small"], "there is room for the small one")
        guard case .refused = world.sync.status(of: PreferenceKey("mine")) else {
            Issue.record("not refused")
            return
        }
        #expect(world.sync.refusals.map(\.rule) == [.storeBytes])
    }

    @Test("a write that the server refuses is undone, and the rest of its batch is sent again")
    func refusedWrite() throws {
        var world = World()
        world.page([change("a", .int64(1), 1)], token: "t1", since: "t0")
        for key in ["a", "b", "c"] { _ = world.set(key, .string("new")) }
        let batch = try #require(world.later(500).upload)
        let refused = world.handle(
            .uploadAnswered(batch.id, .refused(.other, key: PreferenceKey("a"), reason: "not this one")))
        #expect(refused.notifications == [.init(.serverChange, [PreferenceKey("a")])], "no matter of quota")
        #expect(world["a"] == .int64(1) && refused.upload?.writes.map(\.key.text) == ["b", "c"])
        // Nobody's fault by name: one after the other.
        let single = world.handle(.uploadAnswered(refused.upload?.id ?? "", .refused(.other, key: nil, reason: "?")))
        #expect(single.upload?.writes.map(\.key.text) == ["b"])
        let last = world.handle(.uploadAnswered(single.upload?.id ?? "", .refused(.other, key: nil, reason: "?")))
        #expect(world["b"] == nil && last.upload?.writes.map(\.key.text) == ["c"])
        let done = world.handle(.uploadAnswered(last.upload?.id ?? "", .applied([version(2)])))
        #expect(done.notifications.isEmpty)
        #expect(
            world.sync.isSettled && world["c"] == .string("new") && world.sync.refusals.map(\.key.text) == ["a", "b"])
    }

    @Test("a batch that the server forgot is written under another name, after a pause and a look at the feed")
    func forgotten() throws {
        var world = World()
        _ = world.set("a", .int64(1))
        let batch = try #require(world.later(500).upload)
        let looked = world.handle(.uploadAnswered(batch.id, .forgotten))
        #expect(looked.upload == nil && looked.fetch?.since == "t0")
        #expect(world.page([], token: "t0", since: "t0").upload == nil)
        let again = try #require(world.later(1000).upload)
        #expect(again.id != batch.id && again.writes == batch.writes)
        // It had been done, and there is a newer edit by now: what was written is the server's, what was set since is
        // kept.
        _ = world.set("a", .int64(2))
        let held = world.handle(.uploadAnswered(again.id, .conflict))
        #expect(held.notifications.isEmpty && held.upload == nil && held.fetch?.since == "t0")
        let own = PreferencePage.Change(key: PreferenceKey("a"), value: .int64(1), version: version(1), device: "one")
        let seen = world.page([own], token: "t1", since: "t0")
        #expect(seen.notifications.isEmpty && world["a"] == .int64(2))
        #expect(seen.upload?.writes == [.init(key: PreferenceKey("a"), value: .int64(2), expected: version(1))])
    }

    @Test("what is set back is sent where an earlier write may have been done", arguments: [true, false])
    func setBack(isUnderWay: Bool) throws {
        var world = World()
        world.page([change("a", .int64(0), 1)], token: "t1", since: "t0")
        _ = world.set("a", .int64(1))
        let lost = try #require(world.later(500).upload)
        if isUnderWay { _ = world.set("a", .int64(0)) }
        #expect(world.handle(.uploadAnswered(lost.id, .forgotten)).fetch?.since == "t1")
        if !isUnderWay { _ = world.set("a", .int64(0)) }
        #expect(world.later(6000).upload == nil)
        let own = PreferencePage.Change(key: PreferenceKey("a"), value: .int64(1), version: version(2), device: "one")
        let seen = world.page([own], token: "t2", since: "t1")
        #expect(world["a"] == .int64(0) && seen.notifications.isEmpty)
        #expect(seen.upload?.writes == [.init(key: PreferenceKey("a"), value: .int64(0), expected: version(2))])
    }

    @Test("a conflict that the feed does not explain leads to a reading from the start, later and later")
    func conflictsInARow() throws {
        var world = World()
        _ = world.set("a", .int64(1))
        var batch = try #require(world.later(500).upload)
        for round in 0..<PreferenceSync.conflictsMax {
            #expect(world.handle(.uploadAnswered(batch.id, .conflict)).fetch?.since == "t\(round)")
            batch = try #require(world.page([], token: "t\(round + 1)", since: "t\(round)").upload)
        }
        let last = world.handle(.uploadAnswered(batch.id, .conflict))
        #expect(last.persist && last.fetch == PreferenceTicket(account: "ann", since: nil))
        let read = world.page([change("a", .int64(9), 3)], token: "r", since: nil)
        #expect(world["a"] == .int64(9) && read.notifications.count == 1 && world.sync.isSettled)
    }

    @Test("uploads that wait for a look at the server go on where another process of the user's took that look")
    func heldAcrossProcesses() throws {
        var world = World()
        _ = world.set("a", .int64(1))
        let batch = try #require(world.later(500).upload)
        let ticket = try #require(world.handle(.uploadAnswered(batch.id, .conflict)).fetch)
        var other = world.sync.copy
        other.token = "t8"
        _ = world.sync.adopt(other, replaying: [], at: PreferenceMoment(milliseconds: world.now, batchID: "x"))
        let dropped = world.page([], token: "t1", since: ticket.since)
        #expect(dropped.upload == nil && dropped.fetch?.since == "t8")
        #expect(world.page([], token: "t9", since: "t8").upload != nil)
    }

    @Test("a pause is neither none nor endless, whatever the server says")
    func pauses() {
        for (said, means) in [(0, 1000), (-5, 1000), (7000, 7000), (Int64.max, 86_400_000)] as [(Int64, Int64)] {
            var pause = PreferenceSync.Pause()
            pause.failed(at: 5, retryAfter: said)
            #expect(pause.until == 5 + means)
        }
    }

    @Test("an explicit edit of a value that is pending makes that explicit")
    func becomesExplicit() {
        var world = World()
        _ = world.set("a", .int64(1))
        #expect(world.handle(.edited(PreferenceKey("a"), .int64(1), isExplicit: true)).persist)
        world.page([change("a", .int64(9), 3)], token: "t1", since: "t0")
        #expect(world["a"] == .int64(1))
    }

    @Test("an explicit edit of a value that is under way makes that explicit, and is not sent where that is taken")
    func becomesExplicitUnderWay() throws {
        var world = World()
        _ = world.set("a", .int64(1))
        let lost = try #require(world.later(500).upload)
        #expect(world.handle(.edited(PreferenceKey("a"), .int64(1), isExplicit: true)).persist)
        _ = world.handle(.uploadAnswered(lost.id, .conflict))
        let again = try #require(world.page([change("a", .int64(9), 3)], token: "t1", since: "t0").upload)
        #expect(world["a"] == .int64(1) && again.writes.map(\.expected) == [version(3)])
        _ = world.handle(.uploadAnswered(again.id, .applied([version(4)])))
        _ = world.set("b", .int64(2))
        let taken = try #require(world.later(500).upload)
        _ = world.handle(.edited(PreferenceKey("b"), .int64(2), isExplicit: true))
        let done = world.handle(.uploadAnswered(taken.id, .applied([version(5)])))
        #expect(done.upload == nil && world.later(6000).upload == nil && !world.sync.hasEdits)
    }

    @Test("an explicit edit that was done, and overwritten by somebody who knew it, is not written once more")
    func explicitDone() throws {
        var world = World()
        let key = PreferenceKey("a")
        let told = [PreferenceNotification(.serverChange, [key])]
        _ = world.handle(.edited(key, .int64(1), isExplicit: true))
        let first = try #require(world.later(500).upload)
        // The answer is late: another device has seen the value already, and set one of its own.
        world.page([change("a", .int64(2), 2)], token: "t2", since: "t0")
        #expect(world["a"] == .int64(1))
        var late = world.handle(.uploadAnswered(first.id, .applied([version(1)])))
        #expect(world["a"] == .int64(2) && late.notifications == told && late.upload == nil && world.sync.isSettled)
        // The same with a deletion.
        _ = world.handle(.edited(key, .int64(3), isExplicit: true))
        let second = try #require(world.later(500).upload)
        world.page([change("a", nil, 4)], token: "t4", since: "t2")
        #expect(world["a"] == .int64(3))
        late = world.handle(.uploadAnswered(second.id, .applied([version(3)])))
        #expect(world["a"] == nil && late.notifications == told && late.upload == nil && world.sync.isSettled)
        // What came before the write, and had gone when it was done, does not count.
        _ = world.handle(.edited(key, .int64(5), isExplicit: true))
        let third = try #require(world.later(500).upload)
        world.page([change("a", .int64(6), 5)], token: "t5", since: "t4")
        late = world.handle(.uploadAnswered(third.id, .applied([version(7)])))
        #expect(world["a"] == .int64(5) && late.notifications.isEmpty)
    }

    @Test("spellings of one letter are different keys and different values")
    func spellings() {
        var world = World()
        _ = world.set("\u{e9}", .string("\u{e9}"))
        _ = world.set("e\u{301}", .string("\u{e9}"))
        #expect(world.sync.copy.rows.count == 2)
        let effects = world.set("\u{e9}", .string("e\u{301}"))
        #expect(effects.persist, "the other spelling is another value")
    }

    @Test("before the first download nothing is uploaded, and nothing at all while nobody is signed in")
    func beforeFirst() {
        var sync = PreferenceSync(account: "ann", copy: PreferenceCopy(device: "one"))
        let moment = PreferenceMoment(milliseconds: 0, batchID: "b")
        _ = sync.handle(.edited(PreferenceKey("a"), .int64(1), isExplicit: true), at: moment)
        #expect(sync.handle(.woken, at: PreferenceMoment(milliseconds: 9000, batchID: "c")).upload == nil)
        var nobody = PreferenceSync(account: nil, copy: PreferenceCopy(device: "one"))
        _ = nobody.handle(.edited(PreferenceKey("a"), .int64(1), isExplicit: false), at: moment)
        let effects = nobody.handle(.syncRequested, at: PreferenceMoment(milliseconds: 9000, batchID: "c"))
        #expect(effects.upload == nil && effects.fetch == nil && effects.wakeAt == nil)
        #expect(nobody.status(of: PreferenceKey("a")) == .provisional)
    }

    @Test("what is wanted while it is under way and fails is tried again at once, unless the server asks for a pause")
    func wantedAgain() {
        var world = World()
        let ticket = PreferenceTicket(account: "ann", since: "t0")
        #expect(world.handle(.changesSuspected).fetch == ticket)
        #expect(world.handle(.syncRequested).fetch == nil)
        #expect(world.handle(.fetchFailed(ticket, retryAfterMilliseconds: nil)).fetch == ticket)
        let failed = world.handle(.fetchFailed(ticket, retryAfterMilliseconds: nil))
        #expect(failed.fetch == nil && failed.wakeAt == world.now + 2000)
        #expect(world.handle(.syncRequested).fetch == ticket)
        #expect(world.handle(.syncRequested).fetch == nil)
        let told = world.handle(.fetchFailed(ticket, retryAfterMilliseconds: 9000))
        #expect(told.fetch == nil && told.wakeAt == world.now + 9000)
    }
}
