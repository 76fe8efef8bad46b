import ArgumentParser
import Directory
import Foundation
import KeyValueStore
import RecordModel
import RecordStore
import ServiceClient
import Storage
import Testing

@testable import zonekeeper

/// A cluster of two stopped nodes, or a single one, in a folder of its own, removed with it.
private final class BackupFixture {
    let folder: String
    let layout: ClusterLayout

    init(isSingle: Bool = false) throws {
        folder = FileManager.default.temporaryDirectory.path + "/zonekeeper-backup-" + RandomText.hex(bytes: 8)
        let node = { (id: UInt64) in
            ClusterFile.Node(id: id, host: "127.0.0.1", clientPort: Int(id) * 2, peerPort: Int(id) * 2 + 1)
        }
        let file = ClusterFile(name: "test", data: "data", shards: 16, replicas: 3, nodes: [node(1), node(2)])
        layout =
            isSingle
            ? ClusterLayout(single: folder + "/data") : ClusterLayout(file: file, path: folder + "/cluster.json")
        for node in layout.file.nodes {
            let data = layout.folder(of: node)
            try makeFolder(at: data + "/log")
            try makeFolder(at: data + "/shards")
            try makeFolder(at: data + "/snapshots")
            for place in ["ab", "incoming", "damaged"] { try makeFolder(at: "\(data)/assets/\(place)") }
            for name in [
                "node.json", "peers.json", "directory.sqlite", "directory.sqlite-wal", "directory.sqlite-shm",
                "log/0001",
                "shards/0000.sqlite", "shards/0000.sqlite-shm", "snapshots/half", "assets/ab/cd", "assets/key-check",
                "assets/scrub-position", "assets/incoming/half", "assets/damaged/abcd",
            ] {
                try replaceFile(at: "\(data)/\(name)", with: Array("\(name) of \(node.id)".utf8))
            }
        }
        try makeFolder(at: layout.certificates)
        try replaceFile(at: layout.administratorToken, with: Array("secret".utf8))
        try replaceFile(at: layout.clientAuthority, with: Array("authority".utf8))
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    var target: String { folder + "/backup" }

    func backUp(withSecrets: Bool = false) throws -> BackupManifest {
        try ClusterBackup(layout: layout, target: target, withSecrets: withSecrets).run()
    }

    func restore(withSecrets: Bool = false) throws -> BackupManifest {
        try ClusterRestore(layout: layout, source: target, withSecrets: withSecrets).run()
    }

    func loseData() throws { try FileManager.default.removeItem(atPath: layout.data) }

    func text(_ path: String) throws -> String {
        String(decoding: try readWholeFile(at: layout.data + "/" + path), as: UTF8.self)
    }
}

@Suite("Backup and restore of a stopped cluster")
struct BackupTests {
    @Test("What is restored is what was backed up, with a mark for new incarnations")
    func roundTrip() throws {
        let fixture = try BackupFixture()
        let manifest = try fixture.backUp()
        #expect(
            manifest.files.map(\.path) == [
                "node-1/assets/ab/cd", "node-1/assets/key-check", "node-1/directory.sqlite",
                "node-1/directory.sqlite-wal", "node-1/log/0001", "node-1/node.json",
                "node-1/peers.json", "node-1/shards/0000.sqlite", "node-2/assets/ab/cd", "node-2/assets/key-check",
                "node-2/directory.sqlite",
                "node-2/directory.sqlite-wal",
                "node-2/log/0001", "node-2/node.json", "node-2/peers.json", "node-2/shards/0000.sqlite",
            ])
        try fixture.loseData()
        #expect(try fixture.restore() == manifest)
        for file in manifest.files {
            let name = file.path.dropFirst("node-1/".count)
            #expect(try fixture.text(file.path) == "\(name) of \(file.path.dropFirst("node-".count).prefix(1))")
        }
        let mark = try JSONParser.parse(Array(try fixture.text("node-2/restored.json").utf8))
        guard case .integer(let incarnation)? = mark["incarnation"] else {
            Issue.record("no incarnation in \(mark)")
            return
        }
        #expect(incarnation >= manifest.created)
        #expect(!Paths.exists(fixture.layout.administratorToken))
    }

    @Test(
        "Zones begin a later incarnation than all before, also where an earlier restore's clock was ahead",
        arguments: [false, true])
    func laterIncarnation(ofPreferences: Bool) throws {
        let fixture = try BackupFixture()
        let path = fixture.layout.folder(of: fixture.layout.file.nodes[1]) + "/shards/0000.sqlite"
        for end in ["", "-shm"] { try removeFile(at: path + end) }
        let earlier = UInt64(WallClock.now) + 86_400_000
        let database = try ShardDatabase.open(path: path) { db in
            try RecordTables.create(in: db)
            try KeyValueTables.create(in: db)
            if ofPreferences {
                _ = try KeyValueTables.startNewIncarnation(earlier, in: db)
            } else {
                try RecordTables.startNewIncarnation(earlier, in: db)
            }
        }
        try database.close()
        _ = try fixture.backUp()
        try fixture.loseData()
        _ = try fixture.restore()
        for node in fixture.layout.file.nodes {
            let mark = try JSONParser.parse(Array(try fixture.text("node-\(node.id)/restored.json").utf8))
            #expect(mark["incarnation"] == .integer(Int64(earlier) + 1))
        }
    }

    @Test("A single node is backed up and restored by its data folder, and marked for new incarnations, too")
    func single() throws {
        let fixture = try BackupFixture(isSingle: true)
        let options = try BackupOptions.parse(["--data", fixture.folder + "/data"])
        #expect(try options.layout().folder(of: fixture.layout.file.nodes[0]) == fixture.folder + "/data")
        let manifest = try fixture.backUp(withSecrets: true)
        #expect(manifest.cluster == "single" && manifest.nodes == [1])
        #expect(manifest.files.map(\.path).prefix(3) == ["admin.token", "certs/client-ca.pem", "node-1/assets/ab/cd"])
        let error = #expect(throws: CommandFailure.self) { try fixture.restore() }
        #expect(error?.message.contains("has data already") == true)
        try fixture.loseData()
        #expect(try fixture.restore(withSecrets: true) == manifest)
        for name in ["node.json", "log/0001", "shards/0000.sqlite", "directory.sqlite-wal"] {
            #expect(try fixture.text(name) == "\(name) of 1")
        }
        #expect(try fixture.text("admin.token") == "secret" && fixture.text("certs/client-ca.pem") == "authority")
        #expect(Paths.exists(fixture.layout.data + "/restored.json"))
        for arguments in [[], ["--config", "c", "--data", "d"]] {
            #expect(throws: (any Error).self) { try BackupOptions.parse(arguments) }
        }
    }

    @Test("Secrets are copied only when they are asked for")
    func secrets() throws {
        let fixture = try BackupFixture()
        #expect(
            try fixture.backUp(withSecrets: true).files.map(\.path).prefix(2) == ["admin.token", "certs/client-ca.pem"])
        try fixture.loseData()
        _ = try fixture.restore(withSecrets: true)
        #expect(try fixture.text("admin.token") == "secret")
        #expect(try fixture.text("certs/client-ca.pem") == "authority")
    }

    @Test("A cluster with a running node is not backed up")
    func running() throws {
        let fixture = try BackupFixture()
        let lock = try FolderLock(path: fixture.layout.folder(of: fixture.layout.file.nodes[1]) + "/log/lock")
        let error = #expect(throws: CommandFailure.self) { try fixture.backUp() }
        #expect(error?.message.hasPrefix("node 2 is running") == true)
        withExtendedLifetime(lock) {}
        #expect(!Paths.exists(fixture.target))
    }

    @Test("A cluster with a node's data elsewhere is not backed up")
    func elsewhere() throws {
        let fixture = try BackupFixture()
        try removeFile(at: fixture.layout.folder(of: fixture.layout.file.nodes[0]) + "/node.json")
        #expect(throws: CommandFailure.self) { try fixture.backUp() }
    }

    @Test("A configuration that lacks a member of the cluster makes no backup")
    func lackingMember() throws {
        let fixture = try BackupFixture()
        let path = fixture.layout.folder(of: fixture.layout.file.nodes[1]) + "/directory.sqlite"
        for end in ["", "-wal", "-shm"] { try removeFile(at: path + end) }
        let nodes = [1, 2, 5].map {
            ClusterMap.Node(id: $0, peerHost: "127.0.0.1", peerPort: Int($0), clientURL: "https://127.0.0.1:\($0)")
        }
        let map = ClusterMap(clusterID: "test", nodes: nodes, shardCount: 16, replicasPerShard: 3)
        let database = try ShardDatabase.open(path: path) { db in
            try DirectoryTables.create(in: db)
            _ = try DirectoryTables.apply(DirectoryCommand.installMap(map), in: db)
        }
        try database.close()
        let error = #expect(throws: CommandFailure.self) { try fixture.backUp() }
        #expect(error?.message.hasPrefix("node 5 is in the cluster and not in ") == true, "\(error?.message ?? "")")
        #expect(!Paths.exists(fixture.target))
    }

    @Test("A backup replaces nothing")
    func notEmpty() throws {
        let fixture = try BackupFixture()
        _ = try fixture.backUp()
        let error = #expect(throws: CommandFailure.self) { try fixture.backUp() }
        #expect(error?.message.contains("is not empty") == true)
    }

    @Test("A restore replaces nothing")
    func hasData() throws {
        let fixture = try BackupFixture()
        _ = try fixture.backUp()
        let error = #expect(throws: CommandFailure.self) { try fixture.restore() }
        #expect(error?.message.contains("has data already") == true)
    }

    @Test("A damaged backup is refused before anything is restored")
    func damaged() throws {
        let fixture = try BackupFixture()
        _ = try fixture.backUp()
        try fixture.loseData()
        try replaceFile(at: fixture.target + "/node-2/log/0001", with: Array("log/0001 of 3".utf8))
        let error = #expect(throws: CommandFailure.self) { try fixture.restore() }
        #expect(error?.message.contains("damaged") == true)
        #expect(!Paths.exists(fixture.layout.data))
    }

    @Test("A backup that was not finished is none")
    func unfinished() throws {
        let fixture = try BackupFixture()
        _ = try fixture.backUp()
        try fixture.loseData()
        try removeFile(at: "\(fixture.target)/\(BackupManifest.fileName)")
        #expect(throws: CommandFailure.self) { try fixture.restore() }
    }

    @Test("A manifest that names files outside of the backup is refused")
    func outside() throws {
        for path in ["../x", "/etc/passwd", "node-1//x", "node-1/..", ""] {
            let manifest = BackupManifest(
                cluster: "c", nodes: [1], created: 1, hasSecrets: false,
                files: [BackupManifest.File(path: path, size: 1, sha256: "00")])
            #expect(throws: CommandFailure.self, "\(path)") { try BackupManifest(parsing: manifest.serialized) }
        }
        let good = BackupManifest(
            cluster: "c", nodes: [2, 1], created: 1, hasSecrets: true,
            files: [BackupManifest.File(path: "node-1/log/x", size: 1, sha256: "00")])
        #expect(try BackupManifest(parsing: good.serialized) == good)
        #expect(good.nodes == [1, 2])
    }
}
