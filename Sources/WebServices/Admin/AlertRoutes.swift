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

/// What people read of a rule.
extension AlertRule {
    /// What it watches, as a heading has it.
    var title: String {
        switch self {
        case .nodeDown: "A node does not answer"
        case .groupWithoutLeader: "Groups have no leader"
        case .replicaFailing: "A replica cannot apply what its group committed"
        case .missingFiles: "No node has the bytes of files that records name"
        case .replicaBehind: "A replica is behind"
        case .slowDisk: "One in a hundred syncs of the log takes long"
        case .overload: "Requests or reads wait for their turn"
        case .elections: "A group elects leaders again and again"
        case .clock: "A node's clock is wrong"
        case .certificate: "A certificate expires"
        case .diskSpace: "The disk that holds a node's data is nearly full"
        case .waitingEffects: "Notifications wait to be delivered"
        case .waitingMatches: "Changes wait to be matched with subscriptions"
        case .errors: "Answers are errors of the server"
        case .slowAnswers: "One in twenty answers takes long"
        case .publicData: "Public data are near their limit"
        case .transfer: "The month's transfer is near its limit"
        }
    }

    /// What to do then.
    var advice: String {
        switch self {
        case .nodeDown:
            "Start the node, or replace it with `zonekeeper cluster replace`. Nothing is lost while a majority answers."
        case .groupWithoutLeader:
            "The group's zones can be neither read nor written here. Look whether most of its nodes run and reach each "
                + "other: `zonekeeper cluster status`."
        case .replicaFailing:
            "Read why: a full disk, a damaged one, or a build that is too old. `zonekeeper cluster status` says it, "
                + "too."
        case .missingFiles:
            "Start the nodes that are down, one of which may have them, or restore a backup: `docs/assets.md`."
        case .replicaBehind: "Look for a slow disk or too little processor on that node; it catches up by itself."
        case .slowDisk: "Every save waits for the disk of a majority. Look at what else uses it, or replace it."
        case .overload: "Find who asks so much with `zonekeeper telemetry --all`; lower its rate, or add nodes."
        case .elections: "Look for a slow disk or a bad network between the group's nodes."
        case .clock: "Set it by NTP. A node that is a minute off takes no writes."
        case .certificate:
            "`zonekeeper certs renew` makes new ones of the nodes' own, which they take up as they run. An authority's "
                + "file is replaced on every node."
        case .diskSpace: "Make room, or give the node a larger disk. A full one takes no writes."
        case .waitingEffects, .waitingMatches:
            "Look at what changes so much with `zonekeeper telemetry --all`, and whether all nodes answer."
        case .errors: "See which with `zonekeeper requests list --failed`."
        case .slowAnswers: "See which with `zonekeeper telemetry`, and how a query runs with `record query --explain`."
        case .publicData: "Delete what is not needed, or raise databaseBytes: `zonekeeper usage` has what takes room."
        case .transfer: "Raise transferBytesPerMonth, or have clients fetch less. Saves are refused at the limit."
        }
    }
}
