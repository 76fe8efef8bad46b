import ArgumentParser
import Foundation
import RecordModel
import ServiceClient
import Storage

struct ClusterCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cluster",
        abstract:
            "Start, look at and stop the nodes of a configuration file on this machine; change who is in a cluster.",
        subcommands: [
            ClusterUpCommand.self, ClusterStatusCommand.self, ClusterHealthCommand.self, ClusterDownCommand.self,
            ClusterAddCommand.self, ClusterRemoveCommand.self, ClusterReplaceCommand.self, ClusterTransferCommand.self,
        ])
}

struct ConfigOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The cluster's configuration file. Its `data` folder is relative to the file's own folder.",
            valueName: "file"))
    var config: String

    func layout() throws(CommandFailure) -> ClusterLayout { try ClusterLayout.read(config) }
}

struct ClusterUpCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "up", abstract: "Start every node of a configuration file, and wait until each is ready.",
        discussion: """
            Certificates, the encryption key and the administrator's token are made where they are missing. \
            Nodes that run already are left alone, so this may be done again at any time.
            """)

    @OptionGroup var options: ConfigOptions

    @Option(help: "How long to wait for the nodes, in seconds.")
    var timeout = 60

    func run() async throws {
        let layout = try options.layout()
        do throws(DiskError) {
            try makeFolder(at: layout.data + "/logs")
        } catch {
            throw CommandFailure("the data folder \(layout.data) cannot be made: \(error.reason)")
        }
        let made = try CertificateMaking.makeMissing(for: layout)
        if made.authorities || !made.nodes.isEmpty {
            print("made development certificates in \(layout.certificates)")
        }
        if made.encryptionKey { print("made the encryption key \(layout.encryptionKey)") }
        if try AdministratorSecret.makeIfMissing(at: layout.administratorToken) {
            print("made the administrator's token \(layout.administratorToken)")
        }
        let cluster = LocalCluster(layout: layout)
        let started = try cluster.startMissing()
        let statuses = try await cluster.awaitReady(started, timeoutSeconds: timeout)
        print(ClusterTable.text(statuses))
    }
}

struct ClusterStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract:
            "Say of each node whether it is ready, which shards it leads, and whether replicas are in their places.",
        discussion: "The exit code is 1 where a node of the cluster is not ready.")

    @Option(
        help: ArgumentHelp(
            "The cluster's configuration file. Without one ZONEKEEPER_URLS, ZONEKEEPER_CA and "
                + "ZONEKEEPER_ADMIN_TOKEN_FILE say where to ask.", valueName: "file"))
    var config: String?

    @Flag(
        help: """
            Print JSON: {nodes: [{id, pid, clientURL, peerAddress, state, version, featureLevel, obstacle, leads, \
            assets, waitingEffects, waitingMatches}]}.
            """
    )
    var json = false

    func run() async throws {
        let (statuses, overview) = try await state()
        let problem = ClusterTable.problem(statuses, overview)
        if json {
            Console.print(ClusterTable.json(statuses))
        } else {
            print(ClusterTable.text(statuses))
            if let overview { print(ClusterTable.text(overview, besides: statuses.filter(\.isNamed))) }
            if let problem { print(problem) }
        }
        if problem != nil { throw ExitCode.failure }
    }

    private func state() async throws -> (statuses: [NodeStatus], overview: ClusterOverview?) {
        guard let config else { return try await ClientOptions.parse([]).withConnection(Self.state(on:)) }
        let cluster = LocalCluster(layout: try ClusterLayout.read(config))
        let named = try await cluster.statuses()
        let overview = try await cluster.overview(named.filter { $0.state == .ready }.map(\.clientURL))
        // Members that the file lacks count as those that it names.
        let others = (overview?.nodes ?? []).filter { node in !named.contains { Int64($0.id) == node.id } }
        let statuses = named + (try await cluster.statuses(of: others))
        return (statuses.sorted { $0.id < $1.id }, overview)
    }

    /// The nodes as the cluster itself names them, each asked for its state.
    static func state(on connection: Connection) async throws -> (statuses: [NodeStatus], overview: ClusterOverview?) {
        let overview = try ClusterOverview(await connection.administer("GET", "cluster").json())
        let (nodes, client) = (overview.nodes.map(NodeStatus.init), connection.client)
        return (await NodeStatus.ask(nodes, client.http, administratorSecret: client.administratorSecret), overview)
    }
}

enum ClusterTable {
    static func text(_ statuses: [NodeStatus]) -> String {
        var table = Table("NODE", "STATE", "PID", "CLIENTS", "PEERS", "BUILD", "LEVEL", "LEADS SHARDS")
        for status in statuses {
            table.add([
                "\(status.id)", status.state.rawValue, status.pid.map { "\($0)" } ?? "-", status.clientURL,
                status.peerAddress, status.version.isEmpty ? "-" : status.version,
                status.featureLevel.map { "\($0)" } ?? "-", status.leads.map(String.init).joined(separator: " "),
            ])
        }
        let sentences = statuses.flatMap { status in
            ([status.obstacle].compactMap(\.self) + status.lags + status.assets.sentences)
                .map { "\nnode \(status.id): \($0)" }
        }
        return table.text + sentences.joined()
    }

    /// What the configuration file does not say: other nodes, and replicas on their way.
    /// - Parameter statuses: the nodes that the file names.
    static func text(_ overview: ClusterOverview, besides statuses: [NodeStatus]) -> String {
        let known = statuses.map { Int64($0.id) }
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

    /// What is said of members that are not ready; nil where all are.
    static func problem(_ statuses: [NodeStatus], _ overview: ClusterOverview?) -> String? {
        let members = statuses.filter { overview?.removed.contains(Int64($0.id)) != true }
        let count = members.count { $0.state != .ready }
        if count == 0 { return nil }
        let text = "\(count) of \(members.count) nodes \(count == 1 ? "is" : "are") not ready"
        guard let overview else { return text }
        let leaderless = overview.groups.count { $0.leader == nil }
        return leaderless == 0
            ? "\(text); every group still has a leader"
            : "\(text); \(leaderless) of \(overview.groups.count) groups have no leader"
    }

    static func json(_ statuses: [NodeStatus]) -> [UInt8] {
        let nodes = statuses.map { status in
            JSONValue.members([
                "id": .integer(Int64(clamping: status.id)), "pid": status.pid.map { .integer(Int64($0)) } ?? .null,
                "clientURL": .string(status.clientURL), "peerAddress": .string(status.peerAddress),
                "state": .string(status.state.rawValue), "version": .string(status.version),
                "featureLevel": status.featureLevel.map { .integer(Int64($0)) } ?? .null,
                "obstacle": .given(status.obstacle) ?? .null, "leads": .array(status.leads.map { .integer(Int64($0)) }),
                "assets": JSONValue.members([
                    "fetching": .integer(Int64(status.assets.fetching)),
                    "missing": .integer(Int64(status.assets.missing)),
                    "missingFiles": .strings(status.assets.missingFiles),
                ]),
                "waitingEffects": .integer(status.waitingEffects), "waitingMatches": .integer(status.waitingMatches),
            ])
        }
        return JSONValue.members(["nodes": .array(nodes)]).serialized()
    }
}

struct ClusterDownCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "down", abstract: "Stop the nodes that `cluster up` started on this machine.")

    @OptionGroup var options: ConfigOptions

    @Flag(help: "Kill what does not stop. Nothing acknowledged is lost; the next start takes longer.")
    var force = false

    @Option(help: "How long to wait for the nodes, in seconds.")
    var timeout = 20

    func run() async throws {
        let stopped = try await LocalCluster(layout: try options.layout()).stop(
            timeoutSeconds: timeout, isForced: force)
        print(stopped.isEmpty ? "no node was running" : "stopped node \(stopped.listed)")
    }
}

struct ClusterAddCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Take a new node into the cluster, which takes its part of the shards.",
        discussion: """
            The node is started with a configuration file that has all nodes, itself among them, an empty folder, and \
            certificates of its own (`zonekeeper certs create`). It is asked first whether it is there. Its id must \
            never have been another node's.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var follow: FollowOptions
    @OptionGroup var new: NewNodeOptions

    @Argument(help: "The node's id.")
    var node: UInt64

    func run(on connection: Connection) async throws {
        try await new.check(node, by: connection)
        try await ClusterChange(connection: connection, follow: follow, isJSON: options.json).run(
            "POST", "cluster/nodes", new.json(id: node),
            isDone: { $0.isSettled && $0.nodes.contains { $0.id == Int64(node) && $0.hasJoined } },
            result: "node \(node) is in the cluster")
    }
}

struct ClusterRemoveCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Move everything away from a node, and let it go.",
        discussion: """
            The node may be running or lost. When nothing is left on it, it ends by itself, and its folder can be \
            deleted. Its id is not given again. A node that every shard needs cannot go before another has come.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var follow: FollowOptions

    @Argument(help: "The node's id.")
    var node: UInt64

    func run(on connection: Connection) async throws {
        try await ClusterChange(connection: connection, follow: follow, isJSON: options.json).run(
            "DELETE", "cluster/nodes", parameters: ["id": "\(node)"],
            isDone: { $0.isSettled && $0.removed.contains(Int64(node)) },
            result: "node \(node) is not in the cluster any more; its folder can be deleted")
    }
}

struct ClusterReplaceCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "replace", abstract: "Let a new node take the place of another, replica by replica.",
        discussion: """
            The old node may be running or lost. A node that only lost its folder needs no command: it is started \
            again, and fetches its data from the others.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var follow: FollowOptions
    @OptionGroup var new: NewNodeOptions

    @Argument(help: "The id of the node that leaves.")
    var old: UInt64

    @Argument(help: "The id of the node that comes.")
    var node: UInt64

    func run(on connection: Connection) async throws {
        try await new.check(node, by: connection)
        try await ClusterChange(connection: connection, follow: follow, isJSON: options.json).run(
            "POST", "cluster/replace", new.json(id: node, inPlaceOf: old),
            isDone: { $0.isSettled && $0.removed.contains(Int64(old)) },
            result: "node \(node) has taken the place of node \(old), whose folder can be deleted")
    }
}

struct ClusterTransferCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfer",
        abstract: "Say which node leads a shard or the directory, or take the lead from a node.",
        discussion: """
            zonekeeper cluster transfer 3 --to 2              node 2 leads shard 3
            zonekeeper cluster transfer directory --to 2      node 2 leads the directory
            zonekeeper cluster transfer --all-from 1          node 1 leads nothing, the others do
            zonekeeper cluster transfer --all-from 1 --to 2   node 2 leads what node 1 led, where it has a replica

            It holds until it is said otherwise: a node that was away gets its lead back.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var follow: FollowOptions

    @Argument(help: "The number of a shard, or `directory`.")
    var group: GroupArgument?

    @Option(help: ArgumentHelp("The node that shall lead nothing.", valueName: "node"))
    var allFrom: UInt64?

    @Option(help: ArgumentHelp("The node that shall lead.", valueName: "node"))
    var to: UInt64?

    func validate() throws {
        if (group == nil) == (allFrom == nil) {
            throw ValidationError("a shard or `directory` is expected, or --all-from with a node, and not both")
        }
        if group != nil, to == nil { throw ValidationError("--to is missing: the node that shall lead") }
    }

    private var result: String {
        let heir = to.map { "node \($0)" } ?? "the other nodes"
        if let allFrom { return "what node \(allFrom) led is led by \(heir) where they have a replica" }
        return "\(group?.shard.map { "shard \($0)" } ?? "the directory") is led by \(heir)"
    }

    func run(on connection: Connection) async throws {
        let heir = to.map { JSONValue.integer(Int64(clamping: $0)) }
        let body = JSONValue.members([
            "shard": (group?.shard).map { .integer(Int64($0)) }, "from": allFrom.map { .integer(Int64(clamping: $0)) },
            (allFrom == nil ? "node" : "to"): heir,
        ])
        try await ClusterChange(connection: connection, follow: follow, isJSON: options.json).run(
            "POST", "cluster/leaders", body, isDone: { !$0.groups.contains(where: isLate) },
            progress: { $0.leaderProgress(isLate) }, result: result)
    }

    /// Whether a group that this command is about is still to get the leader that the map has for it. What others wait
    /// for is not its concern: the node that shall lead them may be away for long.
    private func isLate(_ group: ClusterOverview.Group) -> Bool {
        let isMeant =
            if let from = allFrom.map({ Int64(clamping: $0) }) {
                // A leader that nobody could ask may be that node.
                [nil, from].contains(group.leader) && group.preferredLeader != from
            } else {
                group.shard == self.group?.shard.map { Int64($0) }
            }
        return isMeant && group.leader != group.preferredLeader
    }
}

struct GroupArgument: ExpressibleByArgument, Hashable {
    /// Nil for the directory.
    var shard: Int?

    init?(argument: String) {
        if argument == "directory" { return }
        guard let number = Int(argument), number >= 0 else { return nil }
        shard = number
    }
}

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
        let table = Table(
            json["nodes"]?.array ?? [],
            [
                .text("NODE", "id"), .init("STATE", state), .text("BUILD", "version"),
                .init("UP", { $0.amount("uptimeSeconds").map { Units.seconds(Double($0)) } ?? "" }),
                .number("CPU S", "cpuSeconds"), .bytes("MEMORY", "memoryBytes"),
                .bytes("DISK FREE", "diskFreeBytes"), .bytes("OF", "diskBytes"), .text("LEADS", "leads"),
                .text("BEHIND", "unappliedEntries"), .time("CERTIFICATE UNTIL", "certificateExpires"),
            ])
        return ([table.text] + problems(json)).joined(separator: "\n")
    }

    private static func state(_ node: JSONValue) -> String {
        guard node["answers"] == .bool(true) else { return "no answer" }
        return node["ready"] == .bool(true) ? "ready" : "not ready"
    }

    private static func problems(_ json: JSONValue) -> [String] {
        (json["nodes"]?.array ?? []).flatMap { node in
            let name = "node \(node.text("id"))"
            return [node["problem"]?.string, node["obstacle"]?.string].compactMap(\.self).map {
                $0.hasPrefix(name + " ") ? $0 : "\(name): \($0)"
            }
        }
    }
}
