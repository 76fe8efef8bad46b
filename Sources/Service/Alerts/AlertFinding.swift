package import RecordModel
package import Wire

/// What a rule comes to in one place, as one node sees it.
package struct AlertFinding: Hashable, Sendable, WireMessage {
    /// What is watched.
    package var rule: AlertRule
    /// The node that it is about; of containers the one that looked.
    package var node: UInt64
    /// Empty where it is about no container.
    package var container = ""
    /// The container's.
    package var environment: Environment?
    /// The group that it is about, where several may be wrong at once.
    package var group: UInt64?
    /// In the unit of the rule's limit; where minutes are its threshold, for how many it has been wrong.
    package var value: Int64
    /// What exactly, such as the groups; may be empty.
    package var detail = ""
    /// What it was judged by; 0: by nothing.
    package var threshold: Int64 = 0
    /// When it was so, in milliseconds since 1970.
    package var time: Int64 = 0
    /// Since when it has been wrong, as far as the node remembers; nil: it is right.
    package var since: Int64?
    /// Whether it has been wrong for as long as the rule asks for.
    package var isFiring = false

    /// - Parameter value: where minutes are the threshold, whether it is wrong: 1 or 0.
    init(_ rule: AlertRule, on node: UInt64, _ value: Int64, _ detail: String = "") {
        (self.rule, self.node, self.value, self.detail) = (rule, node, value, detail)
    }

    package static var blank: Self { AlertFinding(.nodeDown, on: 0, 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &rule)
        try wire.field(2, &node)
        try wire.field(3, &container)
        try wire.field(4, &environment)
        try wire.field(5, &value)
        try wire.field(6, &detail)
        try wire.field(7, &threshold)
        try wire.field(8, &time)
        try wire.field(9, &since)
        try wire.field(10, &isFiring)
        try wire.field(11, &group)
    }

    /// Whether the value is beyond the threshold.
    fileprivate var isWrong: Bool {
        guard threshold > 0 else { return false }
        return switch rule.measure {
        case .above: value >= threshold
        case .below: value <= threshold
        case .minutes: value > 0
        }
    }
}

/// All that one node finds.
struct AlertFindings: Hashable, Sendable, WireMessage {
    var findings: [AlertFinding]

    static var blank: Self { AlertFindings(findings: []) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) { try wire.field(1, &findings) }
}

/// Since when what is wrong has been so. A value: time is passed in.
struct AlertMemory {
    private struct Place: Hashable {
        let rule: AlertRule
        let node: UInt64
        let container: String
        let environment: Environment?
        let group: UInt64?
    }

    private var since: [Place: Int64] = [:]

    private static let minute: Int64 = 60_000

    /// Judges what was found; what is not among the findings is right again.
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - threshold: of a finding.
    mutating func judge(
        _ findings: [AlertFinding], at now: Int64, by threshold: (AlertFinding) -> Int64
    ) -> [AlertFinding] {
        var wrong: [Place: Int64] = [:]
        let judged = findings.map { finding in
            var finding = finding
            if finding.time == 0 { finding.time = now }
            finding.threshold = threshold(finding)
            let isWrong = finding.isWrong
            let place = Place(
                rule: finding.rule, node: finding.node, container: finding.container, environment: finding.environment,
                group: finding.group)
            // A clock that was set back leaves times that are to come again.
            let begin = min(since[place] ?? now, now)
            if isWrong { (wrong[place], finding.since) = (begin, begin) }
            let isOfMinutes = finding.rule.measure == .minutes
            if isOfMinutes { finding.value = isWrong ? (now - begin) / Self.minute : 0 }
            let minutes = isOfMinutes ? finding.threshold : finding.rule.minutes
            finding.isFiring = isWrong && now - begin >= minutes * Self.minute
            return finding
        }
        since = wrong
        return judged
    }
}
