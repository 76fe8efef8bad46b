import RecordModel

/// How requests follow one another.
enum LoadPace: Hashable, Sendable {
    /// Each of `concurrency` clients sends its next request when the last one was answered.
    case closed(concurrency: Int)
    /// Requests are due by a schedule, whether others were answered or not.
    case open(profile: LoadProfile, spacing: ArrivalSchedule.Spacing, outstandingMax: Int)

    static func open(rate: Double, spacing: ArrivalSchedule.Spacing, outstandingMax: Int) -> LoadPace {
        .open(profile: .constant(rate), spacing: spacing, outstandingMax: outstandingMax)
    }
}

/// The database and zones that records go to.
struct LoadPlace: Hashable, Sendable {
    var container: String
    var environment: String
    /// `public` or `private`.
    var database: String
    /// At least one.
    var zones: [String]

    static let defaultZone = ZoneKey.defaultZoneName
}

/// All that a run was asked for.
struct LoadSettings: Sendable {
    var mix: LoadMix
    var pace: LoadPace
    var bound: LoadBound
    var place: LoadPlace
    var recordType = "Load"
    /// Records in each zone that reads, updates and queries choose from.
    var records = 10_000
    /// Connections over all targets.
    var connections: Int
    var seed: UInt64 = 1
    /// Seconds after which a request counts as unanswered.
    var timeoutSeconds = 10
    var nodes = NodePattern.even
    var behaviours = WeightedChoice<ThrottleBehaviour>([(.ignore, 1)])
    /// How many users the requests come from.
    var users = 1
}
