import AsyncHTTPClient
import Foundation
import RecordModel
import ServiceClient

struct LocalCluster {
    var layout: ClusterLayout

    private var processes: [NodeProcess] { layout.file.nodes.map { NodeProcess(node: $0, layout: layout) } }

    /// Starts the nodes that do not run, once all their ports are found to be free.
    func startMissing() throws(CommandFailure) -> [UInt64: Int32] {
        let missing = processes.filter { $0.pid == nil }
        for process in missing {
            for (key, port) in [("clientPort", process.node.clientPort), ("peerPort", process.node.peerPort)] {
                guard let problem = PortCheck.problem(host: process.node.host, port: port) else { continue }
                throw CommandFailure(
                    "port \(port) on \(process.node.host) \(problem). It is the \(key) of node \(process.node.id): "
                        + "stop what uses it, or change it in \(layout.path). No node was started")
            }
        }
        var started: [UInt64: Int32] = [:]
        for process in missing { started[process.node.id] = try process.start() }
        return started
    }

    /// Waits until every node is ready, but those that the cluster removed, and says how far it has come.
    /// - Throws: `CommandFailure` with the end of a node's log, when that node ends or the time is over.
    func awaitReady(_ started: [UInt64: Int32], timeoutSeconds: Int) async throws -> [NodeStatus] {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(timeoutSeconds)
        var progress = ProgressLine()
        var removed: Set<UInt64> = []
        while true {
            for process in processes {
                let id = process.node.id
                guard let pid = started[id], let how = DetachedProcess.end(of: pid) else { continue }
                progress.abandon()
                unlink(layout.pidFile(of: process.node))
                guard how == .exited(NodeRunner.excludedExitCode) else {
                    throw CommandFailure("node \(id) ended with \(how). Its log ends:\n\(process.logTail())")
                }
                removed.insert(id)
                Console.note("node \(id) was removed from the cluster: take it out of \(layout.path)")
            }
            let statuses = try await statuses().filter { !removed.contains($0.id) }
            let ready = statuses.count { $0.state == .ready }
            if ready == statuses.count {
                progress.finish("\(ready) of \(statuses.count) nodes ready")
                return statuses
            }
            guard clock.now < end else {
                progress.abandon()
                throw late(statuses, timeoutSeconds)
            }
            progress.show("waiting for nodes: \(ready) of \(statuses.count) ready")
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    private func late(_ statuses: [NodeStatus], _ seconds: Int) -> CommandFailure {
        let late = processes.filter { process in statuses.contains { $0.id == process.node.id && $0.state != .ready } }
        let logs = late.map { "node \($0.node.id), log \(layout.log(of: $0.node)):\n\($0.logTail())" }
        return CommandFailure(
            "\(statuses.count - late.count) of \(statuses.count) nodes are ready after \(seconds) s.\n"
                + logs.joined(separator: "\n"))
    }

    /// - Throws: `CommandFailure` naming the nodes that have not stopped in time, or that `cluster up` did not start.
    func stop(timeoutSeconds: Int, isForced: Bool) async throws -> [UInt64] {
        let running = processes.compactMap { process in process.pid.map { (process: process, pid: $0) } }
        for (_, pid) in running { kill(pid, SIGTERM) }
        let clock = ContinuousClock()
        let end = clock.now + .seconds(timeoutSeconds)
        var progress = ProgressLine()
        var left = running
        var isKilled = false
        while true {
            left = left.filter { $0.process.isOurs($0.pid) }
            if left.isEmpty { break }
            if clock.now >= end {
                guard isForced, !isKilled else {
                    progress.abandon()
                    throw CommandFailure(
                        "node \(left.map(\.process.node.id).listed) has not stopped within \(timeoutSeconds) s"
                            + (isForced ? ", not even killed" : ": wait, or kill it with --force"))
                }
                for (_, pid) in left { kill(pid, SIGKILL) }
                isKilled = true
                try await Task.sleep(for: .seconds(1))
                continue
            }
            progress.show("stopping: \(running.count - left.count) of \(running.count) nodes stopped")
            try await Task.sleep(for: .milliseconds(100))
        }
        for (process, _) in running { unlink(layout.pidFile(of: process.node)) }
        if !running.isEmpty { progress.finish("\(running.count) of \(running.count) nodes stopped") }
        try checkNoneIsLeft()
        return running.map(\.process.node.id)
    }

    /// - Throws: `CommandFailure` naming the processes that hold a node's data, and that no pid file names.
    private func checkNoneIsLeft() throws(CommandFailure) {
        let left = processes.compactMap { process in
            process.holder.map { "node \(process.node.id) runs as process \($0)" }
        }
        guard !left.isEmpty else { return }
        throw CommandFailure(
            "\(left.joined(separator: ", ")), which `cluster up` did not start or whose pid file is gone: stop it by its "
                + "number, with `kill`")
    }
}

extension LocalCluster {
    func statuses() async throws -> [NodeStatus] {
        try await ask(
            layout.file.nodes.map { node in
                NodeStatus(
                    id: node.id, clientURL: node.clientURL, peerAddress: node.peerAddress,
                    pid: NodeProcess(node: node, layout: layout).pid,
                    isLocal: ["localhost", "::1"].contains(node.host) || node.host.hasPrefix("127."))
            })
    }

    /// The state of members that the configuration file lacks.
    func statuses(of members: [ClusterOverview.Node]) async throws -> [NodeStatus] {
        try await ask(
            members.map { member in
                var status = NodeStatus(member)
                status.isNamed = false
                return status
            })
    }

    private func ask(_ nodes: [NodeStatus]) async throws -> [NodeStatus] {
        guard Paths.exists(layout.clientAuthority) else { return nodes }
        let secret = try? AdministratorSecret.read(layout.administratorToken)
        let http = try ServiceClient.http(authority: layout.clientAuthority, connectSeconds: 1)
        let statuses = await NodeStatus.ask(nodes, http, administratorSecret: secret)
        try await http.shutdown()
        return statuses
    }

    /// What one of these nodes says of the cluster's members; nil where none can be asked.
    func overview(_ urls: [String]) async throws -> ClusterOverview? {
        guard !urls.isEmpty, let secret = try? AdministratorSecret.read(layout.administratorToken) else { return nil }
        let http = try ServiceClient.http(authority: layout.clientAuthority, connectSeconds: 1)
        let client = ServiceClient(http: http, urls: urls, administratorSecret: secret)
        let json = try? await client.send(.once("/admin/1/cluster", isAdministrative: true, seconds: 5)).json()
        try await http.shutdown()
        return json.flatMap { try? ClusterOverview($0) }
    }
}

struct NodeStatus: Hashable, Sendable {
    enum State: String, Hashable, Sendable {
        case ready
        case starting
        case stopped
        /// It should be there and does not answer.
        case unreachable
    }

    /// How a node answered when asked whether it is ready.
    enum Health: Hashable, Sendable {
        case ready
        case notReady
        case refused
        /// No answer, or none that can be trusted.
        case silent
    }

    var id: UInt64
    var clientURL: String
    var peerAddress: String
    /// The process on this machine that `cluster up` started.
    var pid: Int32?
    /// Whether it could only run on this machine.
    var isLocal = false
    /// Whether the configuration file names it, if there is one.
    var isNamed = true
    var state = State.stopped
    /// The shards that it leads, ascending.
    var leads: [Int] = []
    /// The program that it runs; empty where it is not known.
    var version = ""
    /// The lowest feature level of a group here.
    var featureLevel: Int?
    /// Effects of the shards that it leads on other shards, which wait to be delivered.
    var waitingEffects: Int64 = 0
    /// Changes on the shards that it leads, which wait to be matched with subscriptions.
    var waitingMatches: Int64 = 0
    /// Why it is not ready, as it says.
    var obstacle: String?
    /// Files of assets that it shall have and has not: those on their way, and those that no node has.
    var assets = MissingAssets()

    var lags: [String] {
        var lags: [String] = []
        if waitingEffects > 0 { lags.append("\(waitingEffects) effects on other shards wait to be delivered") }
        if waitingMatches > 0 { lags.append("\(waitingMatches) changes wait to be matched with subscriptions") }
        return lags
    }

    struct MissingAssets: Hashable, Sendable {
        var fetching = 0
        var missing = 0
        /// The SHA-256 of the first missing ones, in hexadecimal digits.
        var missingFiles: [String] = []

        init() {}

        init(_ json: JSONValue?) {
            fetching = Int(json?.amount("fetching") ?? 0)
            missing = Int(json?.amount("missing") ?? 0)
            missingFiles = json?["missingFiles"]?.array?.compactMap(\.string) ?? []
        }

        var sentences: [String] {
            var sentences: [String] = []
            if fetching > 0 {
                let verb = fetching == 1 ? "is" : "are"
                sentences.append("\(fetching) of its assets' files \(verb) on the way from other nodes")
            }
            if missing > 0 {
                sentences.append(
                    "no node has \(missing) \(missing == 1 ? "file that a record names" : "files that records name"); SHA-256 "
                        + missingFiles.prefix(3).joined(separator: ", ") + (missing > 3 ? ", ..." : ""))
            }
            return sentences
        }
    }

    /// What to make of an answer to `/health/ready`.
    static func state(health: Health, isRunning: Bool, isLocal: Bool) -> State {
        switch health {
        case .ready: .ready
        case .notReady: .starting
        case .refused: isRunning ? .starting : isLocal ? .stopped : .unreachable
        case .silent: .unreachable
        }
    }

    /// Asks nodes for their state, all at once, and for the shards that they lead where the secret is known.
    static func ask(
        _ nodes: [NodeStatus], _ http: HTTPClient, administratorSecret secret: String?
    ) async -> [NodeStatus] {
        let statuses = await withTaskGroup(of: NodeStatus.self) { tasks in
            for node in nodes {
                let client = ServiceClient(http: http, urls: [node.clientURL], administratorSecret: secret)
                tasks.addTask { await node.asked(client) }
            }
            return await tasks.reduce(into: []) { $0.append($1) }
        }
        return statuses.sorted { $0.id < $1.id }
    }

    private func asked(_ client: ServiceClient) async -> NodeStatus {
        let health = await Self.health(of: client)
        var status = self
        status.state = Self.state(health: health, isRunning: pid != nil, isLocal: isLocal)
        if health == .ready || health == .notReady, client.administratorSecret != nil {
            await status.take(detailsFrom: client)
        }
        return status
    }

    private static func health(of client: ServiceClient) async -> NodeStatus.Health {
        do {
            return try await client.send(.once("/health/ready", seconds: 2)).status == 200 ? .ready : .notReady
        } catch let error as ServiceUnreachable {
            return error.isRefused ? .refused : .silent
        } catch {
            return .silent
        }
    }

    private mutating func take(detailsFrom client: ServiceClient) async {
        let request = ServiceRequest.once("/admin/1/status", isAdministrative: true, seconds: 2)
        guard let json = try? await client.send(request).json() else { return }
        // A replica that has applied nothing is on its way here, and at no level yet.
        let replicas = (json["replicas"]?.array ?? []).filter { $0["appliedIndex"] != .integer(0) }
        version = json["version"]?.string ?? ""
        obstacle = json["obstacle"]?.string
        assets = MissingAssets(json["assets"])
        featureLevel = replicas.compactMap { $0.amount("featureLevel") }.min().map { Int($0) }
        let led = replicas.filter { $0["role"]?.string == "leader" }
        func sum(_ member: String) -> Int64 { led.reduce(0) { $0 + ($1.amount(member) ?? 0) } }
        (waitingEffects, waitingMatches) = (sum("waitingEffects"), sum("waitingMatches"))
        // Group 0 is the directory; shard i is group i + 1.
        leads = led.compactMap { $0.amount("group") }.filter { $0 > 0 }.map { Int($0 - 1) }.sorted()
    }
}

extension ServiceRequest {
    /// A question that is asked once, and answered soon or not at all.
    fileprivate static func once(_ path: String, isAdministrative: Bool = false, seconds: Int64) -> ServiceRequest {
        var request = ServiceRequest(.get, path, isAdministrative: isAdministrative)
        (request.patienceSeconds, request.timeoutSeconds) = (0, seconds)
        return request
    }
}

extension NodeStatus {
    /// A node as the cluster names it, which was not asked yet.
    init(_ member: ClusterOverview.Node) {
        self.init(id: UInt64(clamping: member.id), clientURL: member.clientURL, peerAddress: member.peerAddress)
    }
}
