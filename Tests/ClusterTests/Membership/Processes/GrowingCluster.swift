import Foundation
import RecordModel
import Synchronization
import TestSupport
import Testing

/// A cluster of real nodes that come and go: ports and certificates for more nodes than it begins with.
final class GrowingCluster {
    let base: ProcessCluster
    /// Speaks to all nodes that there will ever be, node `i` at index `i - 1`.
    let client: TestClient
    private let ports: [(client: Int, peer: Int)]

    /// - Parameter spare: nodes that may be added later.
    init(nodeCount: Int = 3, spare: Int = 0) throws {
        base = try ProcessCluster(nodeCount: nodeCount)
        let more = try FreePorts.take(2 * spare)
        let peers = try Self.peerPorts(in: base.configPath)
        ports =
            zip(base.clientPorts, peers).map { ($0, $1) }
            + (0..<spare).map { (more[2 * $0], more[2 * $0 + 1]) }
        client = try TestClient(
            urls: ports.map { "https://127.0.0.1:\($0.client)" },
            authorityPath: base.folder + "/data/certs/client-ca.pem",
            administratorToken: ProcessCluster.administratorToken)
    }

    private static func peerPorts(in config: String) throws -> [Int] {
        let json = try JSONParser.parse(Array(try Data(contentsOf: URL(filePath: config))))
        return (json["nodes"]?.array ?? []).compactMap { node in
            if case .integer(let port)? = node["peerPort"] { Int(port) } else { nil }
        }
    }

    func folder(of id: Int) -> String { base.folder + "/data/node-\(id)" }

    /// An image of a node's folder as it is now.
    /// - Returns: where it is.
    func copyFolder(of id: Int) throws -> String {
        let copy = base.folder + "/copy"
        try FileManager.default.copyItem(atPath: folder(of: id), toPath: copy)
        return copy
    }

    /// An image of a running node's folder, which stands still meanwhile.
    func pausedImage(of id: Int) async throws -> String {
        let pid = try #require(base.processes[id]).pid
        kill(pid, SIGSTOP)
        defer { kill(pid, SIGCONT) }
        try await self.await("every thread of node \(id) stands still") {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task").allSatisfy { thread in
                let line = try String(contentsOfFile: "/proc/\(pid)/task/\(thread)/stat", encoding: .utf8)
                return line.split(separator: ") ").last?.hasPrefix("T") == true
            }
        }
        return try copyFolder(of: id)
    }

    /// Ends a node without warning, and puts an image in the place of its folder.
    func killAndPutBack(_ copy: String, of id: Int) throws {
        base.kill(id)
        try FileManager.default.removeItem(atPath: folder(of: id))
        try FileManager.default.moveItem(atPath: copy, toPath: folder(of: id))
    }

    func logPath(of id: Int) -> String { "\(base.folder)/node-\(id).log" }

    /// Starts all first nodes and makes container, schema and tokens.
    func begin() async throws {
        try await base.startAll()
        try await base.prepare()
        client.query = base.client.query
    }

    /// Writes a node into the configuration file, and makes its certificates.
    func configure(_ id: Int) throws {
        let text = try String(contentsOfFile: base.configPath, encoding: .utf8)
        let (clientPort, peerPort) = ports[id - 1]
        let node = #"{"id": \#(id), "host": "127.0.0.1", "clientPort": \#(clientPort), "peerPort": \#(peerPort)}]"#
        try text.replacing("}]", with: "}, " + node).write(
            toFile: base.configPath, atomically: true, encoding: .utf8)
        let made = try ServerProcess.run(["certs", "create", "--config", base.configPath])
        try #require(made.status == 0, "\(made.errors)")
    }

    /// Another configuration file beside the first, which lacks a node.
    func configuration(without id: Int) throws -> String {
        let json = try JSONParser.parse(Array(try Data(contentsOf: URL(filePath: base.configPath))))
        let nodes = (json["nodes"]?.array ?? []).filter { $0["id"] != .integer(Int64(id)) }
        let list = String(decoding: JSONValue.array(nodes).serialized(), as: UTF8.self)
        let path = "\(base.folder)/without-\(id).json"
        try #"{"name": "test", "data": "data", "nodes": \#(list)}"#
            .write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    /// What `cluster add` and `cluster replace` need to know of a node.
    func addresses(of id: Int) -> [String] {
        [
            "--host", "127.0.0.1", "--client-port", "\(ports[id - 1].client)", "--peer-port",
            "\(ports[id - 1].peer)",
        ]
    }

    /// Runs the command against the cluster, on a thread of its own.
    func command(_ arguments: [String], of program: String? = nil) async throws -> FinishedProgram {
        let environment = base.environment
        return try await withCheckedThrowingContinuation { continuation in
            Thread {
                continuation.resume(
                    with: Result {
                        try program.map { try FinishedProgram([$0] + arguments, environment: environment) }
                            ?? ServerProcess.run(arguments, environment: environment)
                    })
            }.start()
        }
    }

    /// Waits until something is so; where it never is, the failure has the nodes' logs.
    func await(_ what: String, _ isSo: () async throws -> Bool) async throws {
        do { try await awaitTrue(what, isSo) } catch let failure as TestFailure {
            let logs = base.processes.keys.sorted().map {
                "node \($0):\n\(base.processes[$0]?.log.suffix(3_000) ?? "")"
            }
            throw TestFailure("\(failure)\n\(logs.joined(separator: "\n"))")
        }
    }

    func awaitReady(_ id: Int) async throws {
        try await self.await("node \(id) is ready") {
            try await client.get("/health/ready", node: id - 1).status == 200
        }
    }

    /// Waits until every group has the members of the map, by the word of a node.
    func awaitSettled(asking id: Int = 1) async throws {
        try await self.await("the cluster is settled") { try await overview(asking: id)["settled"] == .bool(true) }
    }

    func overview(asking id: Int = 1) async throws -> JSONValue {
        try await client.admin("GET", "cluster", node: id - 1)
    }

    /// The generations of a node's replicas that vote now.
    func generations(of id: Int, asking: Int = 1) async throws -> Set<Int64> {
        let groups = try await overview(asking: asking)["groups"]?.array ?? []
        let voters = groups.flatMap { $0["present"]?["voters"]?.array ?? [] }
        return Set(
            voters.compactMap { voter in
                guard voter["node"] == .integer(Int64(id)), case .integer(let generation)? = voter["generation"] else {
                    return nil
                }
                return generation
            })
    }

}

/// Saves records all the time, and remembers which were acknowledged.
final class SteadyLoad: Sendable {
    private let task: Task<(names: [String], longestGap: Duration), Never>
    private let acknowledged: Counter
    private let client: TestClient
    private let path: String

    /// - Parameter nodes: whom to send to, in turn; one that does not answer is passed over.
    init(_ cluster: GrowingCluster, nodes: [Int]) {
        client = cluster.client
        path = cluster.base.path("records/modify")
        let acknowledged = Counter()
        self.acknowledged = acknowledged
        task = Task { [client, path] in
            var names: [String] = []
            var longest = Duration.zero
            var last = ContinuousClock.now
            var turn = 0
            while !Task.isCancelled {
                let name = "load-\(names.count)"
                let body =
                    #"{"operations": [{"operationType": "forceReplace", "record": {"recordType": "Note", "#
                    + #""recordName": "\#(name)", "fields": {"number": {"value": \#(names.count)}}}}]}"#
                turn += 1
                let answer = try? await client.post(path, body, node: nodes[turn % nodes.count] - 1)
                guard answer?.status == 200,
                    answer?.json["records"]?.array?.first?["recordChangeTag"] != nil
                else {
                    try? await client.awaitAnyLive()
                    continue
                }
                names.append(name)
                acknowledged.value.add(1, ordering: .relaxed)
                longest = max(longest, ContinuousClock.now - last)
                last = .now
            }
            return (names, longest)
        }
    }

    /// How many saves were acknowledged so far.
    var count: Int { acknowledged.value.load(ordering: .relaxed) }

    /// Waits until so many saves were acknowledged since the load began.
    func awaitSaves(_ wanted: Int) async throws {
        try await awaitState("\(wanted) saves were acknowledged") {
            count
        } until: {
            $0 >= wanted
        }
    }

    private final class Counter: Sendable {
        let value = Atomic<Int>(0)
    }

    /// Ends the load; everything that was acknowledged must be there, as each of these nodes tells.
    /// - Returns: how many saves, and the longest time without one.
    func finish(_ cluster: GrowingCluster, readFrom nodes: [Int]) async throws -> (count: Int, longestGap: Duration) {
        // On a busy machine all may have gone well in the time of few saves.
        try await awaitSaves(11)
        task.cancel()
        let (names, gap) = await task.value
        #expect(names.count > 10, "only \(names.count) saves went through")
        for (position, start) in stride(from: 0, to: names.count, by: 200).enumerated() {
            let page = names[start..<min(start + 200, names.count)]
            let records = page.map { #"{"recordName": "\#($0)"}"# }.joined(separator: ", ")
            let node = nodes[position % nodes.count]
            let answer = try await client.post(
                cluster.base.path("records/lookup"), #"{"records": [\#(records)]}"#, node: node - 1)
            let found = answer.json["records"]?.array ?? []
            let missing = found.filter { $0["recordChangeTag"] == nil }
            #expect(
                answer.status == 200 && found.count == page.count && missing.isEmpty,
                "node \(node) lacks \(missing.count) of \(page.count) acknowledged records: \(answer.status)")
        }
        return (names.count, gap)
    }
}
