import Wire

/// Everything that can be limited for a container; the raw value is the name that administrators use.
///
/// Defaults are the figures that Apple once published for CloudKit, or our own (`docs/limits.md`).
package enum ContainerLimit: String, Hashable, Sendable, CaseIterable, Comparable, WireValue {
    /// Requests for records, zones and users, over all nodes.
    case requestsPerSecond
    case requestsPer100kUsers
    case requestsPerSecondMax
    /// Requests for preferences, over all nodes.
    case keyValueRequestsPerSecond
    case keyValueRequestsPer100kUsers
    case keyValueRequestsPerSecondMax
    /// Requests that one node works on at the same time.
    case concurrentRequests
    /// Records of the public database, of each environment.
    case databaseBytes
    case databaseBytesPerUser
    case databaseBytesMax
    case databaseRecords
    /// Assets of the public database.
    case assetBytes
    case assetBytesPerUser
    case assetBytesMax
    /// One upload: a file whose size was not announced, and one whose size was.
    case assetUploadBytes
    case assetUploadBytesMax
    /// What one user has uploaded to a node within a day and saved in no record.
    case unsavedAssetBytes
    /// What requests for public data may carry in a month.
    case transferBytesPerMonth
    case transferBytesPerUser
    case transferBytesPerMonthMax
    /// One user's private records, of each environment.
    case userBytes
    case userRecords
    /// Assets of one user's private records, of each environment.
    case userAssetBytes
    /// Saves that add to development's schema, on each node; 0: saves add nothing.
    case schemaGrowthsPerMinute
    /// Requests of administrators who act as users, over all nodes.
    case actAsRequestsPerSecond
    /// How long an administrator may act as a user at a time; 0: not at all. The second holds in production.
    case actAsMinutes
    case actAsProductionMinutes
    /// For how long earlier versions of records are kept; 0: there are none.
    case recordVersionDays
    /// Earlier versions of one record.
    case recordVersionsMax
    /// Thresholds of `AlertRule`; 0: it is switched off. Of the cluster alone, but for the last four.
    case alertNodeDownMinutes
    case alertLeaderlessMinutes
    case alertFailingMinutes
    case alertMissingFilesMinutes
    case alertBehindEntries
    case alertSyncMilliseconds
    case alertWaitingRequests
    case alertElections
    case alertClockMilliseconds
    case alertCertificateDays
    case alertDiskFreePercent
    case alertWaitingEffects
    case alertWaitingMatches
    case alertErrorPercent
    case alertAnswerMilliseconds
    case alertPublicDataPercent
    case alertTransferPercent

    /// What a value means where nothing is limited.
    package static let unlimited = Int64.max

    /// What a value counts.
    package enum Unit: String, Hashable, Sendable, CaseIterable {
        case requestsPerSecond = "requests/s"
        case requests
        case bytes
        case records
        case savesPerMinute = "saves/minute"
        case minutes
        case days
        case versions
        case entries
        case elections
        case milliseconds = "ms"
        case percent = "%"
    }

    /// The unit of the limit's value, its default and its range.
    package var unit: Unit {
        switch self {
        case .requestsPerSecond, .requestsPer100kUsers, .requestsPerSecondMax, .keyValueRequestsPerSecond,
            .keyValueRequestsPer100kUsers, .keyValueRequestsPerSecondMax, .actAsRequestsPerSecond:
            .requestsPerSecond
        case .concurrentRequests, .alertWaitingRequests: .requests
        case .databaseBytes, .databaseBytesPerUser, .databaseBytesMax, .assetBytes, .assetBytesPerUser, .assetBytesMax,
            .assetUploadBytes, .assetUploadBytesMax, .unsavedAssetBytes, .transferBytesPerMonth, .transferBytesPerUser,
            .transferBytesPerMonthMax, .userBytes, .userAssetBytes:
            .bytes
        case .databaseRecords, .userRecords: .records
        case .schemaGrowthsPerMinute: .savesPerMinute
        case .actAsMinutes, .actAsProductionMinutes, .alertNodeDownMinutes, .alertLeaderlessMinutes,
            .alertFailingMinutes, .alertMissingFilesMinutes:
            .minutes
        case .recordVersionDays, .alertCertificateDays: .days
        case .recordVersionsMax: .versions
        case .alertBehindEntries, .alertWaitingEffects, .alertWaitingMatches: .entries
        case .alertElections: .elections
        case .alertSyncMilliseconds, .alertClockMilliseconds, .alertAnswerMilliseconds: .milliseconds
        case .alertDiskFreePercent, .alertErrorPercent, .alertPublicDataPercent, .alertTransferPercent: .percent
        }
    }

    /// The default value.
    package var standard: Int64 {
        switch self {
        case .requestsPerSecond, .keyValueRequestsPerSecond: 40
        case .requestsPer100kUsers, .keyValueRequestsPer100kUsers: 10
        case .requestsPerSecondMax, .keyValueRequestsPerSecondMax: 400
        case .concurrentRequests: 256
        case .databaseBytes: 100_000_000
        case .databaseBytesPerUser: 2_500_000
        case .databaseBytesMax: 10_000_000_000_000
        case .assetBytes: 10_000_000_000
        case .assetBytesPerUser: 250_000_000
        case .assetBytesMax: 1_000_000_000_000_000
        case .assetUploadBytes: 50_000_000
        case .assetUploadBytesMax: 250_000_000
        case .unsavedAssetBytes: 1_000_000_000
        case .transferBytesPerMonth: 2_000_000_000
        case .transferBytesPerUser: 50_000_000
        case .transferBytesPerMonthMax: 200_000_000_000_000
        case .userBytes, .userAssetBytes: 5_000_000_000
        case .databaseRecords, .userRecords: Self.unlimited
        case .schemaGrowthsPerMinute: 60
        case .actAsRequestsPerSecond: 10
        case .actAsMinutes: 15
        case .actAsProductionMinutes, .recordVersionDays: 0
        case .recordVersionsMax, .alertDiskFreePercent: 10
        case .alertNodeDownMinutes, .alertLeaderlessMinutes, .alertFailingMinutes, .alertErrorPercent: 1
        case .alertElections: 5
        case .alertCertificateDays: 14
        case .alertMissingFilesMinutes: 15
        case .alertPublicDataPercent, .alertTransferPercent: 90
        case .alertWaitingRequests: 100
        case .alertSyncMilliseconds: 250
        case .alertClockMilliseconds, .alertAnswerMilliseconds, .alertWaitingMatches: 1_000
        case .alertWaitingEffects: 10_000
        case .alertBehindEntries: 100_000
        }
    }

    /// The values that may be set.
    package var range: ClosedRange<Int64> {
        switch unit {
        case .requestsPerSecond:
            self == .requestsPer100kUsers || self == .keyValueRequestsPer100kUsers
                ? 0...1_000_000 : 1...1_000_000
        case .requests: (alert == nil ? 1 : 0)...100_000
        case .bytes, .records: 0...Self.unlimited
        case .savesPerMinute: 0...6_000
        case .minutes: 0...(alert == nil ? 15 : 1_440)
        case .days: 0...365
        case .versions: 1...100
        case .entries: 0...1_000_000_000
        case .elections: 0...1_000
        case .milliseconds: 0...3_600_000
        case .percent: 0...100
        }
    }

    /// Orders limits by the names that administrators use.
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// What a container is held to: the standard values, changed by what was set for the cluster and for the container.
package struct ContainerLimits: Hashable, Sendable {
    private var values: [ContainerLimit: Int64] = [:]

    package init() {}

    /// The value in force, in the limit's unit: what was set, else the standard value. Setting it checks no range.
    package subscript(_ limit: ContainerLimit) -> Int64 {
        get { values[limit] ?? limit.standard }
        set { values[limit] = newValue }
    }

    /// How many earlier versions of a record are kept; 0: none.
    package var versionsKept: Int64 { self[.recordVersionDays] > 0 ? self[.recordVersionsMax] : 0 }

    /// Requests a second for a number of users.
    package func requestsPerSecond(users: Int) -> Int64 {
        grown(
            self[.requestsPerSecond], by: self[.requestsPer100kUsers], per: 100_000, users, self[.requestsPerSecondMax])
    }

    /// Requests a second for preferences for a number of users.
    package func keyValueRequestsPerSecond(users: Int) -> Int64 {
        grown(
            self[.keyValueRequestsPerSecond], by: self[.keyValueRequestsPer100kUsers], per: 100_000, users,
            self[.keyValueRequestsPerSecondMax])
    }

    /// Bytes of the public database for a number of users.
    package func databaseBytes(users: Int) -> Int64 {
        grown(self[.databaseBytes], by: self[.databaseBytesPerUser], per: 1, users, self[.databaseBytesMax])
    }

    /// Bytes of public assets for a number of users.
    package func assetBytes(users: Int) -> Int64 {
        grown(self[.assetBytes], by: self[.assetBytesPerUser], per: 1, users, self[.assetBytesMax])
    }

    /// Bytes that a month's requests for public data may carry, for a number of users.
    package func transferBytesPerMonth(users: Int) -> Int64 {
        grown(
            self[.transferBytesPerMonth], by: self[.transferBytesPerUser], per: 1, users,
            self[.transferBytesPerMonthMax])
    }

    /// The base plus its growth; the ceiling bounds the growth, never the base.
    private func grown(_ base: Int64, by step: Int64, per: Int64, _ users: Int, _ ceiling: Int64) -> Int64 {
        let (growth, overflow) = step.multipliedReportingOverflow(by: Int64(users) / per)
        let (sum, overflowed) = base.addingReportingOverflow(growth)
        return max(base, overflow || overflowed ? ceiling : min(sum, ceiling))
    }
}
