import Admission

/// What one other node is to be told of sessions, and what was heard from it. A value; time in milliseconds is passed
/// in.
///
/// Messages are numbered, and one goes out each second even if there is nothing to tell, so that a node notices within
/// a moment that it missed some: because it was cut off, or had not started yet. It then asks for all that it may have
/// missed, and asks again until it got an answer. So nothing is kept for nodes that cannot be reached.
struct SessionOutbox: Sendable {
    /// Uses that wait to be told. Beyond that they are dropped and a number is left out: the other node asks for them.
    private static let usesMax = 10_000
    /// After how long a message goes out that tells nothing.
    private static let idleMilliseconds: Int64 = 1_000
    /// How long an answer is waited for.
    private static let answerMilliseconds: Int64 = 3_000
    /// How much further back is asked for than the last message: messages take their time, and clocks differ in speed.
    private static let marginMilliseconds: Int64 = 10_000

    private let boot: UInt64
    private var number: UInt64 = 0
    private var toldAt: Int64?
    /// The newest of each session, with when it was used.
    private var waiting: [String: (issued: Int64, time: Int64)] = [:]

    private var heardBoot: UInt64 = 0
    private var heardNumber: UInt64 = 0
    private var heardAt: Int64?
    /// Since when something may have been missed; nil: nothing was.
    private var missingSince: Int64?
    private var askedAt: Int64?

    /// - Parameter boot: random, not 0.
    init(boot: UInt64) { self.boot = boot }

    /// A session's newest token was presented here.
    mutating func note(_ sessionID: String, issued: Int64, now: Int64) {
        if waiting.count >= Self.usesMax {
            waiting = [:]
            number += 1
        }
        if let before = waiting[sessionID], before.issued >= issued { return }
        waiting[sessionID] = (issued, now)
    }

    /// What is to be told now, if anything.
    mutating func next(now: Int64) -> [NodeMessage] {
        var messages: [NodeMessage] = []
        let isDue = toldAt.map { now - $0 >= Self.idleMilliseconds } ?? true
        if isDue || !waiting.isEmpty {
            number += 1
            toldAt = now
            let uses = waiting.map {
                SessionRotation.Use(sessionID: $0.key, issued: $0.value.issued, age: now - $0.value.time)
            }
            waiting = [:]
            messages.append(.sessions(SessionNews(uses: uses, boot: boot, number: number)))
        }
        if let missingSince, askedAt.map({ now - $0 >= Self.answerMilliseconds }) ?? true {
            askedAt = now
            let within = missingSince == .min ? Int64.max : now - missingSince + Self.marginMilliseconds
            messages.append(.wantsSessions(within: within))
        }
        return messages
    }

    /// Takes note of what the other node told.
    mutating func heard(_ news: SessionNews, now: Int64) {
        guard news.number > 0 else {
            if news.isLast { (missingSince, askedAt) = (nil, nil) }
            return
        }
        let isSame = news.boot == heardBoot
        // Overtaken by a later one, which was taken as a gap.
        if isSame, news.number <= heardNumber { return }
        if !isSame || news.number > heardNumber + 1 {
            let since = heardAt ?? .min
            missingSince = min(missingSince ?? since, since)
            // An answer that is underway may have begun before.
            askedAt = nil
        }
        (heardBoot, heardNumber, heardAt) = (news.boot, news.number, now)
    }
}
