import ArgumentParser

/// How fast, for how long and over how many connections a run sends.
struct LoadPaceOptions: ParsableArguments {
    @Option(help: "Open loop: requests a second that are due, such as 500 or 500/s.")
    var rate: LoadRate?

    @Option(
        help:
            "Open loop: constant, ramp:10-400, step:100,200,400, spike:400 (over --rate, in the middle fifth) or soak.")
    var profile = LoadProfileArgument(text: .constant, name: "constant")

    @Option(help: "Open loop: poisson (as from independent users) or even.")
    var arrivals: ArrivalSchedule.Spacing = .poisson

    @Option(help: "Open loop: requests under way at most; those due beyond are counted as not issued.")
    var maxOutstanding = 4_096

    @Option(help: "Closed loop: clients that each have one request under way (default: 16).")
    var concurrency: Int?

    @Option(
        help:
            "Seconds to send for, such as 10 or 2.5 (default: 10, or as long as --count takes; profiles 30, soak 3600)."
    )
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
        if profile.text.hasOwnRates, rate != nil {
            throw ValidationError("--profile \(profile.name) says its rates itself: leave --rate out")
        }
        if !profile.text.hasOwnRates, profile.text != .constant, rate == nil {
            throw ValidationError("--profile \(profile.name) needs --rate")
        }
        if isOpen, concurrency != nil {
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

    private var isOpen: Bool { rate != nil || profile.text.hasOwnRates }

    var bound: LoadBound { LoadBound(seconds: duration ?? profile.text.defaultSeconds, count: count) }

    var pace: LoadPace {
        guard isOpen else { return .closed(concurrency: concurrency ?? 16) }
        let profile = profile.text.profile(rate: rate?.perSecond ?? 1, seconds: bound.seconds ?? 30)
        return .open(profile: profile, spacing: arrivals, outstandingMax: maxOutstanding)
    }

    var connectionCount: Int { isOpen ? openConnectionCount : connections ?? concurrency ?? 16 }

    /// Of an open loop, whether the pace is one or not.
    var openConnectionCount: Int { connections ?? 64 }
}

/// How the rate goes, as it was typed.
struct LoadProfileArgument: ExpressibleByArgument, Hashable {
    var text: LoadProfileText
    var name: String

    init(text: LoadProfileText, name: String) {
        self.text = text
        self.name = name
    }

    init?(argument: String) {
        guard let text = LoadProfileText(argument) else { return nil }
        self.init(text: text, name: argument)
    }

    var defaultValueDescription: String { name }
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
