import Admission
import RaftCore

/// Limiters and a ledger in virtual time, a millisecond a step: messages take 1 to 5 ms and may be lost or come twice,
/// each node's clock starts elsewhere and runs a little wrong. Clients send at a fixed mean rate, whatever they are
/// told.
struct RateSimulation {
    /// Where requests go.
    enum Load {
        case evenly
        case node(Int)
        /// All to one node, the next one after so many milliseconds.
        case moving(everyMilliseconds: Int)
    }

    struct Options {
        var nodes = 3
        var limit: UInt64 = 400
        /// Requests offered, as a multiple of the limit.
        var overload = 10.0
        /// Until some moment so many requests come at once, in place of the overload, and again after a while.
        var bursts: (count: Int, everyMilliseconds: Int, untilMillisecond: Int)?
        /// Whether nobody asks in every other time of so many milliseconds.
        var restsEveryMilliseconds: Int?
        var load = Load.evenly
        var seconds = 60
        var seed: UInt64 = 1
        var lossPercent = 0
        var duplicatePercent = 0
        /// When the ledger's leader dies; another leads after `electionMilliseconds`.
        var leaderDiesAt: [Int] = []
        var electionMilliseconds = 1_500
        /// Whether the node dies with it, and when it comes back.
        var nodeDies = false
        var restartMilliseconds = 5_000
        /// The longest that a message takes.
        var delayMax = 5
        /// A node that hears and is heard by nobody in this time, but goes on serving clients.
        var cutNode: Int?
        var cut: Range<Int> = 0..<0
        /// Changes of the limit: from this millisecond on, this limit.
        var limitChange: (at: Int, limit: UInt64)?
    }

    struct Result: CustomStringConvertible {
        var accepted = 0
        var refused = 0
        var unavailable = 0
        var bySecond: [Int] = []
        /// The highest sum of shares that nodes held at the same time, as a part of the limit.
        var sharesMax = 0.0
        var reports = 0
        var expected = 0.0
        /// The most that was accepted in any time beyond limit x time, in seconds of the limit.
        var aheadMax = 0.0
        /// In requests, at this moment.
        fileprivate var ahead = 0.0

        /// Accepted in comparison with limit x time; 0: exact.
        var error: Double { Double(accepted) / expected - 1 }

        var description: String {
            "accepted \(accepted) of \(expected), \(Int(error * 10_000)) / 10,000 off, seconds \(bySecond.min() ?? 0) to "
                + "\(bySecond.max() ?? 0), 503 \(unavailable), shares \(Int(sharesMax * 100)) %, reports \(reports), "
                + "ahead \(Int(aheadMax * 1_000)) ms"
        }
    }

    private struct Node {
        var limiter: RateLimiter
        var boot: UInt64
        let clockOffset: UInt64
        let clockPace: UInt64
        var waiting: [Int] = []
        var deadUntil = 0

        func clock(_ millisecond: Int) -> UInt64 {
            clockOffset + UInt64(millisecond) * 1_000_000 / 1_000 * clockPace
        }
    }

    private enum Message {
        case report(RateReport, from: Int, sentAt: UInt64)
        case grant(RateGrant, to: Int, boot: UInt64, sentAt: UInt64)
    }

    private let options: Options
    private var generator: SplitMix64
    private var nodes: [Node] = []
    private var ledger = RateLedger()
    private var leader: Int? = 0
    /// Who leads after the leader that died.
    private var next = 0
    private var term: UInt64 = 1
    private var leadingSince: UInt64
    private var mail: [Int: [Message]] = [:]
    private var nextArrival = 0.0
    private var result = Result()
    private let key = RateKey(container: "iCloud.example", kind: .requests)

    init(_ options: Options) {
        self.options = options
        generator = SplitMix64(seed: options.seed)
        for number in 0..<options.nodes {
            nodes.append(
                Node(
                    limiter: RateLimiter(key: key), boot: generator.next(),
                    clockOffset: UInt64(number + 1) * 1_000_000_000_000,
                    // A thousandth fast or slow.
                    clockPace: 999 + UInt64(number % 3)))
        }
        // It has led for long.
        leadingSince = nodes[0].clock(0) - 100_000_000_000
    }

    static func run(_ options: Options) -> Result {
        var simulation = RateSimulation(options)
        for millisecond in 0..<(options.seconds * 1_000) { simulation.step(millisecond) }
        return simulation.result
    }

    private func limit(at millisecond: Int) -> UInt64 {
        if let change = options.limitChange, millisecond >= change.at { return change.limit }
        return options.limit
    }

    private mutating func step(_ millisecond: Int) {
        if millisecond % 1_000 == 0 { result.bySecond.append(0) }
        result.expected += Double(limit(at: millisecond)) / 1_000
        // The ledger's clock, the first node's, runs a thousandth wrong.
        result.ahead = max(0, result.ahead - Double(limit(at: millisecond)) / 1_000 * 1.001)
        fail(millisecond)
        for message in mail.removeValue(forKey: millisecond) ?? [] { deliver(message, millisecond) }
        for number in nodes.indices where (millisecond + 7 * number) % 10 == 0 { report(number, millisecond) }
        for _ in 0..<arrivals(at: millisecond) { request(target(millisecond), millisecond) }
        result.aheadMax = max(result.aheadMax, result.ahead / Double(limit(at: millisecond)))
        guard millisecond % 5 == 0 else { return }
        var shares = 0.0
        for node in nodes where millisecond >= node.deadUntil {
            shares += Double(node.limiter.state(now: node.clock(millisecond)).microRate) / 1e6
        }
        result.sharesMax = max(result.sharesMax, shares / Double(limit(at: millisecond)))
    }

    private mutating func fail(_ millisecond: Int) {
        for number in nodes.indices where millisecond == nodes[number].deadUntil && millisecond > 0 {
            nodes[number].limiter = RateLimiter(key: key, now: nodes[number].clock(millisecond))
            nodes[number].boot = generator.next()
            nodes[number].waiting = []
        }
        if options.leaderDiesAt.contains(millisecond), let dead = leader {
            if options.nodeDies { nodes[dead].deadUntil = millisecond + options.restartMilliseconds }
            next = (dead + 1) % nodes.count
            leader = nil
        } else if options.leaderDiesAt.contains(millisecond - options.electionMilliseconds) {
            (leader, term, ledger) = (next, term + 1, RateLedger())
            leadingSince = nodes[next].clock(millisecond)
        }
    }

    /// How many requests come in this millisecond: the distance between two is anything up to twice the mean.
    private mutating func arrivals(at millisecond: Int) -> Int {
        if let bursts = options.bursts, millisecond < bursts.untilMillisecond {
            nextArrival = Double(millisecond + 1)
            return millisecond % bursts.everyMilliseconds == 0 ? bursts.count : 0
        }
        if let rest = options.restsEveryMilliseconds, millisecond / rest % 2 == 1 {
            nextArrival = Double(millisecond + 1)
            return 0
        }
        let distance = 1_000 / (Double(limit(at: millisecond)) * options.overload)
        var count = 0
        while nextArrival < Double(millisecond + 1) {
            count += 1
            nextArrival += Double(generator.next() >> 11) * 0x1p-53 * 2 * distance
        }
        return count
    }

    private mutating func target(_ millisecond: Int) -> Int {
        var number =
            switch options.load {
            case .evenly: Int.random(in: 0..<nodes.count, using: &generator)
            case .node(let node): node
            case .moving(let period): millisecond / period % nodes.count
            }
        while millisecond < nodes[number].deadUntil { number = (number + 1) % nodes.count }
        return number
    }

    private mutating func request(_ number: Int, _ millisecond: Int) {
        switch nodes[number].limiter.decide(now: nodes[number].clock(millisecond)) {
        case .accepted: accept()
        case .refused: result.refused += 1
        case .needsShare:
            nodes[number].waiting.append(millisecond)
            _ = nodes[number].limiter.beginWait()
            report(number, millisecond)
        }
    }

    private mutating func accept() {
        result.accepted += 1
        result.ahead += 1
        result.bySecond[result.bySecond.count - 1] += 1
    }

    private mutating func report(_ number: Int, _ millisecond: Int) {
        let node = nodes[number]
        guard millisecond >= node.deadUntil else { return }
        // A request waits 60 ms for a share, then it gets a 503.
        let given = node.waiting.prefix { $0 < millisecond - 60 }.count
        result.unavailable += given
        nodes[number].waiting.removeFirst(given)
        for _ in 0..<given { nodes[number].limiter.endWait() }
        let now = node.clock(millisecond)
        guard
            let report = node.limiter.report(
                node: UInt64(number), boot: node.boot, limit: limit(at: millisecond), now: now)
        else { return }
        result.reports += 1
        guard let leader else { return node.limiter.noteLost(sentAt: now) }
        post(.report(report, from: number, sentAt: now), from: number, to: leader, millisecond)
    }

    private mutating func post(_ message: Message, from: Int, to: Int, _ millisecond: Int) {
        if from != to, let cut = options.cutNode, cut == from || cut == to, options.cut.contains(millisecond) { return }
        if from != to, Int.random(in: 0..<100, using: &generator) < options.lossPercent { return }
        let copies = Int.random(in: 0..<100, using: &generator) < options.duplicatePercent ? 2 : 1
        for copy in 0..<copies {
            let delay = from == to ? 1 : Int.random(in: 1...options.delayMax, using: &generator) + copy * 50
            mail[millisecond + delay, default: []].append(message)
        }
    }

    private mutating func deliver(_ message: Message, _ millisecond: Int) {
        switch message {
        case .report(let report, let number, let sentAt):
            guard let leader, millisecond >= nodes[leader].deadUntil else { return }
            let grant = ledger.take(
                report, in: RateReign(term: term, since: leadingSince), now: nodes[leader].clock(millisecond))
            post(
                .grant(grant, to: number, boot: nodes[number].boot, sentAt: sentAt), from: leader, to: number,
                millisecond)
        case .grant(let grant, let number, let boot, let sentAt):
            guard nodes[number].boot == boot else { return }
            let now = nodes[number].clock(millisecond)
            if nodes[number].limiter.take(grant, sentAt: sentAt, now: now) { report(number, millisecond) }
            guard grant.microRate > 0 else { return }
            let waiting = nodes[number].waiting
            nodes[number].waiting = []
            for _ in waiting {
                nodes[number].limiter.endWait()
                switch nodes[number].limiter.decide(now: now, isAgain: true) {
                case .accepted: accept()
                case .refused: result.refused += 1
                case .needsShare:
                    nodes[number].waiting.append(millisecond)
                    _ = nodes[number].limiter.beginWait()
                }
            }
            if !nodes[number].waiting.isEmpty { report(number, millisecond) }
        }
    }
}
