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
            lines.append(Table(json["points"]?.array ?? [], [.time("TIME", "time")] + columns).text)
            lines.append("")
        }
        lines.append(Table(json["operations"]?.array ?? [], [.text("OPERATION", "operation")] + columns).text)
        if let containers = json["containers"]?.array, containers.count > 1 {
            let name = Table.Column("CONTAINER", { "\($0.text("container")) \($0.text("environment"))" })
            lines += ["", Table(containers, [name] + columns).text]
        }
        lines += ["", Table([json["total"] ?? .null], [.init("ALL", { _ in "" })] + columns).text]
        return (lines + RequestTable.problems(json)).joined(separator: "\n")
    }

    private static var columns: [Table.Column] {
        [
            .text("REQUESTS", "requests"), .init("ERRORS", errors), .number("P50 MS", "p50"), .number("P95", "p95"),
            .number("P99", "p99"), .init("IN", { Units.bytes($0.amount("bytesIn") ?? 0) }),
            .init("OUT", { Units.bytes($0.amount("bytesOut") ?? 0) }), .text("NOTIFICATIONS", "notifications"),
            .text("USERS", "activeUsers"),
        ]
    }

    private static func errors(_ cell: JSONValue) -> String {
        guard case .object(let codes)? = cell["errorsByCode"] else { return cell.text("errors") }
        return cell.text("errors") + " (" + codes.map { "\($0.key) \($0.value.plainText)" }.joined(separator: ", ")
            + ")"
    }
}
