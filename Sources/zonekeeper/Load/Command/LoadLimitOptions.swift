import ArgumentParser

/// What a run does about limits.
struct LoadLimitOptions: ParsableArguments {
    @Option(
        help: "Clients that are told to slow down: ignore, honour or back-off, or shares such as honour:1,ignore:9.")
    var onThrottled = BehaviourShares(.ignore)

    @Option(
        help: ArgumentHelp(
            "Requests a second that the limit should allow; exit code 0 where it was kept, 1 where not, 3 where the run cannot tell.",
            valueName: "rate"))
    var expectLimit: LoadRate?

    @Option(help: "How much more or less is tolerated: 2% or 0.02. Of --find-limit: how closely it searches.")
    var tolerance = LoadTolerance(share: 0.02)

    @Option(
        help: ArgumentHelp(
            "Set the container's limit for the run, and put the old one back; takes the administrator's token.",
            valueName: "per second"))
    var limit: Int?

    @Flag(
        help:
            "Search for the highest rate that is accepted, with trials of --duration (default: 5 s each, and up to 60 s near the limit)."
    )
    var findLimit = false

    @Flag(help: "Measure this tester against a server that does nothing, on this machine, and load no cluster.")
    var calibrate = false

    func validate() throws {
        if let limit, !(1...1_000_000).contains(limit) {
            throw ValidationError("--limit: 1 to 1000000 is expected, not \(limit)")
        }
        if findLimit, calibrate { throw ValidationError("--find-limit and --calibrate: give one of them") }
        if findLimit, expectLimit != nil {
            throw ValidationError("--expect-limit judges one run and --find-limit makes several: give one of them")
        }
    }

    /// What the summary holds the run against.
    var expectation: LoadReport.Expectation {
        LoadReport.Expectation(
            limit: expectLimit?.perSecond ?? limit.map(Double.init),
            tolerance: expectLimit == nil ? nil : tolerance.share)
    }
}

/// Kinds of clients with their weights.
struct BehaviourShares: ExpressibleByArgument, Hashable {
    var choice: WeightedChoice<ThrottleBehaviour>

    init(_ behaviour: ThrottleBehaviour) { choice = WeightedChoice([(behaviour, 1)]) }

    init?(argument: String) {
        guard let choice = WeightedChoice.parse(argument, value: { ThrottleBehaviour(rawValue: $0) }) else {
            return nil
        }
        self.choice = choice
    }

    var defaultValueDescription: String { choice.values[0].rawValue }
}

/// A part of something, as `2%` or `0.02`.
struct LoadTolerance: ExpressibleByArgument, Hashable {
    var share: Double

    init(share: Double) { self.share = share }

    init?(argument: String) {
        let isPercent = argument.hasSuffix("%")
        guard let number = Double(isPercent ? argument.dropLast() : argument[...]) else { return nil }
        let share = isPercent ? number / 100 : number
        guard share > 0, share < 1 else { return nil }
        self.share = share
    }

    var defaultValueDescription: String { String(percent: share).filter { $0 != " " } }
}
