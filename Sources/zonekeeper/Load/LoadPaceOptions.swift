import ArgumentParser

/// How fast, for how long and over how many connections a run sends.
struct LoadPaceOptions: ParsableArguments {
    @Option(help: "Open loop: requests a second that are due, such as 500 or 500/s.")
    var rate: LoadRate?

    @Option(help: "Open loop: poisson (as from independent users) or even.")
    var arrivals: ArrivalSchedule.Spacing = .poisson

    @Option(help: "Open loop: requests under way at most; those due beyond are counted as not issued.")
    var maxOutstanding = 4_096

    @Option(help: "Closed loop: clients that each have one request under way (default: 16).")
    var concurrency: Int?

    @Option(help: "Seconds to send for, such as 10 or 2.5 (default: 10, or as long as --count takes).")
    var duration: Double?

    @Option(help: "Requests to send; with --duration the run ends at whichever comes first.")
    var count: Int?

    @Option(help: "Connections over all nodes (default: --concurrency, or 64 in an open loop).")
    var connections: Int?

    @Option(help: "The same seed makes the same requests, due at the same times.")
    var seed: UInt64 = 1

    @Option(help: "Seconds after which a request counts as unanswered.")
    var timeout = 10

    func validate() throws {
        if rate != nil, concurrency != nil {
            throw ValidationError("--rate is an open loop and --concurrency a closed one: give one of them")
        }
        try check("--max-outstanding", maxOutstanding, 1...100_000)
        if let concurrency { try check("--concurrency", concurrency, 1...10_000) }
        if let count { try check("--count", count, 1...1_000_000_000) }
        if let connections { try check("--connections", connections, 1...10_000) }
        try check("--timeout", timeout, 1...600)
        if let duration, !(duration > 0 && duration <= 86_400) {
            throw ValidationError("--duration: above 0 and at most 86400 seconds are expected, not \(duration)")
        }
    }

    private func check(_ name: String, _ value: Int, _ range: ClosedRange<Int>) throws {
        guard range.contains(value) else {
            throw ValidationError("\(name): \(range.lowerBound) to \(range.upperBound) is expected, not \(value)")
        }
    }

    var bound: LoadBound { LoadBound(seconds: duration, count: count) }

    var pace: LoadPace {
        if let rate { return .open(rate: rate.perSecond, spacing: arrivals, outstandingMax: maxOutstanding) }
        return .closed(concurrency: concurrency ?? 16)
    }

    var connectionCount: Int { connections ?? (rate == nil ? concurrency ?? 16 : 64) }
}

/// Requests a second, as `500`, `0.5` or `500/s`.
struct LoadRate: ExpressibleByArgument, Hashable {
    var perSecond: Double

    init?(argument: String) {
        let digits = argument.hasSuffix("/s") ? argument.dropLast(2) : argument[...]
        guard let number = Double(digits), number > 0, number <= 1_000_000 else { return nil }
        perSecond = number
    }
}

extension ArrivalSchedule.Spacing: ExpressibleByArgument {}
