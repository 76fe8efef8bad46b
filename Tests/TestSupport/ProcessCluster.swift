import Foundation
import RecordModel

/// Three real nodes on loopback, over TLS, in a folder of their own, with a container, a schema, a user and tokens.
package final class ProcessCluster {
    /// Everything of the cluster is in here.
    package let folder: String
    /// Where clients are served, by node.
    package let clientPorts: [Int]
    /// The cluster's configuration file.
    package let configPath: String
    /// The nodes that run.
    package var processes: [Int: ServerProcess] = [:]
    /// Speaks to the nodes.
    package private(set) var client: TestClient
    /// The container that `prepare` makes.
    package let container: String
    /// The user that `prepare` makes.
    package let user: String
    /// Whether the processes and the folder end with this.
    private let isOwner: Bool

    /// The limits of the cluster that `startAll` sets, as the administration takes them.
    package var limits = TestLimits.lifted

    /// Arguments of every node, beside those that it needs.
    package var arguments: [String] = []

    /// The nodes' ids.
    package var ids: [Int] { Array(1...clientPorts.count) }

    /// Makes ports, configuration and certificates; starts nothing.
    package init(nodeCount: Int = 3) throws {
        (container, user, isOwner) = ("iCloud.com.example.test", "tester", true)
        folder = NSTemporaryDirectory() + "zonekeeper-processes-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let ports = try FreePorts.take(nodeCount * 2)
        clientPorts = Array(ports.prefix(nodeCount))
        let nodes = (0..<nodeCount).map { offset in
            #"{"id": \#(offset + 1), "host": "127.0.0.1", "clientPort": \#(ports[offset]), "#
                + #""peerPort": \#(ports[nodeCount + offset])}"#
        }
        configPath = folder + "/cluster.json"
        try
            #"{"name": "test", "data": "data", "shards": 8, "replicas": 3, "nodes": [\#(nodes.joined(separator: ", "))]}"#
            .write(toFile: configPath, atomically: true, encoding: .utf8)
        let made = try ServerProcess.run(["certs", "create", "--config", configPath])
        try require(made.status == 0, made.errors)
        try Self.administratorToken.write(toFile: folder + "/admin.token", atomically: true, encoding: .utf8)
        client = try Self.client(of: clientPorts, folder)
    }

    /// The nodes of another cluster, which keeps running them, with a container, a user and tokens of one's own.
    ///
    /// For tests that kill nothing, cut nothing and set no limits of the whole cluster.
    /// - Parameter number: one that no other has.
    package init(sharing cluster: ProcessCluster, number: Int) async throws {
        (container, user, isOwner) = ("iCloud.com.example.test\(number)", "tester\(number)", false)
        (folder, clientPorts, configPath) = (cluster.folder, cluster.clientPorts, cluster.configPath)
        client = try Self.client(of: clientPorts, folder)
        try await prepare()
    }

    private static func client(of ports: [Int], _ folder: String) throws -> TestClient {
        try TestClient(
            urls: ports.map { "https://127.0.0.1:\($0)" }, authorityPath: folder + "/data/certs/client-ca.pem",
            administratorToken: administratorToken)
    }

    /// The administrator's token.
    package static let administratorToken = String(repeating: "0123456789abcdef", count: 4)

    deinit {
        guard isOwner else { return }
        processes = [:]
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Starts a node.
    /// - Parameters:
    ///   - more: arguments beside those that every node has.
    ///   - environment: beside the variables of this process.
    ///   - program: the path of another build's binary.
    package func start(
        _ id: Int, more: [String] = [], environment: [String: String] = [:], program: String? = nil
    ) throws {
        precondition(isOwner, "a test that starts nodes has a cluster of its own")
        processes[id] = try ServerProcess(
            arguments: [
                "--config", configPath, "--node", "\(id)", "--admin-token-file", folder + "/admin.token",
                "--log-level", "info",
            ] + arguments + more, logPath: "\(folder)/node-\(id).log", environment: environment,
            program: program.map { URL(filePath: $0) } ?? ServerProcess.binary)
    }

    /// A cluster whose nodes all run, with what `prepare` makes.
    package static func prepared(nodeCount: Int = 3) async throws -> ProcessCluster {
        let cluster = try ProcessCluster(nodeCount: nodeCount)
        try await cluster.startAll()
        try await cluster.prepare()
        return cluster
    }

    /// Starts all nodes that do not run, and waits until all are ready and all groups at the level of this build.
    package func startAll() async throws {
        for id in ids where processes[id]?.isRunning != true { try start(id) }
        for id in ids { try await awaitReady(id) }
        for id in ids {
            try await awaitTrue("node \(id) is at the level of its build") {
                let status = try await client.admin("GET", "status", node: id - 1)
                return status["replicas"]?.array?.allSatisfy { $0["featureLevel"] == status["featureLevelMax"] } == true
            }
        }
        _ = try await client.admin("PATCH", "limits", limits)
    }

    /// Waits until a node says that it can serve.
    /// - Throws: `TestFailure` with the end of the node's log, also where the node ended.
    package func awaitReady(_ id: Int) async throws {
        do {
            try await awaitTrue("node \(id) is ready", within: .seconds(300)) {
                guard processes[id]?.isRunning == true else { return true }
                return try await client.get("/health/ready", node: id - 1).status == 200
            }
            try require(processes[id]?.isRunning == true, "node \(id) ended")
        } catch let failure as TestFailure {
            throw TestFailure("\(failure); it logged:\n\(processes[id]?.log.suffix(2_000) ?? "")")
        }
    }

    /// Waits until a node's log has a line with all of the words.
    package func awaitLog(of id: Int, _ words: String...) async throws {
        try await awaitState("node \(id) logs \(words)") {
            try String(contentsOfFile: "\(folder)/node-\(id).log", encoding: .utf8)
        } until: { log in
            log.split(separator: "\n").contains { line in words.allSatisfy { line.contains($0) } }
        }
    }

    /// Ends a node without asking it.
    package func kill(_ id: Int) {
        processes[id]?.killNow()
        processes[id] = nil
    }

    /// Stops all nodes that were started.
    /// - Returns: what is wrong: nodes that had ended before, or ended badly.
    package func stop() -> [String] {
        processes.sorted { $0.key < $1.key }.compactMap { id, process in
            let ran = process.isRunning
            let status = process.stop()
            if ran && status == 0 { return nil }
            let when = ran ? "" : " in mid-run"
            return "node \(id) ended with \(status)\(when); it logged:\n\(process.log.suffix(6_000))"
        }
    }

    /// Makes the container, a schema with an indexed `number`, a user and both tokens.
    /// - Parameter serving: the nodes that clients can reach; all, if nothing is said.
    package func prepare(serving: [Int]? = nil) async throws {
        _ = try await client.admin("POST", "containers", #"{"name": "\#(container)"}"#)
        _ = try await client.admin("POST", "schema?container=\(container)&environment=development", Self.schema)
        _ = try await client.admin("POST", "users", #"{"name": "\#(user)"}"#)
        let api = try await client.admin(
            "POST", "tokens", #"{"kind": "api", "container": "\#(container)", "environment": "development"}"#)
        let session = try await client.admin(
            "POST", "tokens", #"{"kind": "session", "container": "\#(container)", "user": "\#(user)"}"#)
        client.query =
            "ckAPIToken=\(try require(api["secret"]?.string, "\(api)"))&ckWebAuthToken=\(try require(session["secret"]?.string, "\(session)"))"
        // The first request of each node waits for its share of the container's rate.
        for id in serving ?? ids {
            let target = path("zones/list") + "?" + client.query
            try await awaitState("node \(id) serves the container") {
                try await client.get(target, node: id - 1)
            } until: {
                $0.status == 200
            }
        }
    }

    /// What the command reads to reach this cluster as the user made by `prepare`.
    package var environment: [String: String] {
        let tokens = client.query.split(separator: "&").map { String($0.split(separator: "=").last ?? "") }
        return [
            "ZONEKEEPER_URLS": clientPorts.map { "https://127.0.0.1:\($0)" }.joined(separator: ","),
            "ZONEKEEPER_CA": folder + "/data/certs/client-ca.pem", "ZONEKEEPER_CONTAINER": container,
            "ZONEKEEPER_ENVIRONMENT": "development", "ZONEKEEPER_API_TOKEN": tokens.first ?? "",
            "ZONEKEEPER_WEB_AUTH_TOKEN": tokens.last ?? "", "ZONEKEEPER_ADMIN_TOKEN_FILE": folder + "/admin.token",
        ]
    }

    /// The path of an action on a database of the container.
    package func path(_ action: String, database: String = "private") -> String {
        "/database/1/\(container)/development/\(database)/\(action)"
    }

    /// The schema that `prepare` imports.
    package static let schema = """
        DEFINE SCHEMA
            RECORD TYPE Note (
                "___recordID" REFERENCE QUERYABLE,
                number INT64 QUERYABLE SORTABLE,
                text STRING QUERYABLE SORTABLE,
                body BYTES,
                GRANT WRITE TO "_creator",
                GRANT CREATE TO "_icloud",
                GRANT READ TO "_world"
            );
        """
}
