import ArgumentParser
import RecordModel

/// `zonekeeper cluster status`
struct ClusterStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Say of each node whether it is ready, and the shards that it leads.")

    @OptionGroup var options: ConfigOptions

    @Flag(help: "Print JSON: {nodes: [{id, pid, clientURL, peerAddress, state, leads}]}.")
    var json = false

    func run() async throws {
        let statuses = try await LocalCluster(layout: try options.layout()).statuses()
        if json { Console.print(ClusterTable.json(statuses)) } else { print(ClusterTable.text(statuses)) }
    }
}

/// The nodes of a cluster as people and as programs read them.
enum ClusterTable {
    static func text(_ statuses: [NodeStatus]) -> String {
        var table = Table("NODE", "STATE", "PID", "CLIENTS", "PEERS", "LEADS SHARDS")
        for status in statuses {
            table.add([
                "\(status.node.id)", status.state.rawValue, status.pid.map { "\($0)" } ?? "-", status.node.clientURL,
                status.node.peerAddress, status.leads.map(String.init).joined(separator: " "),
            ])
        }
        return table.text
    }

    static func json(_ statuses: [NodeStatus]) -> [UInt8] {
        let nodes = statuses.map { status in
            JSONValue.object([
                JSONValue.Member("id", .integer(Int64(status.node.id))),
                JSONValue.Member("pid", status.pid.map { .integer(Int64($0)) } ?? .null),
                JSONValue.Member("clientURL", .string(status.node.clientURL)),
                JSONValue.Member("peerAddress", .string(status.node.peerAddress)),
                JSONValue.Member("state", .string(status.state.rawValue)),
                JSONValue.Member("leads", .array(status.leads.map { .integer(Int64($0)) })),
            ])
        }
        return JSONValue.object([JSONValue.Member("nodes", .array(nodes))]).serialized()
    }
}
