import Directory
import RecordModel
package import Wire

/// What a day's requests of a container's environment came to, and what it held. Those of several nodes add up.
///
/// A day is one of UTC, as a number of days since 1970.
package struct DayUsage: Hashable, Sendable, WireMessage {
    /// Of clients; administrators' do not count.
    package private(set) var requests: UInt64 = 0
    /// How many of these failed, or in part.
    package private(set) var errors: UInt64 = 0
    /// Of their bodies.
    package private(set) var bytesIn: UInt64 = 0
    /// Of their answers.
    package private(set) var bytesOut: UInt64 = 0
    /// Told to devices and webhooks.
    package private(set) var notifications: UInt64 = 0
    /// Who asked.
    package private(set) var users = DistinctUsers()
    /// What there was when it was last looked; nil where nobody did.
    package var storage: Storage?

    /// What the databases of a container's environment hold.
    package struct Storage: Hashable, Sendable, WireMessage {
        /// When, in milliseconds since 1970.
        package var time: Int64
        /// Of the public database, without files.
        package var publicBytes: Int64
        /// Of all private databases, without files.
        package var privateBytes: Int64
        /// Of files, as often as records name them.
        package var assetBytes: Int64
        /// Of all databases.
        package var records: Int64

        package static var blank: Self {
            Storage(time: 0, publicBytes: 0, privateBytes: 0, assetBytes: 0, records: 0)
        }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &time)
            try wire.field(2, &publicBytes)
            try wire.field(3, &privateBytes)
            try wire.field(4, &assetBytes)
            try wire.field(5, &records)
        }
    }

    /// How long a day is, in milliseconds.
    package static let milliseconds: Int64 = 86_400_000

    /// The day of a time in milliseconds since 1970.
    package static func day(of time: Int64) -> Int64 { time / milliseconds }

    mutating func add(_ cell: TelemetryCell) {
        requests += cell.requests
        errors += cell.errorCount
        bytesIn += cell.bytesIn
        bytesOut += cell.bytesOut
        notifications += cell.notifications
        users.add(cell.users)
    }

    /// Adds what another node counted; of what was held, the later look counts.
    package mutating func add(_ other: DayUsage) {
        requests += other.requests
        errors += other.errors
        bytesIn += other.bytesIn
        bytesOut += other.bytesOut
        notifications += other.notifications
        users.add(other.users)
        if other.storage?.time ?? .min > storage?.time ?? .min { storage = other.storage }
    }

    package static var blank: Self { DayUsage() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &requests)
        try wire.field(2, &errors)
        try wire.field(3, &bytesIn)
        try wire.field(4, &bytesOut)
        try wire.field(5, &notifications)
        try wire.field(6, &users)
        try wire.field(7, &storage)
    }
}

/// What the minutes that are over came to, by container and day, until the history has it. A value, bounded.
struct DayCounts {
    struct Key: Hashable, Comparable {
        var schema: SchemaKey
        var day: Int64

        static func < (left: Key, right: Key) -> Bool {
            (left.schema.container, left.schema.environment.rawValue, left.day)
                < (right.schema.container, right.schema.environment.rawValue, right.day)
        }
    }

    /// Of 1.2 KB at most, each. What comes on top is not counted: it is in the telemetry, as long as that lasts.
    static let keysMax = 4_000

    private(set) var counts: [Key: DayUsage] = [:]

    /// Counts a minute that began at a time.
    mutating func add(_ cells: [TelemetryKey: TelemetryCell], from begin: Int64) {
        for (key, cell) in cells where !key.container.isEmpty && key.group != .administration {
            guard let environment = key.environment else { continue }
            let schema = SchemaKey(container: key.container, environment: environment)
            change(Key(schema: schema, day: DayUsage.day(of: begin))) { $0.add(cell) }
        }
    }

    /// Takes back what could not be kept.
    mutating func add(_ usage: DayUsage, to key: Key) { change(key) { $0.add(usage) } }

    private mutating func change(_ key: Key, _ change: (inout DayUsage) -> Void) {
        guard counts.count < Self.keysMax || counts[key] != nil else { return }
        change(&counts[key, default: DayUsage()])
    }

    /// All that was counted, which then is counted no longer.
    mutating func takeAll() -> [(key: Key, usage: DayUsage)] {
        defer { counts = [:] }
        return counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
