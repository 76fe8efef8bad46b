import Wire

/// What a cluster watches of itself, and tells administrators of.
///
/// Each rule has a threshold, which is a limit of the cluster's, and for some of a container's (`limit`); 0 switches it
/// off. `docs/monitoring.md` lists them, and `docs/monitoring/alerts.yml` has the same for Prometheus.
package enum AlertRule: String, Hashable, Sendable, CaseIterable, WireValue {
    case nodeDown, groupWithoutLeader, replicaFailing, missingFiles
    case replicaBehind, slowDisk, overload, elections, clock, certificate, diskSpace, waitingEffects, waitingMatches
    case errors, slowAnswers, publicData, transfer

    /// How soon somebody should look.
    package enum Severity: String, Hashable, Sendable, CaseIterable {
        /// At once: something does not work.
        case page
        /// In the next days: something will not, or works badly.
        case ticket
    }

    /// How a value is judged by the threshold.
    package enum Measure: String, Hashable, Sendable, CaseIterable {
        /// It is wrong at the threshold and above.
        case above
        /// It is wrong at the threshold and below.
        case below
        /// Something is wrong or it is not; the threshold says for how many minutes it may be.
        case minutes
    }

    /// The limit that is its threshold.
    package var limit: ContainerLimit {
        switch self {
        case .nodeDown: .alertNodeDownMinutes
        case .groupWithoutLeader: .alertLeaderlessMinutes
        case .replicaFailing: .alertFailingMinutes
        case .missingFiles: .alertMissingFilesMinutes
        case .replicaBehind: .alertBehindEntries
        case .slowDisk: .alertSyncMilliseconds
        case .overload: .alertWaitingRequests
        case .elections: .alertElections
        case .clock: .alertClockMilliseconds
        case .certificate: .alertCertificateDays
        case .diskSpace: .alertDiskFreePercent
        case .waitingEffects: .alertWaitingEffects
        case .waitingMatches: .alertWaitingMatches
        case .errors: .alertErrorPercent
        case .slowAnswers: .alertAnswerMilliseconds
        case .publicData: .alertPublicDataPercent
        case .transfer: .alertTransferPercent
        }
    }

    /// Whether a container may have a threshold of its own; all others are the cluster's.
    package var isOfContainers: Bool {
        switch self {
        case .errors, .slowAnswers, .publicData, .transfer: true
        default: false
        }
    }

    /// How its values are judged.
    package var measure: Measure {
        switch self {
        case .nodeDown, .groupWithoutLeader, .replicaFailing, .missingFiles: .minutes
        case .certificate, .diskSpace: .below
        default: .above
        }
    }

    /// How soon somebody should look when it fires.
    package var severity: Severity {
        switch self {
        case .nodeDown, .groupWithoutLeader, .replicaFailing, .missingFiles: .page
        default: .ticket
        }
    }

    /// For how long a value has to be wrong; where minutes are the threshold, that is.
    package var minutes: Int64 {
        switch self {
        case .replicaBehind, .clock, .diskSpace, .waitingEffects, .waitingMatches: 5
        case .overload: 2
        default: 0
        }
    }
}

extension ContainerLimit {
    /// The rule whose threshold it is; nil: it limits.
    package var alert: AlertRule? { Self.alerts[self] }

    private static let alerts = Dictionary(uniqueKeysWithValues: AlertRule.allCases.map { ($0.limit, $0) })
}
