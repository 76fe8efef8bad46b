import ArgumentParser
import RecordModel
import ServiceClient

struct ClusterHealthCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Show what every node is at: memory, disk, processors, its clock, its certificate's end.",
        discussion: "Any node answers for all. The exit code is 1 where one does not answer, or takes no clients.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let response = try await connection.administer("GET", "cluster/health")
        let json = try response.json()
        try show(response, Self.text(json))
        if !Self.problems(json).isEmpty { throw ExitCode.failure }
    }

    static func text(_ json: JSONValue) -> String {
        let size: (String) -> (JSONValue) -> String = { key in
            { node in node.amount(key).map { Units.bytes($0) } ?? "" }
        }
        let table = Table(
            json["nodes"]?.array ?? [],
            [
                ("NODE", { $0.text("id") }), ("STATE", state), ("BUILD", { $0.text("version") }),
                ("UP", { $0.amount("uptimeSeconds").map { Units.seconds(Double($0)) } ?? "" }),
                ("CPU S", { RequestTable.number($0["cpuSeconds"]) }), ("MEMORY", size("memoryBytes")),
                ("DISK FREE", size("diskFreeBytes")), ("OF", size("diskBytes")), ("LEADS", { $0.text("leads") }),
                ("BEHIND", { $0.text("unappliedEntries") }), ("CERTIFICATE UNTIL", { $0.time("certificateExpires") }),
            ])
        return ([table.text] + problems(json)).joined(separator: "\n")
    }

    private static func state(_ node: JSONValue) -> String {
        guard node["answers"] == .bool(true) else { return "no answer" }
        return node["ready"] == .bool(true) ? "ready" : "not ready"
    }

    /// What is wrong with nodes, a line each.
    private static func problems(_ json: JSONValue) -> [String] {
        (json["nodes"]?.array ?? []).flatMap { node in
            let name = "node \(node.text("id"))"
            return [node["problem"]?.string, node["obstacle"]?.string].compactMap(\.self).map {
                $0.hasPrefix(name + " ") ? $0 : "\(name): \($0)"
            }
        }
    }
}
