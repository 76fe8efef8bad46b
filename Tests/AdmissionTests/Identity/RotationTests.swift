import Admission
import RaftCore
import Testing

@Suite("Rotation of session tokens")
struct RotationTests {
    private let rotation = SessionRotation(graceMilliseconds: 60_000, sessionsMax: 1000)

    private func present(_ issued: Int64, at now: Int64, session: String = "s") -> SessionRotation.Verdict {
        rotation.present(sessionID: session, issued: issued, now: now).verdict
    }

    @Test("a token is good again and again while no newer one was presented")
    func alone() {
        #expect(present(10, at: 10) == .accepted(becameNewest: true))
        for now in [100_000, 1_000_000, 1_209_600_000] as [Int64] {
            #expect(present(10, at: now) == .accepted(becameNewest: false), "others know it already")
        }
        #expect(rotation.takeReused() == [])
    }

    @Test("a replaced token is good for the grace time from the first use of a newer one, and not longer")
    func grace() {
        #expect(present(10, at: 10) == .accepted(becameNewest: true))
        #expect(present(20, at: 100_000) == .accepted(becameNewest: true))
        #expect(present(10, at: 100_001) == .accepted(becameNewest: false))
        #expect(present(10, at: 160_000) == .accepted(becameNewest: false))
        #expect(present(10, at: 160_001) == .superseded)
        #expect(present(20, at: 160_001) == .accepted(becameNewest: false))
    }

    @Test("a session that goes on renewing does not keep its old tokens alive")
    func chain() {
        for step in 0..<40 as Range<Int64> { _ = present(1000 * step, at: 50_000 * step) }
        #expect(present(1000 * 39, at: 50_000 * 39) == .accepted(becameNewest: false))
        #expect(present(1000 * 38, at: 50_000 * 39) == .accepted(becameNewest: false))
        #expect(present(1000 * 37, at: 50_000 * 39) == .accepted(becameNewest: false), "replaced 50 s ago")
        #expect(present(1000 * 36, at: 50_000 * 39) == .superseded, "replaced 100 s ago")
        #expect(present(0, at: 50_000 * 39) == .superseded)
    }

    @Test("what another node saw counts, and sessions do not touch each other")
    func learning() {
        rotation.learn(SessionRotation.Use(sessionID: "s", issued: 20, age: 500), now: 1500)
        #expect(present(10, at: 61_000) == .accepted(becameNewest: false))
        #expect(present(10, at: 61_001) == .superseded)
        #expect(present(10, at: 61_001, session: "t") == .accepted(becameNewest: true))
    }

    @Test("a late retry is refused and ends nothing; a copy that comes much later ends the session, once")
    func reuse() {
        _ = present(10, at: 0)
        _ = present(20, at: 100_000)
        #expect(present(10, at: 220_000) == .superseded)
        #expect(rotation.takeReused() == [])
        #expect(present(10, at: 220_001) == .superseded)
        #expect(present(10, at: 220_002) == .superseded)
        #expect(rotation.takeReused() == ["s"])
        #expect(rotation.takeReused() == [])
        rotation.putBackReused("s")
        #expect(rotation.takeReused() == ["s"], "it could not be ended")
    }

    @Test("a token that was good here because this node had not heard of its successor was reused as well")
    func ignorance() {
        // As after a restart: nothing is known.
        #expect(present(10, at: 1_000_000) == .accepted(becameNewest: true))
        rotation.learn(SessionRotation.Use(sessionID: "s", issued: 20, age: 120_500), now: 1_000_500)
        #expect(rotation.takeReused() == [], "for 120 s it may have been a late retry")
        #expect(present(10, at: 1_000_501) == .accepted(becameNewest: false), "grace from what was presented here")
        #expect(present(10, at: 1_000_000, session: "t") == .accepted(becameNewest: true))
        rotation.learn(SessionRotation.Use(sessionID: "t", issued: 20, age: 120_501), now: 1_000_500)
        #expect(rotation.takeReused() == ["t"])
        // The owner's own newest token, and one newer than that.
        #expect(present(30, at: 2_000_000, session: "u") == .accepted(becameNewest: true))
        rotation.learn(SessionRotation.Use(sessionID: "u", issued: 30, age: 900_000), now: 2_000_001)
        rotation.learn(SessionRotation.Use(sessionID: "u", issued: 20, age: 900_000), now: 2_000_001)
        rotation.learn(SessionRotation.Use(sessionID: "u", issued: 40, age: 0), now: 2_900_000)
        #expect(rotation.takeReused() == [])
    }

    @Test("what a node knows makes another know it")
    func memory() {
        for number in 0..<20 as Range<Int64> { _ = present(100 + number, at: number * 10_000, session: "s\(number)") }
        #expect(
            rotation.uses(within: 50_000, now: 190_000).map(\.sessionID).sorted() == [
                "s14", "s15", "s16", "s17", "s18", "s19",
            ])
        let other = SessionRotation(sessionsMax: 1000)
        for use in rotation.uses(within: .max, now: 190_000) { other.learn(use, now: 190_000) }
        #expect(other.sessionCount == 20)
        #expect(other.present(sessionID: "s0", issued: 99, now: 190_000).verdict == .superseded)
        #expect(other.present(sessionID: "s19", issued: 99, now: 190_000).verdict == .accepted(becameNewest: false))
        #expect(other.present(sessionID: "s0", issued: 100, now: 190_000).verdict == .accepted(becameNewest: false))
        other.learn(SessionRotation.Use(sessionID: "s1", issued: .max, age: .max), now: 190_000)
        other.learn(SessionRotation.Use(sessionID: "s2", issued: .min, age: .min), now: 190_000)
    }

    @Test(
        "who hears of a session later judges each older token by when that one was replaced",
        arguments: 1...20 as ClosedRange<UInt64>)
    func moments(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var (now, issued): (Int64, [Int64]) = (0, [])
        for step in 0..<60 as Range<Int64> {
            now += Int64.random(in: 0...(seed.isMultiple(of: 2) ? 5_000 : 30_000), using: &generator)
            issued.append(10 * step)
            _ = present(10 * step, at: now)
        }
        let known = rotation.uses(within: .max, now: now)
        #expect(known.count > 1 && known.count <= 34 && known.map(\.issued) == known.map(\.issued).sorted())
        #expect(rotation.uses(within: 20_000, now: now) == known.filter { $0.age <= 20_000 })
        // The newest token may come first, or one that nobody has presented yet; and twice the same is told.
        for first in [nil, issued.last, 10_000] as [Int64?] {
            let other = SessionRotation(sessionsMax: 1000)
            if let first { _ = other.present(sessionID: "s", issued: first, now: now) }
            for use in (known + known).shuffled(using: &generator) where seed > 10 { other.learn(use, now: now) }
            for use in known + known { other.learn(use, now: now) }
            for token in issued where token != issued.last {
                let expected = present(token, at: now)
                #expect(other.present(sessionID: "s", issued: token, now: now).verdict == expected, "\(token)")
            }
            #expect(other.uses(within: .max, now: now).count <= 35)
        }
    }

    @Test("the sessions used last are remembered, of more than that the oldest are forgotten")
    func bounded() {
        let small = SessionRotation(graceMilliseconds: 0, sessionsMax: 100)
        _ = small.present(sessionID: "used", issued: 20, now: 0)
        for number in 0..<1000 {
            _ = small.present(sessionID: "s\(number)", issued: 20, now: 1)
            _ = small.present(sessionID: "used", issued: 20, now: 1)
            #expect(small.sessionCount <= 100)
        }
        #expect(small.present(sessionID: "used", issued: 10, now: 2).verdict == .superseded)
        for number in 960..<1000 {
            #expect(small.present(sessionID: "s\(number)", issued: 10, now: 2).verdict == .superseded, "\(number)")
        }
        #expect(
            small.present(sessionID: "s0", issued: 10, now: 2).verdict == .accepted(becameNewest: true), "forgotten")
    }

    @Test("a new token is later than the one it replaces, even where that came from a clock ahead")
    func nextIssue() {
        #expect(rotation.nextIssue(of: "s", after: 10, now: 20) == 20)
        #expect(rotation.nextIssue(of: "s", after: 20, now: 20) == 21)
        #expect(rotation.nextIssue(of: "s", after: 5000, now: 20) == 5001)
        #expect(rotation.nextIssue(of: "s", after: .max, now: 20) == .max)
    }

    @Test("who asks twice at a time is not left with a token older than one from a clock that was ahead for a moment")
    func aheadForAMoment() {
        _ = rotation.present(sessionID: "s", issued: 10, now: 0)
        // Two requests with that token: one answer comes from a clock 1,000 s ahead, the other one from a right clock.
        let (ahead, right) = (rotation.nextIssue(of: "s", after: 10, now: 1_000_000), Int64(20))
        #expect(rotation.present(sessionID: "s", issued: ahead, now: 1).verdict == .accepted(becameNewest: true))
        let older = rotation.present(sessionID: "s", issued: right, now: 2)
        #expect(older == (.accepted(becameNewest: false), newest: ahead))
        let next = rotation.nextIssue(of: "s", after: right, now: 30)
        #expect(next == ahead + 1 && next == SessionRotation.nextIssue(after: older.newest, now: 30))
        #expect(rotation.present(sessionID: "s", issued: next, now: 100_000).verdict == .accepted(becameNewest: true))
    }

    @Test(
        "random presentations are judged as by a twin that remembers everything",
        arguments: 1...6 as ClosedRange<UInt64>)
    func twin(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let (grace, reuse): (Int64, Int64) = (1600, 2400)
        let rotation = SessionRotation(graceMilliseconds: grace, reuseMilliseconds: reuse, sessionsMax: 10)
        var history: [(issued: Int64, time: Int64)] = []
        var now: Int64 = 0
        for _ in 0..<400 {
            now += Int64.random(in: 0...(seed.isMultiple(of: 2) ? 60 : 600), using: &generator)
            let issued = max(0, now - Int64.random(in: 0...4000, using: &generator))
            let verdict = rotation.present(sessionID: "s", issued: issued, now: now).verdict
            let newer = history.filter { $0.issued > issued }
            let age = newer.map { now - $0.time }.max()
            switch age {
            case nil:
                let isKnown = history.contains { $0.issued == issued }
                #expect(verdict == .accepted(becameNewest: !isKnown))
            // Between fifteen sixteenths and the whole of the grace time either is right.
            case let age? where age <= grace - grace / 16: #expect(verdict == .accepted(becameNewest: false), "\(age)")
            case let age? where age > grace: #expect(verdict == .superseded, "\(age)")
            default: #expect(verdict != .accepted(becameNewest: true))
            }
            // Whatever is told to be reused was superseded for long.
            if rotation.takeReused() == ["s"] {
                #expect(age ?? 0 > reuse - grace / 16)
            } else if let age {
                #expect(age <= reuse)
            }
            history.append((issued, now))
        }
    }
}
