import ArgumentParser
import RecordModel
import ServiceClient

struct AlertsCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "alerts", abstract: "Show what is wrong, by the cluster's rules of alerts.",
        discussion: """
            Of all nodes; any of them answers for all. The exit code is 1 while something fires. Thresholds are \
            limits: `zonekeeper limits set --cluster alertErrorPercent=5` sets one, and 0 switches its rule off.
            """)

    @OptionGroup var options: ClientOptions

    @Flag(help: "Show every rule with its threshold, also where all is well.")
    var rules = false

    @Flag(help: "Of containers' rules: of the container alone, with its own thresholds.")
    var oneContainer = false

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "GET", "alerts", parameters: ["container": oneContainer ? try connection.container() : nil])
        let json = try response.json()
        try show(response, Self.text(json, hasRules: rules, isOfOne: oneContainer))
        if json.amount("firing") != 0 { throw ExitCode.failure }
    }

    static func text(_ json: JSONValue, hasRules: Bool, isOfOne: Bool) -> String {
        let rules = json["rules"]?.array ?? []
        var lines: [String] = []
        if hasRules { lines += [table(of: rules), ""] }
        for rule in rules {
            let alerts = rule["alerts"]?.array ?? []
            guard !alerts.isEmpty else { continue }
            lines.append("\(rule.text("title")) (\(rule.text("name")), \(rule.text("severity")))")
            lines += alerts.map { "    " + line(of: $0, rule) } + ["    \(rule.text("advice"))", ""]
        }
        lines.append(summary(of: rules))
        if let leftOut = json.amount("leftOut") {
            let isOfContainers = rules.contains {
                $0["ofContainers"] == .bool(true) && $0["alerts"]?.array?.isEmpty == false
            }
            let hint = isOfContainers && !isOfOne ? ": of one container, --one-container tells all" : ""
            lines.append("\(leftOut) more alerts are not told" + hint)
        }
        if let unknown = json["unknownRules"]?.array?.compactMap(\.string) {
            let names = unknown.joined(separator: ", ")
            lines.append("rules of a newer build are missing here; ask a node that runs it: \(names)")
        }
        return (lines + RequestTable.problems(json)).joined(separator: "\n")
    }

    private static func table(of rules: [JSONValue]) -> String {
        Table(
            rules,
            [
                .text("RULE", "name"), .text("STATE", "state"), .text("SEVERITY", "severity"),
                .init("VALUE", { LimitValue.text($0["value"], unit(of: $0)) }), .init("THRESHOLD", threshold),
                .init("SET FOR", { $0.text("source") == "default" ? "" : "the \($0.text("source"))" }),
                .text("LIMIT", "limit"),
            ]
        ).text
    }

    private static func unit(of rule: JSONValue) -> ContainerLimit.Unit? { .init(rawValue: rule.text("unit")) }

    private static func threshold(of rule: JSONValue) -> String {
        guard rule.amount("threshold") != 0 else { return "off" }
        let bound = LimitValue.text(rule["threshold"], unit(of: rule))
        let minutes = rule.amount("minutes") ?? 0
        return (rule.text("measure") == "below" ? "at most " : "") + bound
            + (minutes > 0 ? ", for \(minutes) minutes" : "")
    }

    private static func line(of alert: JSONValue, _ rule: JSONValue) -> String {
        let node = "node \(alert.text("node"))"
        let place = alert["container"]?.string.map { "\($0) \(alert["environment"]?.string ?? "")" }
        let parts = [
            alert.text("state"), "since \(alert.time("since"))", place.map { "\($0) on \(node)" } ?? node,
            LimitValue.text(alert["value"], unit(of: rule)), alert["detail"]?.string ?? "",
        ]
        return parts.filter { !$0.isEmpty }.joined(separator: "  ")
    }

    private static func summary(of rules: [JSONValue]) -> String {
        let counts = ["firing", "pending", "ok", "off"].compactMap { state -> String? in
            let count = rules.count { $0.text("state") == state }
            return count > 0 ? "\(count) \(state)" : nil
        }
        return "\(rules.count) rules: \(counts.joined(separator: ", "))"
    }
}
