package import Directory
package import RecordModel

/// What is wrong, by the rules of alerts, on all nodes. Any node answers for all; one that does not answer is named.
package struct AlertAdministration: Sendable {
    /// What a rule comes to.
    package enum State: String, Hashable, Sendable, CaseIterable {
        /// Nothing is wrong.
        case ok
        /// Something is wrong, and not for as long as the rule asks for.
        case pending
        case firing
        /// Its threshold is 0.
        case off
    }

    /// One rule.
    package struct Rule: Sendable {
        /// Which one.
        package var rule: AlertRule
        /// Of the container that is asked for, or of the cluster.
        package var threshold: Int64
        /// Where that was set.
        package var source: LimitSource
        /// What it comes to over all places.
        package var state: State
        /// The worst that was found anywhere; nil: nothing is known.
        package var value: Int64?
        /// What is wrong: what fires first, then the oldest.
        package var alerts: [AlertFinding]
    }

    /// All rules, as all nodes find them.
    package struct Report: Sendable {
        /// In the order of the document.
        package var rules: [Rule]
        /// When it was made, in milliseconds since 1970.
        package var time: Int64
        /// All that were asked.
        package var nodes: [RequestAdministration.AskedNode]
        /// Alerts of rules that are wrong in more places than a node tells of.
        package var leftOut: Int
        /// Rules that other nodes judge by and this one, of an earlier build, does not know; by name.
        package var unknownRules: [String]
    }

    let administration: Administration
    private var service: RecordService { administration.service }

    /// - Parameter container: whose thresholds and requests are wanted, beside what nodes are at; nil: the cluster's
    ///   thresholds, and the requests of all containers that the administrator may see.
    package func report(of container: String?) async throws(RequestFailure) -> Report {
        let access = try administration.access
        if let container {
            try access.require(
                AdministratorNeed(.viewer, .container), container: container, environment: nil, now: service.now)
            _ = try await administration.directory(with: container)
        }
        async let around = service.alerts.lookAround(from: service)
        let inquiries = NodeInquiries(service: service)
        let (answers, told) = await Self.findings(of: container.map { [$0] } ?? access.containers) { containers in
            await inquiries.askAll(.alerts(of: containers))
        }
        let found = told + (await around)
        let visible = found.filter { finding in
            guard finding.rule.isOfContainers else { return true }
            return container.map { $0 == finding.container }
                ?? (finding.container.isEmpty ? access.containers == nil : access.covers(finding.container))
        }
        return Report(
            rules: AlertRule.allCases.map { rule in
                self.rule(rule, Self.current(visible.filter { $0.rule == rule }), of: container)
            }, time: service.now, nodes: answers.map { ($0.node, $0.problem) },
            leftOut: answers.reduce(0) { $0 + Int(clamping: $1.value?.leftOut ?? 0) },
            unknownRules: Set(answers.flatMap { $0.value?.unknownRules ?? [] }).sorted())
    }

    /// What all nodes answer, and all that they find. One may have looked at storage later than another that finds it
    /// wrong, and have left out what is right: of such containers all are asked again, of so few at once that nothing
    /// is left out.
    static func findings(
        of containers: [String]?, ask: @escaping @Sendable ([String]?) async -> [NodeAnswer<AlertFindings>]
    ) async -> (answers: [NodeAnswer<AlertFindings>], found: [AlertFinding]) {
        let answers = await ask(containers)
        var found = answers.flatMap { $0.value?.findings ?? [] }
        let max = AlertFindings.containersMax
        guard answers.count > 1, containers.map({ $0.count > max }) ?? true else { return (answers, found) }
        let full = Set(found.filter { $0.rule.isOfStorage && $0.since != nil }.map(\.container)).sorted()
        await withTaskGroup(of: [NodeAnswer<AlertFindings>].self) { parts in
            for start in stride(from: 0, to: full.count, by: max) {
                parts.addTask { await ask(Array(full[start...].prefix(max))) }
            }
            for await part in parts {
                found += part.flatMap { $0.value?.findings ?? [] }.filter(\.rule.isOfStorage)
            }
        }
        return (answers, found)
    }

    /// What environments hold is known to every node that counts their requests: the latest look is right.
    static func current(_ findings: [AlertFinding]) -> [AlertFinding] {
        guard let rule = findings.first?.rule, rule.isOfStorage else { return findings }
        let places = Dictionary(grouping: findings) {
            TelemetryPlace(container: $0.container, environment: $0.environment)
        }
        return places.values.compactMap { $0.max { $0.time < $1.time } }
    }

    private func rule(_ rule: AlertRule, _ findings: [AlertFinding], of container: String?) -> Rule {
        let (threshold, source) = service.directory.limit(rule.limit, of: rule.isOfContainers ? container : nil)
        let alerts = findings.filter { $0.since != nil }.sorted { left, right in
            if left.isFiring != right.isFiring { return left.isFiring }
            return (left.since ?? 0, left.node, left.container) < (right.since ?? 0, right.node, right.container)
        }
        let values = findings.map(\.value)
        return Rule(
            rule: rule, threshold: threshold, source: source,
            state: alerts.first.map { $0.isFiring ? .firing : .pending } ?? (threshold == 0 ? .off : .ok),
            value: rule.measure == .below ? values.min() : values.max(), alerts: alerts)
    }
}

extension AlertRule {
    /// Whether it judges what an environment held when its requests were last counted.
    fileprivate var isOfStorage: Bool { self == .publicData || self == .transfer }
}
