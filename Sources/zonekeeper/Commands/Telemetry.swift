import ArgumentParser
import RecordModel
import ServiceClient

struct TelemetryCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "telemetry",
        abstract: "Show what requests came to: how many, how fast, which errors, how many users.",
        discussion: """
            Of the last hour by minutes, the last day by ten minutes, or 30 days by hours, over all nodes. Nodes keep it \
            in memory, and begin anew when they are started.
            """)

    /// How far back.
    enum Range: String, CaseIterable, ExpressibleByArgument {
        case hour, day, month
    }

    @OptionGroup var options: ClientOptions

    @Option(help: "How far back.")
    var range = Range.hour

    @Option(help: ArgumentHelp("Of one group of operations, such as records/write.", valueName: "name"))
    var operation: String?

    @Flag(help: "Of all containers, and what is of none.")
    var all = false

    @Flag(help: "Show every step, not only the sums.")
    var steps = false

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "GET", "telemetry",
            parameters: [
                "range": range.rawValue, "container": all ? nil : try connection.container(),
                "environment": all ? nil : connection.settings.environment, "operation": operation,
            ])
        try show(response, Self.text(try response.json(), hasSteps: steps))
    }

    static func text(_ json: JSONValue, hasSteps: Bool) -> String {
        var lines: [String] = []
        if hasSteps {
            lines.append(Table(json["points"]?.array ?? [], [("TIME", { $0.time("time") })] + columns).text)
            lines.append("")
        }
        lines.append(
            Table(json["operations"]?.array ?? [], [("OPERATION", { $0.text("operation") })] + columns).text)
        if let containers = json["containers"]?.array, containers.count > 1 {
            let name: Table.Column = ("CONTAINER", { "\($0.text("container")) \($0["environment"]?.string ?? "")" })
            lines += ["", Table(containers, [name] + columns).text]
        }
        lines += ["", Table([json["total"] ?? .null], [("ALL", { _ in "" })] + columns).text]
        return (lines + RequestTable.problems(json)).joined(separator: "\n")
    }

    private static var columns: [Table.Column] {
        [
            ("REQUESTS", { $0.text("requests") }), ("ERRORS", errors), ("P50 MS", { RequestTable.number($0["p50"]) }),
            ("P95", { RequestTable.number($0["p95"]) }), ("P99", { RequestTable.number($0["p99"]) }),
            ("IN", { Units.bytes($0.amount("bytesIn") ?? 0) }), ("OUT", { Units.bytes($0.amount("bytesOut") ?? 0) }),
            ("NOTIFICATIONS", { $0.text("notifications") }), ("USERS", { $0.text("activeUsers") }),
        ]
    }

    private static func errors(_ cell: JSONValue) -> String {
        guard case .object(let codes)? = cell["errorsByCode"] else { return cell.text("errors") }
        return cell.text("errors") + " (" + codes.map { "\($0.key) \($0.value.plainText)" }.joined(separator: ", ")
            + ")"
    }
}
