import Foundation
import RecordModel
import TestSupport

/// Three processes that reach each other through links that can fail, each with a configuration of its own.
final class FaultCluster {
    let cluster: ProcessCluster
    /// By sender and receiver.
    private let links: [[Int]: FaultyLink]
    /// The disk of one node, which can be filled where this process may mount one.
    let disk: (id: Int, disk: SmallDisk)?

    var ids: [Int] { cluster.ids }
    var client: TestClient { cluster.client }

    init() async throws {
        cluster = try ProcessCluster()
        let text = try String(contentsOfFile: cluster.configPath, encoding: .utf8)
        let nodes = try require(try JSONParser.parse(Array(text.utf8))["nodes"]?.array, text)
        var links: [[Int]: FaultyLink] = [:]
        for from in cluster.ids {
            var own = text
            for to in cluster.ids where to != from {
                guard case .integer(let port)? = nodes[to - 1]["peerPort"] else { continue }
                let link = try await FaultyLink(to: Int(port))
                links[[from, to]] = link
                own = own.replacing(#""peerPort": \#(port)}"#, with: #""peerPort": \#(link.port)}"#)
            }
            try own.write(toFile: Self.configPath(from, cluster), atomically: true, encoding: .utf8)
        }
        self.links = links
        disk =
            SmallDisk.isPossible
            ? (2, try SmallDisk(at: cluster.folder + "/data/node-2", megabytes: Soak.count(300, soak: 3_000))) : nil
    }

    private static func configPath(_ id: Int, _ cluster: ProcessCluster) -> String {
        "\(cluster.folder)/cluster-\(id).json"
    }

    /// Starts a node that knows the others by its links to them.
    /// - Parameter clockSecondsAhead: how wrong its wall clock shall be.
    func start(_ id: Int, clockSecondsAhead: Int = 0) throws {
        let environment =
            clockSecondsAhead == 0
            ? [:] : try ShiftedClock.environment(in: cluster.folder, secondsAhead: clockSecondsAhead)
        cluster.processes[id] = try ServerProcess(
            arguments: [
                "--config", Self.configPath(id, cluster), "--node", "\(id)", "--admin-token-file",
                cluster.folder + "/admin.token", "--log-level", "info",
            ], logPath: "\(cluster.folder)/node-\(id).log", environment: environment)
    }

    /// Starts all nodes, and makes the container, the user and the tokens. They found the cluster by one file, and go
    /// on with their own.
    func startAll() async throws {
        for id in ids { try cluster.start(id) }
        for id in ids { try await cluster.awaitReady(id) }
        for id in ids { cluster.kill(id) }
        for id in ids { try start(id) }
        for id in ids { try await cluster.awaitReady(id) }
        _ = try await client.admin("PATCH", "limits", cluster.limits)
        try await cluster.prepare()
    }

    /// What the nodes say to each other, from one to another.
    func link(_ from: Int, _ to: Int) -> FaultyLink? { links[[from, to]] }

    /// Bytes that the nodes sent each other through the links.
    var passedBytes: Int { links.values.reduce(0) { $0 + $1.passed } }

    /// Sets links: both ways between two nodes.
    func set(_ mode: FaultyLink.Mode, between one: Int, and other: Int) {
        link(one, other)?.set(mode)
        link(other, one)?.set(mode)
    }

    /// All links pass, what was stopped goes on, and a full disk has room again.
    func heal() {
        try? disk?.disk.empty()
        for link in links.values { link.set(.passing) }
        for id in ids { signal(id, SIGCONT) }
    }

    /// Sends a signal to a node that runs.
    func signal(_ id: Int, _ signal: Int32) {
        guard let process = cluster.processes[id], process.isRunning else { return }
        kill(process.pid, signal)
    }

    deinit { for link in links.values { link.close() } }
}
