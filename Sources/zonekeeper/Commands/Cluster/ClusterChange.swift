import ArgumentParser
import RecordModel
import ServiceClient

/// How long a command follows what it brought about.
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

/// A node that is to be in the cluster: where the others and clients reach it.
struct NewNodeOptions: ParsableArguments {
    @Option(help: "The host at which the other nodes and clients reach the node.")
    var host: String

    @Option(help: "Its client port.")
    var clientPort: Int

    @Option(help: "Its peer port.")
    var peerPort: Int

    func validate() throws {
        for (name, port) in [("--client-port", clientPort), ("--peer-port", peerPort)]
        where !(1...65_535).contains(port) {
            throw ValidationError("\(name): 1 to 65535 is expected")
        }
        if host.isEmpty || ClusterFile.Node.isWildcard(host) {
            throw ValidationError("--host: the name or the address at which the others reach the node is expected")
        }
    }

    func members(id: UInt64) -> [(String, JSONValue)] {
        let node = ClusterFile.Node(id: id, host: host, clientPort: clientPort, peerPort: peerPort)
        return [
            ("id", .integer(Int64(id))), ("peerHost", .string(host)), ("peerPort", .integer(Int64(peerPort))),
            ("clientURL", .string(node.clientURL)),
        ]
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

    /// - Parameters:
    ///   - isDone: whether there is nothing to wait for any more.
    ///   - progress: the line to show meanwhile.
    ///   - result: the last line.
    func run(
        _ method: String, _ route: String, parameters: [(name: String, value: String)] = [],
        _ members: [(String, JSONValue)] = [], isDone: (ClusterOverview) -> Bool, progress: (ClusterOverview) -> String,
        result: String
    ) async throws {
        let body = members.isEmpty ? [] : JSONValue.object(members.map { .init($0.0, $0.1) }).serialized()
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
            "not done after \(Int(follow.seconds)) s: \(state). See how far they come with `zonekeeper cluster status`, or run this "
                + "again")
    }
}
