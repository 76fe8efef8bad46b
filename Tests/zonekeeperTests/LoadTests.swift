import Testing

@testable import zonekeeper

@Suite("Load: when requests are due, and where they go")
struct LoadTests {
    private func arrivals(
        _ spacing: ArrivalSchedule.Spacing, rate: Double, _ bound: LoadBound, seed: UInt64 = 7
    ) -> [UInt64] {
        var schedule = ArrivalSchedule(profile: .constant(rate), spacing: spacing, bound: bound, seed: seed)
        var offsets: [UInt64] = []
        while let offset = schedule.next() { offsets.append(offset) }
        return offsets
    }

    @Test("even arrivals stand at multiples of the interval, without drift, and end with the duration")
    func even() {
        let offsets = arrivals(.even, rate: 3, LoadBound(seconds: 2))
        #expect(offsets == [0, 333_333_333, 666_666_666, 1_000_000_000, 1_333_333_333, 1_666_666_666])
        // A million thirds later the sum of rounded intervals would be off by 333 microseconds.
        let late = arrivals(.even, rate: 3, LoadBound(count: 1_000_001))
        #expect(late.last == 333_333_333_333_333)
    }

    @Test("Poisson arrivals have the rate asked for, gaps as of an exponential distribution, and never go back")
    func poisson() {
        let rate = 500.0
        let offsets = arrivals(.poisson, rate: rate, LoadBound(seconds: 100))
        // 50,000 expected; the standard deviation is 224.
        #expect((49_000...51_000).contains(offsets.count))
        let gaps = zip(offsets, offsets.dropFirst()).map { Double($1 - $0) / 1_000_000_000 }
        #expect(zip(offsets, offsets.dropFirst()).allSatisfy { $0 <= $1 })
        let mean = gaps.reduce(0, +) / Double(gaps.count)
        let variance = gaps.map { ($0 - mean) * ($0 - mean) }.reduce(0, +) / Double(gaps.count)
        #expect(abs(variance.squareRoot() / mean - 1) < 0.03, "an exponential distribution deviates by its mean")
        let longerThanMean = Double(gaps.count { $0 > 1 / rate }) / Double(gaps.count)
        #expect(abs(longerThanMean - 0.3679) < 0.01, "1/e of the gaps are longer than the mean")
    }

    @Test("the same seed gives the same arrivals, another seed others")
    func seeds() {
        let first = arrivals(.poisson, rate: 100, LoadBound(count: 50), seed: 1)
        #expect(first == arrivals(.poisson, rate: 100, LoadBound(count: 50), seed: 1))
        #expect(first != arrivals(.poisson, rate: 100, LoadBound(count: 50), seed: 2))
    }

    @Test("every run has an end: ten seconds where nothing was said, else whichever bound comes first")
    func bounds() {
        #expect(arrivals(.even, rate: 10, LoadBound()).count == 100)
        #expect(arrivals(.even, rate: 10, LoadBound(count: 250)).count == 250)
        #expect(arrivals(.even, rate: 10, LoadBound(seconds: 1, count: 250)).count == 10)
        #expect(arrivals(.even, rate: 10, LoadBound(seconds: 100, count: 25)).count == 25)
    }

    @Test(
        "addresses of this machine are loopback",
        arguments: [
            "https://127.0.0.1:24001", "https://127.8.9.1:1", "https://localhost:24001/", "https://LOCALHOST",
            "https://[::1]:24001",
        ])
    func loopback(url: String) throws {
        #expect(try LoadTarget(url).isLoopback)
        #expect(try LoadTarget.parse([url], allowsRemote: false).count == 1)
    }

    @Test(
        "anything else is refused without --allow-remote, whatever it looks like",
        arguments: [
            "https://10.0.0.1:24001", "https://127.0.0.1.example.com:1", "https://localhost.example.com",
            "https://128.0.0.1",
            "https://[::2]:1", "https://[fe80::1]:1", "https://0.0.0.0:1", "https://example.com",
        ])
    func remote(url: String) throws {
        #expect(throws: CommandFailure.self) {
            try LoadTarget.parse(["https://127.0.0.1:24001", url], allowsRemote: false)
        }
        #expect(try LoadTarget.parse([url], allowsRemote: true).count == 1)
    }

    @Test(
        "a target that is more or less than scheme, host and port is refused",
        arguments: [
            "", "127.0.0.1:24001", "http://127.0.0.1:24001", "https://", "https://127.0.0.1@example.com:1",
            "https://example.com@127.0.0.1:1", "https://127.0.0.1:1/path", "https://127.0.0.1:1?x=y",
            "https://127.0.0.1:1#x", "https://127.0.0.1:65536", "https://127.0.0.1:0",
            "https://127.0.0.1:99999999999999999999",
        ])
    func malformed(url: String) {
        #expect(throws: CommandFailure.self) { try LoadTarget(url) }
    }

    @Test("requests go to the host and port that were checked")
    func base() throws {
        #expect(try LoadTarget("https://127.0.0.1:24001/").base == "https://127.0.0.1:24001")
        #expect(try LoadTarget("https://[::1]:24001").base == "https://[::1]:24001")
        #expect(try LoadTarget("https://localhost").base == "https://localhost:443")
    }

    @Test("a rate may be written with or without /s")
    func rates() {
        #expect(LoadRate(argument: "500")?.perSecond == 500)
        #expect(LoadRate(argument: "0.5/s")?.perSecond == 0.5)
        for wrong in ["", "/s", "0", "1e-12", "-3", "nan", "inf", "5/m", "1e9"] {
            #expect(LoadRate(argument: wrong) == nil)
        }
    }
}
