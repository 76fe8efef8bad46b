import Foundation
import NIOCore
import Storage
import TestSupport
import Testing

@testable import zonekeeper

/// A cluster of one node in a folder of its own, with a configuration file under several names.
private struct LocalFixture {
    let folder: String

    init(_ folder: String) throws {
        self.folder = folder
        for name in ["logs", "node-1/log"] { try makeFolder(at: folder + "/" + name) }
        try replaceFile(at: folder + "/node-1/log/lock", with: [])
        // Holds the node's data as a node does, and stays until it is told to stop.
        let script = "exec 9<>\(folder)/node-1/log/lock\necho holds >ready\nread line <never\n"
        for name in ["ready", "never"] { #expect(mkfifo(folder + "/" + name, 0o600) == 0) }
        try replaceFile(at: folder + "/serve", with: Array(script.utf8))
    }

    func cluster(_ name: String = "cluster.json") -> LocalCluster {
        let node = ClusterFile.Node(id: 1, host: "127.0.0.1", clientPort: 1, peerPort: 2)
        let file = ClusterFile(name: "test", data: folder, shards: 1, replicas: 1, nodes: [node])
        return LocalCluster(layout: ClusterLayout(file: file, path: "\(folder)/\(name)"))
    }

    var pidFile: String { cluster().layout.pidFile(of: cluster().layout.file.nodes[0]) }

    /// Runs `body` while a process holds the node's data that was started with the configuration `started.json`.
    func withNode(_ body: (Int32) async throws -> Void) async throws {
        let pid = try DetachedProcess.start(
            "/usr/bin/env",
            ["--chdir=" + folder, "bash", "serve", "--config", folder + "/started.json", "--node", "1"],
            log: folder + "/logs/node-1.log")
        defer {
            kill(pid, SIGKILL)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
        }
        // Comes to its end when the data are held.
        let word = try FileHandle(forReadingFrom: URL(filePath: folder + "/ready")).readToEnd()
        #expect(word == Data("holds\n".utf8))
        try await body(pid)
    }
}

@Suite("The nodes of a configuration on this machine")
struct LocalClusterTests {
    @Test("A node is stopped by whatever name its configuration has now")
    func renamed() async throws {
        try await TemporaryFolder.with { folder in
            let fixture = try LocalFixture(folder)
            try await fixture.withNode { pid in
                try replaceFile(at: fixture.pidFile, with: Array("\(pid)\n".utf8))
                #expect(try await fixture.cluster("renamed.json").stop(timeoutSeconds: 30, isForced: false) == [1])
                #expect(!Paths.exists(fixture.pidFile))
            }
        }
    }

    @Test("A node that no pid file names is named by its process, and not said to have stopped")
    func unknown() async throws {
        try await TemporaryFolder.with { folder in
            let fixture = try LocalFixture(folder)
            try await fixture.withNode { pid in
                let error = await #expect(throws: CommandFailure.self) {
                    try await fixture.cluster().stop(timeoutSeconds: 30, isForced: false)
                }
                #expect(error?.message.hasPrefix("node 1 runs as process \(pid), ") == true, "\(error?.message ?? "")")
            }
        }
    }

    @Test("The pid file of what was not stopped stays")
    func pidFileOfAnother() async throws {
        try await TemporaryFolder.with { folder in
            let fixture = try LocalFixture(folder)
            try replaceFile(at: fixture.pidFile, with: Array("1\n".utf8))
            #expect(try await fixture.cluster().stop(timeoutSeconds: 30, isForced: false) == [])
            #expect(Paths.exists(fixture.pidFile))
        }
    }

    @Test("A node that was removed from the cluster is not waited for; one that ends otherwise is an error")
    func removed() async throws {
        try await TemporaryFolder.with { folder in
            let cluster = try LocalFixture(folder).cluster()
            func start(code: Int32) throws -> [UInt64: Int32] {
                [1: try DetachedProcess.start("/bin/sh", ["-c", "exit \(code)"], log: folder + "/logs/node-1.log")]
            }
            let statuses = try await cluster.awaitReady(
                start(code: NodeRunner.excludedExitCode), timeoutSeconds: 30)
            #expect(statuses.isEmpty)
            let log = [
                "2026-11-26T14:15:44+0000 critical zonekeeper: node=1 the disk is gone",
                "2026-11-26T14:15:44+0000 info zonekeeper: node=1 GET /health/ready",
            ]
            try replaceFile(at: folder + "/logs/node-1.log", with: Array(log.joined(separator: "\n").utf8))
            let error = await #expect(throws: CommandFailure.self) {
                try await cluster.awaitReady(start(code: 70), timeoutSeconds: 30)
            }
            #expect(error?.message == "node 1 ended with exit code 70. Its log ends:\n  \(log[0])")
        }
    }

    @Test("Other machines find a node by what is not this machine's alone")
    func names() {
        let names = MachineNames.all(atIPv4Alone: false)
        #expect(MachineNames.all(atIPv4Alone: true) == names.filter { !$0.contains(":") })
        #expect(Set(names).count == names.count)
        #expect(!names.contains { $0.hasPrefix("127.") || $0 == "::1" || $0 == "localhost" }, "\(names)")
    }

    @Test("A machine that does not tell its addresses is found by its name")
    func unknownAddresses() {
        let names = MachineNames.all(atIPv4Alone: false) {
            throw IOError(errnoCode: EAFNOSUPPORT, reason: "getifaddrs")
        }
        #expect(names.count <= 1 && names == Array(MachineNames.all(atIPv4Alone: false).suffix(names.count)))
    }
}
