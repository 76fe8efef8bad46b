import ArgumentParser
import RecordModel

/// `zonekeeper cluster status`
struct ClusterStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract:
            "Say of each node whether it is ready, which shards it leads, and how far replicas are where they shall be."
    )

    @OptionGroup var options: ConfigOptions

    @Flag(help: "Print JSON: {nodes: [{id, pid, clientURL, peerAddress, state, leads}]}.")
    var json = false

    func run() async throws {
        let cluster = LocalCluster(layout: try options.layout())
        let statuses = try await cluster.statuses()
        if json { return Console.print(ClusterTable.json(statuses)) }
        print(ClusterTable.text(statuses))
        let ready = statuses.filter { $0.state == .ready }.map(\.node.clientURL)
        if let overview = try await cluster.overview(ready) { print(ClusterTable.text(overview, besides: statuses)) }
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

    /// What the configuration file does not say: other nodes, and replicas on their way.
    static func text(_ overview: ClusterOverview, besides statuses: [NodeStatus]) -> String {
        let known = statuses.map { Int64($0.node.id) }
        var lines = overview.nodes.filter { !known.contains($0.id) }.map { node in
            "node \(node.id) at \(node.clientURL) is in the cluster too; the configuration file does not name it"
        }
        lines += overview.nodes.filter(\.isLeaving).map { "node \($0.id) is being removed" }
        lines += overview.removed.filter { known.contains($0) }.map { "node \($0) was removed from the cluster" }
        let members = overview.nodes.map(\.id)
        lines += known.filter { !members.contains($0) && !overview.removed.contains($0) }.map {
            "node \($0) is not in the cluster yet: add it with `zonekeeper cluster add \($0)`"
        }
        lines.append(overview.progress)
        return lines.joined(separator: "\n")
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
