import RecordModel

/// What one request of a run does.
enum LoadOperation: String, Sendable, CaseIterable {
    case create, read, query
    case kvSet = "kv-set"
    case kvGet = "kv-get"

    /// Whether it works on records that must be there first.
    var needsRecords: Bool { self == .read || self == .query }

    /// Whether it works on preferences, which need no record type.
    var isKeyValue: Bool { self == .kvSet || self == .kvGet }
}

/// How requests follow one another.
enum LoadPace: Hashable, Sendable {
    /// Each of `concurrency` clients sends its next request when the last one was answered.
    case closed(concurrency: Int)
    /// Requests are due by a schedule, whether others were answered or not.
    case open(rate: Double, spacing: ArrivalSchedule.Spacing, outstandingMax: Int)
}

/// The database and zone that records go to.
struct LoadPlace: Hashable, Sendable {
    var container: String
    var environment: String
    /// `public` or `private`.
    var database: String
    var zone: String

    static let defaultZone = ZoneKey.defaultZoneName
}

/// All that a run was asked for.
struct LoadSettings: Sendable {
    var operation: LoadOperation
    var pace: LoadPace
    var bound: LoadBound
    var place: LoadPlace
    var recordType = "Load"
    /// Records that reads and queries choose from.
    var records = 10_000
    /// Connections over all targets.
    var connections: Int
    var seed: UInt64 = 1
    /// Seconds after which a request counts as unanswered.
    var timeoutSeconds = 10
}
