import Foundation
import RecordModel
import TestSupport
import Testing

extension RebuildingClusterSuites {
    @Suite("A node that lost its data rebuilds itself, and does not vote before")
    struct RejoinTests {
        @Test("a wiped node: the others go on, it becomes a voter again, and another may then fail")
        func wiped() async throws {
            let cluster = try GrowingCluster()
            try await cluster.begin()
            let load = SteadyLoad(cluster, nodes: [1, 2])
            cluster.base.kill(3)
            try FileManager.default.removeItem(atPath: cluster.folder(of: 3))
            try cluster.base.start(3)
            try await cluster.base.awaitLog(of: 3, "joins cluster test")
            try await cluster.awaitReady(3)
            try await cluster.awaitSettled()
            #expect(try await cluster.generations(of: 3) == [1])
            #expect(try await cluster.generations(of: 1) == [0])
            let (count, gap) = try await load.finish(cluster, readFrom: [1, 3])
            print("wiped node: \(count) saves meanwhile, longest gap \(gap)")
            // Two of three have everything, the new one among them.
            cluster.base.kill(1)
            let after = SteadyLoad(cluster, nodes: [2, 3])
            try await cluster.await("saves go through node 3 alone with node 2") {
                try await cluster.client.get("/health/ready", node: 2).status == 200
            }
            _ = try await enough(after, cluster)
            // It keeps its place over a restart.
            cluster.base.kill(3)
            try cluster.base.start(3)
            try cluster.base.start(1)
            for id in 1...3 { try await cluster.awaitReady(id) }
            try await cluster.awaitSettled()
            #expect(try await cluster.generations(of: 3) == [1])
        }

        private func enough(_ load: SteadyLoad, _ cluster: GrowingCluster) async throws -> Int {
            try await load.awaitSaves(20)
            return try await load.finish(cluster, readFrom: [2, 3]).count
        }

        @Test("a node whose raft log is damaged, then one whose log is gone")
        func damagedLog() async throws {
            let cluster = try GrowingCluster()
            try await cluster.begin()
            let load = SteadyLoad(cluster, nodes: [1, 2])
            try await cluster.await("there is something in the log") {
                try await cluster.client.admin("GET", "status", node: 2)["ready"] == .bool(true)
            }
            #expect(cluster.base.processes[3]?.stop() == 0)
            try Damage.flip(inFirstSegmentOf: cluster.folder(of: 3) + "/log")
            try cluster.base.start(3)
            try await cluster.base.awaitLog(of: 3, "error", "begins anew", "damaged")
            try await cluster.awaitReady(3)
            try await cluster.awaitSettled()
            #expect(try await cluster.generations(of: 3) == [1])
            #expect(FileManager.default.fileExists(atPath: cluster.folder(of: 3) + "/lost-1/log/identity"))
            cluster.base.kill(3)
            try FileManager.default.removeItem(atPath: cluster.folder(of: 3) + "/log")
            try cluster.base.start(3)
            try await cluster.base.awaitLog(of: 3, "error", "begins anew", "log is missing")
            try await cluster.awaitReady(3)
            try await cluster.awaitSettled()
            #expect(try await cluster.generations(of: 3) == [2])
            _ = try await load.finish(cluster, readFrom: [1, 2, 3])
        }

        @Test("an old copy of the folder is found out, moved aside, and the node joins anew by itself")
        func oldCopy() async throws {
            let cluster = try GrowingCluster()
            try await cluster.begin()
            #expect(cluster.base.processes[3]?.stop() == 0)
            let copy = try cluster.copyFolder(of: 3)
            try cluster.base.start(3)
            try await cluster.awaitReady(3)
            let load = SteadyLoad(cluster, nodes: [1, 2, 3])
            try await load.awaitSaves(20)
            try cluster.killAndPutBack(copy, of: 3)
            try cluster.base.start(3)
            try await cluster.base.awaitLog(of: 3, "begins anew", "old copy")
            try await cluster.base.awaitLog(of: 3, "joins cluster test")
            try await cluster.awaitReady(3)
            try await cluster.awaitSettled()
            #expect(try await cluster.generations(of: 3) == [1])
            #expect(cluster.base.processes[3]?.isRunning == true)
            _ = try await load.finish(cluster, readFrom: [1, 2, 3])
        }

        @Test("a node whose folder is of the time when it was alone does not lead by it before it hears the others")
        func imageOfTheOnlyNode() async throws {
            let cluster = try GrowingCluster(nodeCount: 1, spare: 2)
            try await cluster.begin()
            #expect(cluster.base.processes[1]?.stop() == 0)
            let copy = try cluster.copyFolder(of: 1)
            try cluster.base.start(1)
            try await cluster.awaitReady(1)
            for id in [2, 3] {
                try cluster.configure(id)
                try cluster.base.start(id)
                let added = try await cluster.command(["cluster", "add", "\(id)"] + cluster.addresses(of: id))
                try #require(added.status == 0, "\(added)")
            }
            try await cluster.awaitSettled()
            let load = SteadyLoad(cluster, nodes: [1, 2, 3])
            try await load.awaitSaves(20)
            try cluster.killAndPutBack(copy, of: 1)
            let before = try String(contentsOfFile: cluster.logPath(of: 1), encoding: .utf8)
            try cluster.base.start(1)
            try await cluster.base.awaitLog(of: 1, "begins anew", "old copy")
            let after = try String(contentsOfFile: cluster.logPath(of: 1), encoding: .utf8).dropFirst(before.count)
            let start = after.prefix(upTo: try #require(after.range(of: "begins anew")).lowerBound)
            #expect(!start.contains("leading in term"), "\(start)")
            try await cluster.awaitReady(1)
            try await cluster.awaitSettled()
            _ = try await load.finish(cluster, readFrom: [1, 2, 3])
        }

        @Test("a node that knows nobody who is left is found by those in the others' places, with an old copy, too")
        func allOthersReplaced() async throws {
            let cluster = try GrowingCluster(spare: 2)
            try await cluster.begin()
            #expect(cluster.base.processes[1]?.stop() == 0)
            let copy = try cluster.copyFolder(of: 1)
            for (old, new) in [(2, 4), (3, 5)] {
                try cluster.configure(new)
                try cluster.base.start(new)
                let words = ["cluster", "replace", "\(old)", "\(new)"] + cluster.addresses(of: new)
                let replaced = try await cluster.command(words)
                try #require(replaced.status == 0, "\(replaced)")
                try await cluster.await("node \(old) ends") { cluster.base.processes[old]?.isRunning == false }
            }
            let load = SteadyLoad(cluster, nodes: [4, 5])
            try await load.awaitSaves(20)
            try cluster.base.start(1)
            try await cluster.awaitReady(1)
            try await cluster.awaitSettled()
            #expect(try await cluster.generations(of: 1) == [0])
            try cluster.killAndPutBack(copy, of: 1)
            try cluster.base.start(1)
            try await cluster.base.awaitLog(of: 1, "begins anew", "old copy")
            try await cluster.awaitReady(1)
            try await cluster.awaitSettled()
            #expect(try await cluster.generations(of: 1) == [1])
            _ = try await load.finish(cluster, readFrom: [1, 4, 5])
        }

        @Test("an image of the same start, which no count of starts can tell, is told by what was acknowledged")
        func imageOfSameStart() async throws {
            let cluster = try GrowingCluster()
            try await cluster.begin()
            // Who follows acknowledges; a leader that comes back to another's reign has nothing of its own left to
            // lose.
            let moved = try await cluster.command(["cluster", "transfer", "--all-from", "3"])
            try #require(moved.status == 0, "\(moved)")
            let copy = try await cluster.pausedImage(of: 3)
            let load = SteadyLoad(cluster, nodes: [1, 2])
            try await load.awaitSaves(100)
            try cluster.killAndPutBack(copy, of: 3)
            try cluster.base.start(3)
            try await cluster.base.awaitLog(of: 3, "begins anew", "acknowledged entry", "not here")
            try await cluster.awaitReady(3)
            try await cluster.awaitSettled()
            #expect(try await cluster.generations(of: 3) == [1])
            _ = try await load.finish(cluster, readFrom: [1, 2, 3])
        }

        /// When an image is taken, always within the only start of its node.
        enum ImageTime: CaseIterable {
            case beforeTheCluster, beforeItWasAdded, beforeItHadShards
        }

        @Test(
            "an image of before replicas were made is told by what those acknowledged",
            arguments: Soak.isOn ? ImageTime.allCases : [.beforeItHadShards])
        func imageOfBeforeReplica(_ time: ImageTime) async throws {
            let cluster = try GrowingCluster(spare: 1)
            let id = time == .beforeTheCluster ? 3 : 4
            var image = ""
            func takeImage(_ now: ImageTime) async throws {
                if now == time { image = try await cluster.pausedImage(of: id) }
            }
            func change(_ words: [String]) async throws {
                let changed = try await cluster.command(["cluster"] + words)
                try #require(changed.status == 0, "\(words): \(changed)")
            }
            if id == 3 {
                try cluster.base.start(3)
                try await cluster.base.awaitLog(of: 3, "waiting for node 1, 2")
                try await takeImage(.beforeTheCluster)
            }
            try await cluster.begin()
            if id == 4 {
                try cluster.configure(4)
                try cluster.base.start(4)
                try await cluster.base.awaitLog(of: 4, "not in the cluster yet")
                try await takeImage(.beforeItWasAdded)
                try await change(["add", "4"] + cluster.addresses(of: 4))
                try await takeImage(.beforeItHadShards)
                // So it gets replicas of all shards.
                try await change(["remove", "3"])
            }
            // Node 1, which leads, is the one to know.
            for other in [2, id] { try await change(["transfer", "--all-from", "\(other)", "--to", "1"]) }
            let load = SteadyLoad(cluster, nodes: [1, 2])
            try await load.awaitSaves(20)
            try cluster.killAndPutBack(image, of: id)
            try cluster.base.start(id)
            // With the directory it had something, too, which the image lacks a part of.
            let reason = time == .beforeItHadShards ? "which is not here" : "none was ever made here"
            try await cluster.base.awaitLog(of: id, "begins anew", reason)
            try await cluster.awaitReady(id)
            try await cluster.awaitSettled()
            _ = try await load.finish(cluster, readFrom: [1, 2, id])
        }

        @Test("one damaged database is kept as evidence, and only its shard is fetched anew; the directory's likewise")
        func damagedDatabase() async throws {
            let cluster = try GrowingCluster()
            try await cluster.begin()
            let load = SteadyLoad(cluster, nodes: [1, 2])
            try await load.awaitSaves(20)
            #expect(cluster.base.processes[3]?.stop() == 0)
            try Damage.overwriteStart(of: cluster.folder(of: 3) + "/shards/0002.sqlite")
            try Damage.overwriteStart(of: cluster.folder(of: 3) + "/directory.sqlite")
            try cluster.base.start(3)
            try await cluster.base.awaitLog(of: 3, "error", "group 3", "damaged", "a good copy is fetched")
            try await cluster.awaitReady(3)
            try await cluster.awaitSettled()
            let evidence = try FileManager.default.contentsOfDirectory(atPath: cluster.folder(of: 3) + "/damaged")
            #expect(evidence.contains("1-0002.sqlite") && evidence.contains("1-directory.sqlite"), "\(evidence)")
            // The other shards have the replicas that they had.
            #expect(try await cluster.generations(of: 3) == [0, 1, 2])
            _ = try await load.finish(cluster, readFrom: [1, 2, 3])
        }

        @Test("two of three wiped: they found nothing new, say what they wait for, and go on when a good copy is back")
        func majorityLost() async throws {
            let cluster = try GrowingCluster()
            try await cluster.begin()
            for id in 1...3 { cluster.base.kill(id) }
            let kept = cluster.base.folder + "/kept"
            try FileManager.default.moveItem(atPath: cluster.folder(of: 2), toPath: kept)
            try FileManager.default.removeItem(atPath: cluster.folder(of: 3))
            try cluster.base.start(2)
            try cluster.base.start(3)
            try await cluster.base.awaitLog(of: 2, "a new cluster is founded when all its nodes are there", "node 1")
            try cluster.base.start(1)
            try await cluster.base.awaitLog(of: 2, "does not take this node's new data folder into use yet")
            #expect(try await cluster.client.get("/health/ready", node: 1).status == 503)
            cluster.base.kill(2)
            try FileManager.default.removeItem(atPath: cluster.folder(of: 2))
            try FileManager.default.moveItem(atPath: kept, toPath: cluster.folder(of: 2))
            try cluster.base.start(2)
            for id in 1...3 { try await cluster.awaitReady(id) }
            try await cluster.awaitSettled()
            #expect(try await cluster.generations(of: 3) == [1])
            #expect(try await cluster.generations(of: 2) == [0])
        }
    }
}

/// Damage to files of a stopped node.
enum Damage {
    /// Overwrites what says that a file is a database.
    ///
    /// A read that still runs when a node stops leaves a write-ahead log beside the database. It may hold the first
    /// page, which would mend the damage, so it goes too.
    static func overwriteStart(of path: String) throws {
        if FileManager.default.fileExists(atPath: path + "-wal") {
            try FileManager.default.removeItem(atPath: path + "-wal")
        }
        var bytes = try Data(contentsOf: URL(filePath: path))
        try #require(bytes.count >= 4_096, "\(path) is empty")
        bytes.replaceSubrange(0..<100, with: Data(repeating: 0x5A, count: 100))
        try bytes.write(to: URL(filePath: path))
    }

    /// Flips bits in the middle of what the first segment of a raft log holds.
    static func flip(inFirstSegmentOf folder: String) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".seg") }.sorted()
        let path = folder + "/" + (try #require(names.first))
        var bytes = try Data(contentsOf: URL(filePath: path))
        let end = try #require(bytes.lastIndex { $0 != 0 })
        for offset in 0..<16 { bytes[end / 2 + offset] ^= 0x5A }
        try bytes.write(to: URL(filePath: path))
    }
}
