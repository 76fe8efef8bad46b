import ArgumentParser
import RecordModel
import Testing

@testable import zonekeeper

@Suite("Load: profiles, mixes, nodes, and what clients do when they are told to slow down")
struct LoadPlanTests {
    private func arrivals(_ profile: LoadProfile, _ spacing: ArrivalSchedule.Spacing, seconds: Double) -> [Double] {
        var schedule = ArrivalSchedule(
            profile: profile, spacing: spacing, bound: LoadBound(seconds: seconds), seed: 11)
        var times: [Double] = []
        while let offset = schedule.next() { times.append(Double(offset) / 1_000_000_000) }
        return times
    }

    @Test(
        "a ramp offers in each second what its rate is then, evenly or not", arguments: ArrivalSchedule.Spacing.allCases
    )
    func ramp(spacing: ArrivalSchedule.Spacing) throws {
        let profile = try #require(LoadProfileText(argument: "ramp:100-500")).profile(rate: 1, seconds: 10)
        let times = arrivals(profile, spacing, seconds: 10)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 })
        for second in 0..<10 {
            let count = times.count { Int($0) == second }
            let expected = 100 + 40 * (Double(second) + 0.5)
            // Five standard deviations of Poisson counts; even arrivals are within one.
            let slack = spacing == .even ? 1.01 : 5 * expected.squareRoot()
            #expect(abs(Double(count) - expected) <= slack, "second \(second): \(count) for \(expected)")
        }
    }

    @Test("an even ramp from a rate of 0 begins at once")
    func rampFromZero() throws {
        let profile = try #require(LoadProfileText(argument: "ramp:0-20")).profile(rate: 1, seconds: 10)
        let times = arrivals(profile, .even, seconds: 10)
        #expect(times.count == 100 && times.first == 0)
    }

    @Test("steps share the duration equally, a spike takes the middle fifth, and both jump at once")
    func steps() throws {
        let steps = try #require(LoadProfileText(argument: "step:10,20,40")).profile(rate: 1, seconds: 6)
        let times = arrivals(steps, .even, seconds: 6)
        #expect(times.count == 2 * (10 + 20 + 40))
        #expect(times.count { $0 < 2 } == 20 && times.count { $0 >= 4 } == 80)
        let spike = try #require(LoadProfileText(argument: "spike:100")).profile(rate: 10, seconds: 10)
        #expect([0.0, 3.9, 4.1, 5.9, 6.1].map(spike.rate) == [10, 10, 100, 100, 10])
        #expect(arrivals(spike, .even, seconds: 10).count { (4.0..<6.0).contains($0) } == 200)
    }

    @Test("time(ofArrivals:) is the inverse of the rate's integral, also from and to a rate of 0")
    func inverse() {
        let profile = LoadProfile(
            name: "test",
            pieces: [
                .init(seconds: 2, from: 0, to: 30), .init(seconds: 3, from: 30, to: 0),
                .init(seconds: 1, from: 5, to: 5),
            ])
        let steps = 60_000
        var sum = 0.0
        for step in 0..<steps {
            let time = (Double(step) + 0.5) / 10_000
            sum += profile.rate(at: time) / 10_000
            if step % 997 == 0, sum > 0.01 { #expect(abs(profile.time(ofArrivals: sum) - time) < 0.01) }
        }
        #expect(profile.time(ofArrivals: 30 + 45 + 5 + 10) == 8, "the last rate goes on")
    }

    @Test(
        "what is no profile is refused",
        arguments: [
            "", "ramp", "ramp:5", "ramp:5-0", "ramp:-5-9", "step:5", "step:5,0", "spike", "spike:0", "soak:1", "x:1",
            "ramp:a-b",
        ])
    func badProfiles(text: String) { #expect(LoadProfileText(argument: text) == nil) }

    @Test("a mix draws each operation as often as its weight says, and the same again from the same seed")
    func mixes() throws {
        let mix = try #require(LoadMix(argument: "create:1,update:2,read:7"))
        var random = LoadRandom(seed: 5)
        let draws = (0..<20_000).map { _ in mix.choice.draw(&random) }
        let shares = (0..<3).map { index in Double(draws.count { $0 == index }) / 20_000 }
        for (share, expected) in zip(shares, [0.1, 0.2, 0.7]) { #expect(abs(share - expected) < 0.015) }
        var again = LoadRandom(seed: 5)
        #expect(draws == (0..<20_000).map { _ in mix.choice.draw(&again) })
        for wrong in ["", "write", "read:0", "read:-1", "read:x", "read,read", "read:1:2", "read,", "cloudkit"] {
            #expect(LoadMix(argument: wrong) == nil, "\(wrong)")
        }
    }

    @Test("cloudkit-2019 has 8.5 records a transaction, a median of 7 KB and a 99th percentile of 36 KB")
    func cloudKit2019() throws {
        var random = LoadRandom(seed: 9)
        let records = (0..<20_000).map { _ in TransactionSizes.records(&random) }
        #expect(abs(Double(records.reduce(0, +)) / 20_000 - 8.5) < 0.15)
        let bytes = (0..<20_000).map { _ in TransactionSizes.bytes(&random) }.sorted()
        #expect(abs(Double(bytes[10_000]) / 7_000 - 1) < 0.03)
        #expect(abs(Double(bytes[19_800]) / 36_000 - 1) < 0.08)
        // The bodies have what the figures say: text in the records, and nothing that the server's parser refuses.
        let place = LoadPlace(
            container: "c", environment: "development", database: "public", zones: [LoadPlace.defaultZone])
        let settings = LoadSettings(
            mix: .cloudKit2019, pace: .closed(concurrency: 1), bound: LoadBound(), place: place, connections: 1)
        let bodies = LoadBodies(.transaction, of: settings).ring
        for body in bodies.prefix(50) { _ = try ModifyRecordsRequest(body: body.bytes) }
        let sizes = bodies.map(\.bytes.count).sorted()
        #expect((7_000...10_500).contains(sizes[sizes.count / 2]), "JSON around 7 KB of text")
    }

    @Test("each operation's body is one that the server's parsers take")
    func bodies() throws {
        let records = LoadRecords(type: "Load", zone: "load-1")
        let update = try ModifyRecordsRequest(body: records.update(7, version: 1))
        #expect(update.operations.map(\.kind) == [.forceUpdate])
        #expect(update.operations[0].recordName == "load-0000000007" && update.zoneID.name == "load-1")
        let sync = try ZoneChangesRequestForm(body: records.sync(since: "dG9rZW4="))
        #expect(sync.zones.map(\.zoneID.name) == ["load-1"] && sync.zones[0].syncToken == "dG9rZW4=")
        #expect(try ZoneChangesRequestForm(body: records.sync(since: nil)).zones[0].syncToken == nil)
    }

    @Test("requests go round the nodes, to one, or to one after the other by the clock")
    func nodes() throws {
        let second: UInt64 = 1_000_000_000
        #expect((0..<6).map { NodePattern.even.target(turn: $0, nanoseconds: 0, count: 3) } == [0, 1, 2, 0, 1, 2])
        #expect((0..<3).map { NodePattern.one.target(turn: $0, nanoseconds: 9 * second, count: 3) } == [0, 0, 0])
        let moving = try #require(NodePattern(argument: "moving:5"))
        let times: [UInt64] = [0, 5 * second - 1, 5 * second, 14 * second, 15 * second]
        #expect(times.map { moving.target(turn: 4, nanoseconds: $0, count: 3) } == [0, 0, 1, 2, 0])
        for wrong in ["", "two", "moving", "moving:0", "moving:1e-300", "moving:x", "even:1"] {
            #expect(NodePattern(argument: wrong) == nil)
        }
        #expect(moving.name == "moving:5")
    }

    @Test("clients ignore, wait exactly as told, or back off with a pause that doubles up to ten seconds")
    func behaviours() {
        #expect(ThrottleBehaviour.ignore.pause(attempt: 0, retryAfter: 5, unit: 0) == nil)
        #expect(ThrottleBehaviour.honour.pause(attempt: 3, retryAfter: 123_456_789, unit: 0.7) == 123_456_789)
        #expect(ThrottleBehaviour.honour.pause(attempt: 0, retryAfter: nil, unit: 0) == nil, "nothing was said")
        let longest = (0..<12).map { ThrottleBehaviour.backOff.pause(attempt: $0, retryAfter: 1, unit: 1) ?? 0 }
        #expect(longest.prefix(4) == [100_000_000, 200_000_000, 400_000_000, 800_000_000])
        #expect(longest.suffix(4).allSatisfy { $0 == 10_000_000_000 })
        #expect(ThrottleBehaviour.backOff.pause(attempt: 1, retryAfter: nil, unit: 0) == 100_000_000, "half at least")
    }

    @Test("the queue gives items by their time, and those of one time as they came")
    func dueQueue() {
        var random = LoadRandom(seed: 8)
        var queue = DueQueue<Int>()
        var naive: [(due: UInt64, item: Int)] = []
        var taken: [Int] = []
        var expected: [Int] = []
        for item in 0..<2_000 {
            let due = UInt64(random.below(50))
            queue.add(item, due: due)
            naive.append((due, item))
            guard item % 3 == 0 else { continue }
            let now = UInt64(random.below(40))
            while let (_, item) = queue.pop(by: now) { taken.append(item) }
            let ready = naive.filter { $0.due <= now }.sorted { ($0.due, $0.item) < ($1.due, $1.item) }
            expected += ready.map(\.item)
            naive.removeAll { $0.due <= now }
            #expect(queue.nextDue == naive.map(\.due).min())
        }
        #expect(taken == expected && queue.count == naive.count)
    }

    @Test("options that say one thing twice, or lack the other half, are refused")
    func options() throws {
        func fails(_ arguments: String) -> Bool {
            (try? LoadCommand.parse(arguments.split(separator: " ").map(String.init))) == nil
        }
        for wrong in [
            "--rate 5 --concurrency 2", "--profile ramp:1-5 --rate 3", "--profile soak",
            "--operation read --mix read:1",
            "--zones 3", "--zones 3 --zone a --database private", "--users 5", "--operation sync", "--report a.pdf",
            "--output a", "--report a.csv", "--limit 0", "--tolerance 0", "--find-limit --expect-limit 4",
            "--nodes all", "--operation asset-upload --zones 2 --database private", "--asset-size 1MB",
            "--operation asset-upload --asset-size 51MB", "--operation asset-upload --asset-size 0",
            "--operation asset-upload --find-limit", "--operation asset-upload --duration 900",
            "--operation asset-download --duration 3600", "--find-limit --duration 4.9",
        ] { #expect(fails(wrong), "\(wrong)") }
        let command = try LoadCommand.parse(
            "--rate 400/s --expect-limit 40 --tolerance 5% --nodes moving:5 --output a.json --output b.CSV --report c.html"
                .split(separator: " ").map(String.init))
        #expect(command.limits.expectation == LoadReport.Expectation(limit: 40, tolerance: 0.05))
        #expect(command.files.map(\.form) == [.json, .csv, .html])
        #expect(try LoadCommand.parse(["--find-limit", "--duration", "5"]).pace.duration == 5)
        #expect(try LoadCommand.parse(["--profile", "soak", "--rate", "5"]).pace.bound.seconds == 3_600)
        #expect(try LoadCommand.parse(["--limit", "40"]).limits.expectation == .init(limit: 40, tolerance: nil))
    }

    @Test("the old override of a limit is put back, the cluster's own value as none")
    func overrides() throws {
        let limits = try #require(
            JSONParser.parse(
                Array(
                    #"{"limits":[{"name":"requestsPerSecond","value":70,"source":"container"},{"name":"requestsPer100kUsers","value":10,"source":"default"}]}"#
                        .utf8))["limits"]?.array)
        #expect(LimitChange.override(of: .requestsPerSecond, in: limits) == .integer(70))
        #expect(LimitChange.override(of: .requestsPer100kUsers, in: limits) == .null)
        #expect(LimitChange.override(of: .userBytes, in: limits) == .null)
    }
}
