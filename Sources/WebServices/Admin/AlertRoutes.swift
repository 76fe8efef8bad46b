import Directory
import RecordModel
import Service

/// `GET alerts`: every rule of alerts, and what is wrong by it, over all nodes.
struct AlertRoutes {
    let request: AdminRequest

    func show() async throws(RequestFailure) -> Reply {
        let report = try await request.administration.alerts.report(of: request.url.text("container"))
        return Reply { writer in
            writer.member("time", integer: report.time)
            writer.member("firing", count: report.rules.flatMap(\.alerts).count(where: \.isFiring))
            writer.list("rules", report.rules) { Self.write($0, to: &$1) }
            writer.list("nodes", report.nodes) { $1.members(of: $0) }
            if report.leftOut > 0 { writer.member("leftOut", count: report.leftOut) }
            if !report.unknownRules.isEmpty { writer.list("unknownRules", report.unknownRules) }
        }
    }

    private static func write(_ rule: AlertAdministration.Rule, to writer: inout JSONWriter) {
        let (kind, limit) = (rule.rule, rule.rule.limit)
        writer.member("name", kind.rawValue)
        writer.member("title", kind.title)
        writer.member("advice", kind.advice)
        writer.member("severity", kind.severity.rawValue)
        writer.member("measure", kind.measure.rawValue)
        writer.member("minutes", integer: kind.minutes)
        writer.member("limit", limit.rawValue)
        writer.member("unit", limit.unit.rawValue)
        writer.member("ofContainers", kind.isOfContainers)
        writer.member("threshold", integer: rule.threshold)
        writer.member("source", rule.source.rawValue)
        writer.member("state", rule.state.rawValue)
        writer.optional("value", integer: rule.value)
        writer.list("alerts", rule.alerts) { alert, writer in
            writer.member("state", (alert.isFiring ? AlertAdministration.State.firing : .pending).rawValue)
            writer.member("node", count: alert.node)
            if !alert.container.isEmpty { writer.member("container", alert.container) }
            writer.optional("environment", alert.environment?.rawValue)
            writer.member("value", integer: alert.value)
            writer.member("threshold", integer: alert.threshold)
            writer.optional("since", integer: alert.since)
            if !alert.detail.isEmpty { writer.member("detail", alert.detail) }
        }
    }
}
