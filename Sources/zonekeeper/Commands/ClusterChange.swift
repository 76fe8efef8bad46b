import ArgumentParser
import RecordModel
import ServiceClient

struct FollowOptions: ParsableArguments {
    @Flag(help: "Return when the change is decided; the nodes go on with it.")
    var noWait = false

    @Option(
        help: ArgumentHelp(
            "How long to show the progress, in seconds, or such as 10m (usually 30m). The nodes go on in any case.",
            valueName: "time"))
    var wait: Patience?

    var seconds: Double { wait?.seconds ?? 1_800 }
}

struct NewNodeOptions: ParsableArguments {
    @Option(help: "The host at which the other nodes and clients reach the node.")
    var host: String

    @Option(help: "Its client port.")
    var clientPort: Int

    @Option(help: "Its peer port.")
    var peerPort: Int

    @Flag(help: "Do not ask first whether it answers there: it is started later, or cannot be reached from here.")
    var unasked = false

    func validate() throws {
        for (name, port) in [("--client-port", clientPort), ("--peer-port", peerPort)]
        where !(1...65_535).contains(port) {
            throw ValidationError("\(name): 1 to 65535 is expected")
        }
        if host.isEmpty || ClusterFile.Node.isWildcard(host) {
            throw ValidationError("--host: the name or the address at which the others reach the node is expected")
        }
    }

    private func node(_ id: UInt64) -> ClusterFile.Node {
        ClusterFile.Node(id: id, host: host, clientPort: clientPort, peerPort: peerPort)
    }

    /// Asks the node whether it is where it is said to be, before anything is moved to it.
    /// - Throws: `CommandFailure` where nobody answers there, or the cluster has the node at another place.
    func check(_ id: UInt64, by connection: Connection) async throws {
        let overview = try ClusterOverview(await connection.administer("GET", "cluster").json())
        let new = node(id)
        if let present = overview.nodes.first(where: { $0.id == id }) {
            if (present.peerAddress, present.clientURL) == ("\(host):\(peerPort)", new.clientURL) { return }
            throw CommandFailure(
                "node \(id) is in the cluster already, at \(present.peerAddress) and \(present.clientURL): give the new node "
                    + "another id; if that address is wrong, `zonekeeper cluster replace \(id) NEWID --host ...` puts a node "
                    + "with another id in its place")
        }
        // The server says why a removed node's id is not taken.
        if unasked || overview.removed.contains(Int64(clamping: id)) { return }
        var request = ServiceRequest(.get, "/health/live")
        (request.patienceSeconds, request.timeoutSeconds) = (connection.settings.patienceSeconds ?? 10, 5)
        // It may be starting at this moment.
        request.waitsForConnection = true
        let client = ServiceClient(http: connection.client.http, urls: [new.clientURL])
        do {
            _ = try await client.send(request)
        } catch let error as ServiceUnreachable {
            throw CommandFailure(
                "\(error). Nothing was changed: start node \(id) and name the host and ports at which it is reached, or say "
                    + "--unasked")
        }
    }

    func json(id: UInt64, inPlaceOf old: UInt64? = nil) -> JSONValue {
        .members([
            "old": old.map { .integer(Int64(clamping: $0)) }, "id": .integer(Int64(clamping: id)),
            "peerHost": .string(host), "peerPort": .integer(Int64(peerPort)), "clientURL": .string(node(id).clientURL),
        ])
    }
}

extension Connection {
    /// The same, but where nobody answers at the URLs so far, the cluster's other nodes are asked.
    fileprivate func reaching(_ overview: ClusterOverview) -> Connection {
        reaching(overview.nodes.filter { $0.hasJoined && !$0.isLeaving }.map(\.clientURL))
    }
}

/// Has the cluster's map changed, and shows how far the nodes have come.
struct ClusterChange {
    var connection: Connection
    var follow: FollowOptions
    var isJSON: Bool

    func run(
        _ method: String, _ route: String, parameters: KeyValuePairs<String, String?> = [:],
        _ body: JSONValue? = nil, isDone: (ClusterOverview) -> Bool,
        progress: (ClusterOverview) -> String = \.progress, result: String
    ) async throws {
        // Who is asked may be the one that leaves: then another says what came of it.
        let nodes = try ClusterOverview(await connection.administer("GET", "cluster").json())
        let connection = connection.reaching(nodes)
        var response = try await connection.administer(
            method, route, parameters: parameters, body: body, isRepeatable: true)
        if !follow.noWait { response = try await wait(response, by: connection, isDone: isDone, progress: progress) }
        if isJSON { return Console.print(response.body) }
        print(result)
    }

    private func wait(
        _ first: ServiceResponse, by connection: Connection, isDone: (ClusterOverview) -> Bool,
        progress: (ClusterOverview) -> String
    ) async throws -> ServiceResponse {
        let end = ContinuousClock.now + .seconds(follow.seconds)
        var line = ProgressLine()
        var connection = connection
        var response = first
        while true {
            let overview = try ClusterOverview(response.json())
            if isDone(overview) {
                line.finish(progress(overview))
                return response
            }
            line.show(progress(overview))
            // All nodes that were there before may go.
            connection = connection.reaching(overview)
            response = try await look(by: connection, until: end, progress(overview), &line)
        }
    }

    /// How the cluster is a little later.
    /// - Throws: `CommandFailure` where that is too late.
    private func look(
        by connection: Connection, until end: ContinuousClock.Instant, _ progress: String, _ line: inout ProgressLine
    ) async throws -> ServiceResponse {
        var problem: CommandFailure?
        while ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(300))
            do {
                return try await connection.administer("GET", "cluster")
            } catch let error as CommandFailure {
                // Who is asked may be the one that leaves, or be without the directory for a moment.
                line.show("asking again: \(error)")
                problem = error
            }
        }
        line.abandon()
        let state = problem.map { "\(progress) when asked last, and now: \($0)" } ?? "\(progress), and the nodes go on"
        throw CommandFailure(
            "not done after \(Int(follow.seconds)) s: \(state). See how far they come with `zonekeeper cluster "
                + "status`, or run this again")
    }
}

/// What the administration says of the cluster's nodes and groups, in words.
struct ClusterOverview: Hashable, Sendable {
    struct Group: Hashable, Sendable {
        /// Nil for the directory.
        var shard: Int64?
        var isSettled: Bool
        var leader: Int64?
        var preferredLeader: Int64?
        /// What holds it up; empty where nothing is known to.
        var waitsFor: String
        /// Entries that the member which is furthest behind lacks, and its node.
        var lag: Lag?

        var name: String { shard.map { "shard \($0)" } ?? "directory" }

        /// What an unsettled group is at.
        var state: String {
            if leader == nil { return "\(name) has no leader" }
            let behind = lag.map { ", node \($0.node) lacks \($0.entries) entries" } ?? ""
            return "\(name): \(waitsFor.isEmpty ? "a change is under way" : waitsFor)\(behind)"
        }
    }

    struct Lag: Hashable, Sendable {
        var node: Int64
        var entries: Int64
    }

    struct Node: Hashable, Sendable {
        var id: Int64
        var clientURL: String
        var peerAddress: String
        var isLeaving: Bool
        var hasJoined: Bool
    }

    var isSettled: Bool
    var nodes: [Node]
    var removed: [Int64]
    var groups: [Group]

    init(_ json: JSONValue) throws(CommandFailure) {
        guard case .integer? = json["epoch"], case .bool(let isSettled)? = json["settled"],
            let nodes = json["nodes"]?.array, let groups = json["groups"]?.array
        else { throw CommandFailure("the answer says nothing of a cluster. Is this a Zonekeeper node?") }
        self.isSettled = isSettled
        self.nodes = nodes.map { node in
            Node(
                id: node.amount("id") ?? 0, clientURL: node.text("clientURL"),
                peerAddress: node.text("peerAddress"), isLeaving: node["leaving"] == .bool(true),
                hasJoined: node["joined"] == .bool(true))
        }
        removed = (json["removed"]?.array ?? []).compactMap(\.amount)
        self.groups = groups.map { group in
            let lags = (group["lag"]?.array ?? []).compactMap { entry -> Lag? in
                guard let node = entry.amount("node"), let entries = entry.amount("missingEntries") else { return nil }
                return Lag(node: node, entries: entries)
            }
            return Group(
                shard: group.amount("shard"), isSettled: group["settled"] == .bool(true),
                leader: group.amount("leader"),
                preferredLeader: group.amount("preferredLeader"), waitsFor: group.text("waitsFor"),
                lag: lags.max { $0.entries < $1.entries })
        }
    }

    /// How far the replicas have moved.
    var progress: String {
        let settled = groups.count { $0.isSettled }
        var parts = ["\(settled) of \(groups.count) groups have their members"]
        if let first = groups.first(where: { !$0.isSettled }) { parts.append(first.state) }
        let absent = nodes.filter { !$0.hasJoined }.map { "\($0.id)" }
        if !absent.isEmpty { parts.append("node \(absent.joined(separator: ", ")) has not come yet") }
        if settled == groups.count, let leaving = nodes.first(where: \.isLeaving) {
            parts.append("node \(leaving.id) is about to go")
        }
        return parts.joined(separator: "; ")
    }

    /// How far leadership has moved.
    func leaderProgress(_ isLate: (Group) -> Bool) -> String {
        let late = groups.filter(isLate)
        let first = late.first.map { group in
            "; \(group.name) is still led by \(group.leader.map { "node \($0)" } ?? "nobody")"
        }
        return "\(groups.count - late.count) of \(groups.count) groups are led as asked" + (first ?? "")
    }
}
