import Admission
import RaftCore
import Testing

@Suite("A container's limit is exact over all nodes (decision 0009)")
struct RateAccuracyTests {
    enum Pattern: String, CaseIterable {
        case evenly, oneNode, everySecond, everyFiveSeconds, everyTenSeconds

        var load: RateSimulation.Load {
            switch self {
            case .evenly: .evenly
            case .oneNode: .node(2)
            case .everySecond: .moving(everyMilliseconds: 1_000)
            case .everyFiveSeconds: .moving(everyMilliseconds: 5_000)
            case .everyTenSeconds: .moving(everyMilliseconds: 10_000)
            }
        }
    }

    private func run(
        _ pattern: Pattern, limit: UInt64, sharesMax: Double = 1.1001,
        _ change: (inout RateSimulation.Options) -> Void = { _ in }
    ) -> RateSimulation.Result {
        var options = RateSimulation.Options()
        options.limit = limit
        options.load = pattern.load
        options.seed = limit
        change(&options)
        let result = RateSimulation.run(options)
        #expect(result.sharesMax <= sharesMax, "\(pattern) \(limit): shares in force above the bound: \(result)")
        return result
    }

    /// Over any time no more was accepted than limit x (time + 1 s), and over the whole run no less than limit x time
    /// but for a part. A very low limit has five requests in place of a second's.
    private func expectExact(
        _ result: RateSimulation.Result, limit: UInt64, below: Double = 0.005
    ) {
        #expect(result.aheadMax <= max(1, 5 / Double(limit)) * 1.02, "\(result)")
        #expect(Double(result.accepted) >= result.expected * (1 - below) - 1, "\(result)")
    }

    @Test(
        "ten times the limit for 60 s: limit x time, less half a percent, to limit x (time + 1 s)",
        arguments: Pattern.allCases, [3, 40, 400] as [UInt64])
    func overload(pattern: Pattern, limit: UInt64) {
        let result = run(pattern, limit: limit)
        expectExact(result, limit: limit)
        #expect(result.unavailable <= 5, "\(result)")
    }

    @Test("an idle container's burst of a second's requests is served, at one node or over all", arguments: [3, 1])
    func burst(nodes: Int) {
        var bench = RateBench(limit: 40, nodes: nodes)
        for round in 0..<3 {
            // Idle for two seconds, or new.
            let begin = round * 10_000
            for millisecond in 0..<2_000 { bench.step(begin + millisecond) }
            func offer(_ count: Int, at millisecond: Int) -> (accepted: Int, refused: Int) {
                var waiting = (0..<count).map { $0 % nodes }
                var (accepted, refused) = (0, 0)
                for wait in 0..<100 {
                    bench.step(millisecond + wait)
                    waiting = waiting.filter { node in
                        switch bench.decide(node, millisecond + wait) {
                        case .accepted: accepted += 1
                        case .refused: refused += 1
                        case .needsShare: return true
                        }
                        return false
                    }
                }
                #expect(waiting.isEmpty, "a request waits for milliseconds")
                return (accepted, refused)
            }
            let burst = offer(40, at: begin + 2_000)
            // At each other node a request or two may be left that it was given and did not need.
            #expect(burst.accepted >= 40 - 2 * (nodes - 1), "round \(round): a second's worth")
            // A tenth of a second later a few more have been earned.
            let more = offer(40, at: begin + 2_100)
            #expect(more.accepted <= 9, "round \(round): \(more)")
        }
    }

    @Test("beside load below the limit a burst is served as far as the limit was not used")
    func burstBesideLoad() {
        var bench = RateBench(limit: 40, nodes: 3)
        var refused = 0
        for millisecond in 0..<10_000 {
            bench.step(millisecond)
            // Half the limit, spread over the nodes, and every two seconds twenty requests at once to one of them.
            if millisecond % 50 == 0, case .refused = bench.decide(millisecond / 50 % 3, millisecond) { refused += 1 }
            guard millisecond % 2_000 == 1_999 else { continue }
            for _ in 0..<20 { if case .refused = bench.decide(millisecond / 2_000 % 3, millisecond) { refused += 1 } }
        }
        #expect(refused == 0)
    }

    @Test(
        "what bursts leave unused is not saved twice: in the overload that follows no more than limit x (time + 1 s)",
        arguments: [(30, 400), (55, 950), (10, 100), (45, 700)], [1, 3])
    func burstsBeforeOverload(burst: (percent: Int, everyMilliseconds: Int), nodes: Int) {
        for (limit, pattern) in [(40, Pattern.evenly), (200, .everySecond), (200, .oneNode)] as [(UInt64, Pattern)] {
            var options = RateSimulation.Options()
            (options.limit, options.nodes, options.seconds) = (limit, nodes, 40)
            options.load = nodes == 1 ? .evenly : pattern.load
            options.bursts = (Int(limit) * burst.percent / 100, burst.everyMilliseconds, 30_000)
            let result = RateSimulation.run(options)
            #expect(result.aheadMax <= 1.02, "\(limit) \(pattern): \(result)")
        }
    }

    @Test("a limit of 10,000 is as exact", arguments: [Pattern.evenly, .everySecond])
    func highLimit(pattern: Pattern) {
        let result = run(pattern, limit: 10_000) {
            $0.seconds = 6
            $0.overload = 2
        }
        expectExact(result, limit: 10_000)
    }

    @Test("a limit of 1 is exceeded by a burst of five requests and no more", arguments: Pattern.allCases)
    func lowestLimit(pattern: Pattern) {
        let result = run(pattern, limit: 1)
        #expect((59...65).contains(result.accepted), "\(result)")
    }

    @Test("messages lost and repeated: at most 2 % less", arguments: Pattern.allCases)
    func badNetwork(pattern: Pattern) {
        let result = run(pattern, limit: 100) {
            $0.lossPercent = 5
            $0.duplicatePercent = 10
        }
        expectExact(result, limit: 100, below: 0.02)
    }

    @Test(
        "the ledger's leader dies and another leads 1.5 s later: at most 5 % less", arguments: Pattern.allCases,
        [false, true])
    func leaderDies(pattern: Pattern, nodeDies: Bool) {
        let result = run(pattern, limit: 100, sharesMax: 1.2001) {
            $0.leaderDiesAt = [20_333]
            $0.nodeDies = nodeDies
        }
        expectExact(result, limit: 100, below: 0.05)
    }

    /// Leaders that die in and after bursts, alone or with their node, which comes back before or after its shares have
    /// ended; another node is cut off meanwhile, messages are slow, lost and repeated.
    @Test("whatever fails, over any time no more is accepted than limit x (time + 1 s)", arguments: 201...260)
    func anyFault(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: values.indices, using: &generator)] }
        var options = RateSimulation.Options()
        (options.seed, options.seconds) = (seed, 30)
        options.nodes = pick([3, 3, 5])
        options.limit = pick([40, 40, 12, 200])
        options.overload = pick([0.6, 1.5, 10])
        options.load = pick([.evenly, .evenly, .node(0), .node(1), .moving(everyMilliseconds: 700)])
        options.delayMax = pick([5, 5, 120])
        options.lossPercent = pick([0, 0, 5])
        options.duplicatePercent = pick([0, 10])
        options.leaderDiesAt = (0..<5).map { 2_000 + $0 * 5_500 + Int.random(in: 0..<2_000, using: &generator) }
        options.electionMilliseconds = pick([1, 300, 1_500])
        options.nodeDies = pick([false, true, true])
        options.restartMilliseconds = pick([50, 250, 1_000, 3_000])
        if pick([false, true]) {
            options.bursts = (
                Int(options.limit) * pick([20, 60, 130]) / 100, pick([40, 400, 950, 2_100]), pick([15_000, 30_000])
            )
        } else {
            options.restsEveryMilliseconds = pick([nil, 700, 1_500])
        }
        if pick([false, true]) {
            options.cutNode = pick([0, 1, 2])
            let begin = Int.random(in: 1_000..<20_000, using: &generator)
            options.cut = begin..<(begin + pick([300, 1_500, 6_000]))
        }
        let result = RateSimulation.run(options)
        // A hundredth for clocks, and the request that is on its way.
        #expect(result.aheadMax <= 1.02, "\(options): \(result)")
    }

    @Test("a node is cut off for 10 s: at most 5 % less", arguments: [Pattern.evenly, .oneNode, .everyTenSeconds])
    func cutOff(pattern: Pattern) {
        let result = run(pattern, limit: 100) {
            $0.cutNode = 1
            $0.cut = 20_000..<30_000
        }
        expectExact(result, limit: 100, below: 0.05)
    }

    @Test("a node that is cut off with all the load accepts nothing beyond the life of its share")
    func cutOffWithAllLoad() {
        let result = run(.oneNode, limit: 400) {
            $0.cutNode = 2
            $0.cut = 20_000..<30_000
        }
        // Two seconds at the share it had.
        #expect((740...882).contains(result.bySecond[20] + result.bySecond[21]), "\(result)")
        #expect(result.bySecond[22...28].allSatisfy { $0 < 40 }, "\(result.bySecond)")
        #expect(result.bySecond[31...].allSatisfy { (350...441).contains($0) }, "\(result.bySecond)")
    }

    @Test(
        "no second has more than a tenth above the limit, the first one its burst besides", arguments: Pattern.allCases)
    func smooth(pattern: Pattern) {
        let result = run(pattern, limit: 400) { $0.seconds = 20 }
        #expect(result.bySecond.dropFirst().allSatisfy { $0 <= 441 }, "\(result.bySecond)")
        #expect(result.bySecond.first ?? 0 <= 800, "\(result.bySecond)")
    }

    @Test(
        "a new limit holds from the moment the directories know it",
        arguments: [(400, 40), (40, 400)] as [(UInt64, UInt64)])
    func changedLimit(from: UInt64, to: UInt64) {
        var options = RateSimulation.Options()
        options.limit = from
        options.limitChange = (at: 30_000, limit: to)
        let result = RateSimulation.run(options)
        let before = result.bySecond[..<30].reduce(0, +)
        #expect((30 * from..<31 * from + 4).contains(UInt64(before)), "\(result)")
        #expect(result.bySecond[31...].allSatisfy { Double($0) <= Double(to) * 1.11 }, "\(result.bySecond)")
    }

    @Test(
        "below the limit nobody is refused: half of it, evenly and at one node", arguments: [Pattern.evenly, .oneNode])
    func belowTheLimit(pattern: Pattern) {
        let result = run(pattern, limit: 400) { $0.overload = 0.5 }
        #expect(result.refused == 0, "\(result)")
        #expect(result.unavailable == 0, "\(result)")
    }

    @Test("a node with little demand is served beside one with too much")
    func lightBesideHeavy() {
        var bench = RateBench(limit: 40, nodes: 2)
        var light = (accepted: 0, refused: 0)
        for millisecond in 0..<20_000 {
            bench.step(millisecond)
            if millisecond % 3 == 0 { _ = bench.decide(0, millisecond) }
            // Two requests at once every 700 ms.
            if millisecond > 2_000, millisecond % 700 < 2 {
                if case .accepted = bench.decide(1, millisecond) { light.accepted += 1 } else { light.refused += 1 }
            }
        }
        #expect(light.accepted >= 40 && light.refused <= 10, "\(light)")
    }

    @Test("clients that come back when they were told find room")
    func promises() {
        var bench = RateBench(limit: 40, nodes: 3)
        // Sixty clients, each with one request at a time; whose is a retry is marked.
        var due: [Int: [(node: Int, isRetry: Bool)]] = [0: (0..<60).map { ($0 % 3, false) }]
        var (kept, broken, longest) = (0, 0, 0)
        for millisecond in 0..<30_000 {
            bench.step(millisecond)
            for request in due.removeValue(forKey: millisecond) ?? [] {
                switch bench.decide(request.node, millisecond) {
                case .accepted:
                    if request.isRetry, millisecond > 5_000 { kept += 1 }
                    due[millisecond + 1, default: []].append((request.node, false))
                case .refused(let wait):
                    if request.isRetry, millisecond > 5_000 { broken += 1 }
                    longest = max(longest, wait)
                    due[millisecond + wait, default: []].append((request.node, true))
                case .needsShare: due[millisecond + 5, default: []].append((request.node, false))
                }
            }
        }
        #expect(kept > 900 && broken * 4 < kept, "kept \(kept), broken \(broken), longest wait \(longest)")
        #expect(longest < 4_000, "sixty clients at 40 a second wait 1.5 s each")
    }
}
