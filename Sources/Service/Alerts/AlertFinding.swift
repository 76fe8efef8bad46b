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

    /// The lower, the sooner somebody should know of it.
    fileprivate var urgency: (Int, Int64) {
        (isFiring ? 0 : since != nil ? 1 : 2, rule.measure == .below ? value : -value)
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

/// What one node tells of what it finds.
struct AlertFindings: Hashable, Sendable, WireMessage {
    /// A finding as another build may have written it.
    fileprivate enum Told: Hashable, Sendable {
        case known(AlertFinding)
        /// By a rule that this build does not know.
        case unknown(rule: String)
    }

    /// Findings of one rule that a node tells of.
    static let perRuleMax = 100
    /// Of so many containers nothing is left out: a rule finds one thing at most in each environment.
    static let containersMax = perRuleMax / Environment.allCases.count

    private var told: [Told] = []
    /// Findings that are wrong and are not told, as there are too many of their rules.
    private(set) var leftOut: UInt64 = 0

    static var blank: Self { Self([]) }

    /// Of each rule those that are wrong come first, and then those that are nearest to it.
    /// - Parameter containers: whose findings are asked for, beside those of the node itself; nil: of all.
    init(_ found: [AlertFinding], of containers: [String]? = nil) {
        let asked = found.filter { !$0.rule.isOfContainers || containers?.contains($0.container) ?? true }
        for rule in AlertRule.allCases {
            var findings = asked.filter { $0.rule == rule }
            if findings.count > Self.perRuleMax { findings.sort { $0.urgency < $1.urgency } }
            told += findings.prefix(Self.perRuleMax).map(Told.known)
            leftOut += UInt64(findings.dropFirst(Self.perRuleMax).count { $0.since != nil })
        }
    }

    /// Those of rules that this build knows.
    var findings: [AlertFinding] {
        told.compactMap { if case .known(let finding) = $0 { finding } else { nil } }
    }

    /// The rules of the others, once for each finding.
    var unknownRules: [String] {
        told.compactMap { if case .unknown(let rule) = $0 { rule } else { nil } }
    }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &told)
        try wire.field(2, &leftOut, unless: 0)
    }
}

extension AlertFindings.Told: WireValue {
    func write(_ number: Int, to writer: inout WireWriter) {
        switch self {
        case .known(let finding): finding.write(number, to: &writer)
        case .unknown(let rule): writer.parts(number, rule)
        }
    }

    init(field reader: inout WireReader) throws(WireError) {
        let nested = try reader.nested()
        var finding = nested
        do throws(WireError) {
            self = .known(try AlertFinding(from: &finding))
        } catch {
            var rest = nested
            guard try rest.nextField() == 1 else { throw error }
            let rule = try rest.string()
            guard AlertRule(rawValue: rule) == nil else { throw error }
            self = .unknown(rule: rule)
        }
    }
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
