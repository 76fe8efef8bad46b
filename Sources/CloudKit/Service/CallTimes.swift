/// How long a call, or an operation, may go on: what its configuration says.
struct CallTimes: Sendable, Hashable {
    /// For one request with its repeats; nil for the configuration's `patience`, and for each attempt its own time.
    var request: Duration?
    /// For all of it; nil for as long as it takes.
    var resource: Duration?

    /// What the first that says something says.
    init(_ configurations: CKOperation.Configuration?...) {
        for case let configuration? in configurations {
            request = request ?? configuration.chosenTimeout.map(Self.duration)
            resource = resource ?? configuration.chosenResourceTimeout.map(Self.duration)
        }
    }

    /// The same, and where nothing is said what `others` say.
    func filled(from others: CallTimes) -> CallTimes {
        var times = self
        times.request = request ?? others.request
        times.resource = resource ?? others.resource
        return times
    }

    /// As far as it is a time: at most a year.
    private static func duration(_ seconds: Double) -> Duration {
        .seconds(seconds.isNaN ? 0 : min(max(seconds, 0), 31_536_000))
    }
}
