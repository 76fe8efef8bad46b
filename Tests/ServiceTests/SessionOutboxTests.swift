import Admission
import Testing
import Wire

@testable import Service

@Suite("Telling other nodes which web auth tokens are the newest")
struct SessionOutboxTests {
    /// Two nodes' ends of one connection, and what the second one learned.
    private struct Pair {
        var one = SessionOutbox(boot: 1)
        var two = SessionOutbox(boot: 2)

        /// Hands over what the first has to tell, or loses it.
        /// - Returns: from how long ago the second asks then.
        mutating func tell(now: Int64, isLost: Bool = false) -> [Int64] {
            for case .sessions(let news) in one.next(now: now) where !isLost { two.heard(news, now: now) }
            return ask(now: now).map(\.within)
        }

        /// What the second asks for.
        mutating func ask(now: Int64) -> [(within: Int64, gap: UInt64?)] {
            two.next(now: now).compactMap {
                if case .wantsSessions(let within, let gap) = $0 { (within, gap) } else { nil }
            }
        }
    }

    private func settled(at now: Int64) -> Pair {
        var pair = Pair()
        #expect(pair.tell(now: now) == [.max], "it has just started, and knows nothing")
        pair.two.heard(SessionNews(uses: [], boot: 0, number: 0, isLast: true), now: now)
        return pair
    }

    @Test("uses are told once, the newest of each session, with their age")
    func uses() {
        var outbox = SessionOutbox(boot: 1)
        outbox.note("s", issued: 20, now: 1_000)
        outbox.note("s", issued: 10, now: 1_010)
        let use = SessionRotation.Use(sessionID: "s", issued: 20, age: 50)
        #expect(outbox.next(now: 1_050) == [.sessions(SessionNews(uses: [use], boot: 1, number: 1))])
        #expect(outbox.next(now: 1_150) == [])
        #expect(outbox.next(now: 2_050) == [.sessions(SessionNews(uses: [], boot: 1, number: 2))], "it lives")
    }

    @Test("a node asks again until what it missed before it started was answered")
    func start() {
        var pair = Pair()
        #expect(pair.tell(now: 1_000) == [.max])
        #expect(pair.tell(now: 2_500) == [], "the answer may be underway")
        #expect(pair.tell(now: 4_000) == [.max])
        pair.two.heard(SessionNews(uses: [], boot: 0, number: 0), now: 4_100)
        #expect(pair.tell(now: 7_000) == [.max], "that was not the last part")
        pair.two.heard(SessionNews(uses: [], boot: 0, number: 0, isLast: true), now: 7_100)
        #expect(pair.tell(now: 20_000) == [])
    }

    @Test("a lost message is noticed with the next one, and asked for from the last that came")
    func gap() {
        var pair = settled(at: 1_000)
        #expect(pair.tell(now: 2_000) == [])
        pair.one.note("s", issued: 20, now: 2_500)
        #expect(pair.tell(now: 2_500, isLost: true) == [])
        #expect(pair.tell(now: 60_000) == [58_000 + 10_000])
    }

    @Test("what was missed before a first gap is still asked for after a second one")
    func secondGap() {
        var pair = settled(at: 1_000)
        #expect(pair.tell(now: 2_000) == [])
        #expect(pair.tell(now: 3_000, isLost: true) == [])
        #expect(pair.tell(now: 60_000) == [58_000 + 10_000])
        #expect(pair.tell(now: 61_000, isLost: true) == [])
        #expect(pair.tell(now: 62_000) == [60_000 + 10_000])
    }

    @Test("an answer to what was asked before a second gap leaves that to be asked for")
    func answerBeforeSecondGap() {
        // As a build answers that does not say about which gap.
        let answer = SessionNews(uses: [], boot: 0, number: 0, isLast: true)
        var pair = settled(at: 1_000)
        #expect(pair.tell(now: 2_000) == [])
        #expect(pair.tell(now: 3_000, isLost: true) == [])
        #expect(pair.tell(now: 4_000) == [2_000 + 10_000])
        #expect(pair.tell(now: 5_000, isLost: true) == [])
        for case .sessions(let news) in pair.one.next(now: 6_000) { pair.two.heard(news, now: 6_000) }
        pair.two.heard(answer, now: 6_010)
        #expect(pair.ask(now: 6_020).map(\.within) == [4_020 + 10_000])
        pair.two.heard(answer, now: 6_500)
        #expect(pair.tell(now: 20_000) == [])
    }

    @Test("an answer about a first gap that comes after a second one was asked for again closes only its own")
    func lateAnswer() throws {
        func answer(to question: (within: Int64, gap: UInt64?)) -> SessionNews {
            SessionNews(uses: [], boot: 0, number: 0, isLast: true, gap: question.gap)
        }
        var pair = settled(at: 1_000)
        #expect(pair.tell(now: 2_000) == [])
        #expect(pair.tell(now: 3_000, isLost: true) == [])
        for case .sessions(let news) in pair.one.next(now: 4_000) { pair.two.heard(news, now: 4_000) }
        let first = try #require(pair.ask(now: 4_000).first)
        #expect(pair.tell(now: 5_000, isLost: true) == [])
        #expect(pair.tell(now: 6_000) == [4_000 + 10_000])
        #expect(pair.tell(now: 9_000) == [7_000 + 10_000], "no answer came in time")
        pair.two.heard(answer(to: first), now: 9_100)
        let second = try #require(pair.ask(now: 12_000).first, "that was an answer to the first question")
        #expect(second.within == 10_000 + 10_000)
        pair.two.heard(answer(to: second), now: 12_100)
        #expect(pair.tell(now: 20_000) == [])
    }

    @Test("an answer of which a part is lost closes no gap, and the next one does", arguments: 0..<3)
    func lostPart(_ lost: Int) throws {
        let use = SessionRotation.Use(sessionID: "s", issued: 1, age: 1)
        func answer(_ id: UInt64, to question: (within: Int64, gap: UInt64?)) -> [SessionNews] {
            (0..<3).map { part in
                SessionNews(
                    uses: [use, use], boot: id, number: 0, isLast: part == 2, gap: question.gap,
                    before: UInt64(2 * part))
            }
        }
        var pair = settled(at: 1_000)
        #expect(pair.tell(now: 2_000, isLost: true) == [])
        for case .sessions(let news) in pair.one.next(now: 3_000) { pair.two.heard(news, now: 3_000) }
        let question = try #require(pair.ask(now: 3_000).first)
        for (part, news) in answer(7, to: question).enumerated() where part != lost {
            pair.two.heard(news, now: 3_100)
        }
        // The end of one answer does not go with the beginning of another.
        let again = try #require(pair.ask(now: 6_000).first)
        pair.two.heard(answer(8, to: again)[0], now: 6_100)
        let third = try #require(pair.ask(now: 9_000).first)
        for news in answer(9, to: third).dropFirst() { pair.two.heard(news, now: 9_100) }
        let last = try #require(pair.ask(now: 12_000).first)
        #expect(last.gap == question.gap)
        for news in answer(10, to: last) { pair.two.heard(news, now: 12_100) }
        #expect(pair.tell(now: 20_000) == [])
    }

    @Test("an answer that is lost keeps no later one from counting")
    func lostAnswer() {
        var pair = settled(at: 1_000)
        #expect(pair.tell(now: 2_000) == [])
        for lost in [3_000, 5_000] as [Int64] {
            #expect(pair.tell(now: lost, isLost: true) == [])
            #expect(pair.tell(now: lost + 1_000).count == 1)
        }
        #expect(pair.tell(now: 9_000) == [7_000 + 10_000])
        pair.two.heard(SessionNews(uses: [], boot: 0, number: 0, isLast: true), now: 9_100)
        #expect(pair.tell(now: 20_000) == [])
    }

    @Test("a node that restarted begins its numbers anew, and is asked for what it may have told before")
    func restart() {
        var pair = settled(at: 1_000)
        pair.one = SessionOutbox(boot: 3)
        #expect(pair.tell(now: 9_000) == [8_000 + 10_000])
    }

    @Test("what is too much to be told leaves a gap")
    func overflow() {
        var pair = settled(at: 1_000)
        for number in 0..<10_001 { pair.one.note("s\(number)", issued: 1, now: 1_500) }
        #expect(pair.tell(now: 2_000) == [11_000])
    }

    @Test("messages come through as they were sent")
    func wire() throws {
        let use = SessionRotation.Use(sessionID: "s", issued: -5, age: 7)
        let messages: [NodeMessage] = [
            .sessions(SessionNews(uses: [use, use], boot: 4, number: 9, isLast: true)),
            .sessions(SessionNews(uses: [], boot: 0, number: 0)), .wantsSessions(within: .max, gap: nil),
            .wantsSessions(within: 5, gap: .max), .sessions(SessionNews(uses: [], boot: 0, number: 0, gap: 7)),
            .sessions(SessionNews(uses: [use], boot: 0, number: 0, isLast: true, gap: 7, before: 5_000)),
            .trace(id: "a", text: "b"),
        ]
        for message in messages { #expect(try NodeMessage(decoding: message.encoded()) == message) }
        for verdict in [.new, .used, .tooOld, .ahead(milliseconds: 12)] as [ReplayGuard.Verdict] {
            let answer = PeerExchange.SignatureAnswer(verdict: verdict)
            #expect(try PeerExchange.SignatureAnswer(decoding: answer.encoded()) == answer)
        }
    }
}
