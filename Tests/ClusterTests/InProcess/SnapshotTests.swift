import Directory
import Foundation
import GRDB
import Logging
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
import RecordStore
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Cluster

extension WaitingClusterSuites {
    @Suite("A node that was away for longer than the log remembers")
    struct SnapshotTests {
        @Test(
            "is given a snapshot, ends up with the same state, and keeps it over a restart", .timeLimit(.minutes(10)))
        func catchesUp() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3) { Self.forget(&$0) }
            let (group, away) = try await leaveBehind(in: cluster)
            let witness = try #require(cluster.nodes.keys.sorted().first)
            try await cluster.start([away])
            let hash = try await cluster.node(witness).router.submit(
                .hashState, to: group, by: cluster.node(witness).deadline())
            try await yieldUntil { await isAt(hash, of: group, on: try cluster.node(away)) }
            await cluster.stop([away])
            try await cluster.start([away])
            try await yieldUntil { await isAt(hash, of: group, on: try cluster.node(away)) }
            await cluster.stop()
        }

        @Test(
            "is sent none that its disk, or its leader's, has no room for, says what takes the room, and then has it",
            .timeLimit(.minutes(10)), arguments: [true, false])
        func noRoom(isAtFollower: Bool) async throws {
            let disks = (1...3).map { _ in NarrowDisk() }
            let cluster = try await TestCluster.started(nodeCount: 3) { settings in
                Self.forget(&settings)
                settings.log.disk = disks[Int(settings.nodeID.rawValue) - 1]
            }
            let (group, away) = try await leaveBehind(in: cluster)
            let others = cluster.nodes.keys.sorted()
            let narrow = isAtFollower ? [away] : others
            for id in narrow { disks[Int(id) - 1].isNarrow.store(true, ordering: .releasing) }
            try FileManager.default.createDirectory(
                atPath: cluster.dataPath(away) + "/lost-1", withIntermediateDirectories: false)
            try await cluster.start([away])
            let node = try cluster.node(away)
            try await yieldUntil {
                others.contains {
                    cluster.clocks[Int($0) - 1].wasAskedToSleep(milliseconds: SnapshotDelivery.roomMilliseconds)
                }
            }
            if isAtFollower { try await yieldUntil { await node.obstacle(node.status())?.contains("lost-1") == true } }
            for id in others {
                let copies = try FileManager.default.contentsOfDirectory(atPath: cluster.dataPath(id) + "/snapshots")
                #expect(copies.isEmpty)
            }
            for id in narrow { disks[Int(id) - 1].isNarrow.store(false, ordering: .releasing) }
            let witness = try cluster.node(others[0])
            let hash = try await witness.router.submit(.hashState, to: group, by: witness.deadline())
            try await yieldUntil { await isAt(hash, of: group, on: node) }
            try await yieldUntil { await node.isReady(node.status()) }
            await cluster.stop()
        }

        @Test("a group without writes does not hold up the log where something else emptied its write-ahead log")
        func quietGroups() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1) { $0.checkpoint.intervalMilliseconds = 3_600_000 }
            let node = try cluster.node(1)
            let appliers = node.holdings.all
            for applier in appliers {
                _ = try await node.router.submit(.hashState, to: applier.group, by: node.deadline())
            }
            var left = node.log.uncheckpointedGroups
            #expect(left == Set(appliers.map(\.group)))
            var now = MonotonicTime.zero
            // Again where the node wrote an entry of its own meanwhile.
            for _ in 0..<1_000 where !left.isEmpty {
                for applier in appliers { _ = try applier.database.checkpoint() }
                now = now.adding(milliseconds: 3_600_000)
                node.checkpointer.round(now: now)
                left = node.log.uncheckpointedGroups
            }
            #expect(left == [])
            await cluster.stop()
        }

        @Test("a damaged replica makes no copy of its data for a follower", .timeLimit(.minutes(10)))
        func damaged() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1)
            let lane = try cluster.node(1).lane
            let follower = ReplicaID(2)
            let copy = "\(cluster.dataPath(1))/snapshots/\(GroupID.directory)-\(follower)-out.sqlite"
            try await lane.eventLoop.submit {
                let replica = try #require(lane.replicas[.directory])
                replica.damage = ReplicaDamage(StorageMismatch("a value cannot be read"), .reading, generation: 0)
                lane.runner.sendSnapshot(of: replica, to: follower)
            }.get()
            var wasMade = false
            try await yieldUntil {
                wasMade = wasMade || FileManager.default.fileExists(atPath: copy)
                return try await lane.eventLoop.submit {
                    lane.replicas[.directory]?.snapshotsUnderway.isEmpty != false
                }.get()
            }
            #expect(!wasMade)
            await cluster.stop()
        }

        @Test("a checkpoint that a reader holds back lets nothing go from the log", .timeLimit(.minutes(10)))
        func heldCheckpoint() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1) { $0.checkpoint.intervalMilliseconds = 3_600_000 }
            let node = try cluster.node(1)
            let applier = try #require(node.holdings[GroupID(1)])
            var configuration = GRDB.Configuration()
            configuration.allowsUnsafeTransactions = true
            let path = ReplicaOpening.databasePath(of: applier.group, in: cluster.dataPath(1))
            let reader = try DatabaseQueue(path: path, configuration: configuration)
            try reader.inDatabase { try $0.execute(sql: "BEGIN; SELECT count(*) FROM applied") }
            _ = try await node.router.submit(.hashState, to: applier.group, by: node.deadline())
            node.checkpointer.round(now: MonotonicTime(milliseconds: 3_600_000))
            #expect(node.log.uncheckpointedGroups.contains(applier.group))
            try reader.inDatabase { try $0.execute(sql: "COMMIT") }
            try await checkpoint(applier.group, on: node)
            try reader.close()
            await cluster.stop()
        }

        @Test("a copy of one group's database holds up checkpoints of no other", .timeLimit(.minutes(10)))
        func checkpointsBesideCopy() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1) { $0.checkpoint.intervalMilliseconds = 3_600_000 }
            let node = try cluster.node(1)
            let (copied, other) = (GroupID(1), GroupID(2))
            let database = try #require(node.holdings[copied]).database
            var configuration = GRDB.Configuration()
            configuration.allowsUnsafeTransactions = true
            let reader = try DatabaseQueue(path: database.path, configuration: configuration)
            try reader.inDatabase { try $0.execute(sql: "BEGIN; SELECT count(*) FROM applied") }
            for group in [copied, other] {
                _ = try await node.router.submit(.hashState, to: group, by: node.deadline())
            }
            // What a reader holds back is looked at again between two writes, and this one does not end.
            let write = Monitor((isUnderway: false, mayEnd: false))
            let writer = SystemThread {
                try? database.write { _ in
                    write.update { $0.isUnderway = true }
                    write.wait { $0.mayEnd ? () : nil }
                }
            }
            try await yieldUntil { write.withLock(\.isUnderway) }
            let path = cluster.dataPath(1) + "/copy"
            let copier = SystemThread { try? database.copy(to: path) }
            try await yieldUntil { database.isBeingCopied }

            try await checkpoint(other, on: node)
            #expect(node.log.uncheckpointedGroups.contains(copied))
            write.update { $0.mayEnd = true }
            for thread in [writer, copier] { thread.join() }
            #expect(!database.isBeingCopied)
            try reader.inDatabase { try $0.execute(sql: "COMMIT") }
            try reader.close()
            await cluster.stop()
        }

        @Test("a node that stops gives up the copies and hashes that it is making", .timeLimit(.minutes(10)))
        func stopsBesideCopy() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1)
            let node = try cluster.node(1)
            let database = try #require(node.holdings[GroupID(1)]).database
            let path = cluster.dataPath(1) + "/copy"
            let isUnderway = Monitor(false)
            let copy = Task { [pool = node.pools.snapshots] in
                try await pool.run {
                    try OutgoingSnapshot(copying: database, to: path, id: 1) {
                        isUnderway.update { $0 = true }
                        // As large as it takes.
                        while pool.isActive { sched_yield() }
                        return false
                    }
                }
            }
            try await yieldUntil { isUnderway.withLock(\.self) }
            await cluster.stop()
            await #expect(throws: CancellationError.self) { _ = try await copy.value }
            #expect(!FileManager.default.fileExists(atPath: path))
            #expect(throws: CancellationError.self) {
                try FileHash.ofFile(at: ReplicaOpening.databasePath(of: GroupID(1), in: cluster.dataPath(1))) { false }
            }
            await cluster.stop()
        }

        @Test("what readers kept of the old database's write-ahead log is not laid over an installed snapshot")
        func keptFrames() async throws {
            try await TemporaryFolder.with { folder in
                let members = RaftCore.Configuration(voters: [ReplicaID(1)])
                func position(_ index: UInt64) -> LogPosition { LogPosition(index: LogIndex(index), term: Term(1)) }
                func open(_ name: String) throws -> ShardDatabase {
                    try ShardDatabase.open(path: "\(folder)/\(name)") {
                        try AppliedRow.create(in: $0, configuration: members)
                    }
                }
                let old = try open("old")
                try #require(try old.truncateWAL())
                var configuration = GRDB.Configuration()
                configuration.allowsUnsafeTransactions = true
                let reader = try DatabaseQueue(path: folder + "/old", configuration: configuration)
                try reader.inDatabase { try $0.execute(sql: "BEGIN; SELECT count(*) FROM applied") }
                try old.write { try AppliedRow.setPosition(position(5), in: $0) }
                let new = try open("new")
                try new.write { try AppliedRow.setPosition(position(9), in: $0) }
                try #require(try new.truncateWAL())
                try new.close()
                let installed = try SnapshotInstall.replaceDatabase(
                    at: folder + "/old", by: folder + "/new",
                    mark: SnapshotMark(position: position(9), configuration: members), old: old,
                    options: ShardDatabaseOptions(), on: PosixDisk())
                #expect(try installed.read { try AppliedRow.mark(of: $0).position } == position(9))
                try installed.close()
                try reader.close()
            }
        }

        @Test("a snapshot counts as installed once its name is durable, also where that failed at first")
        func durableName() async throws {
            try await TemporaryFolder.with { folder in
                let members = RaftCore.Configuration(voters: [ReplicaID(1)])
                let mark = SnapshotMark(position: .zero, configuration: members)
                func open(_ name: String) throws -> ShardDatabase {
                    try ShardDatabase.open(path: "\(folder)/\(name)") {
                        try AppliedRow.create(in: $0, configuration: members)
                    }
                }
                let (old, new) = (try open("old"), try open("new"))
                try new.close()
                let disk = ForgetfulFolders()
                func install() throws -> ShardDatabase {
                    try SnapshotInstall.replaceDatabase(
                        at: folder + "/old", by: folder + "/new", mark: mark, old: old, options: ShardDatabaseOptions(),
                        on: disk)
                }
                #expect(throws: DiskError.self) { try install() }
                #expect(try listFolder(at: folder) == ["old"])
                let installed = try install()
                let isDurable = disk.isDurable.load(ordering: .acquiring)
                #expect(isDurable)
                try installed.close()
            }
        }

        @Test("a replica puts a snapshot in place through the disk that its node was given")
        func givenDisk() async throws {
            try await TemporaryFolder.with { folder in
                let members = RaftCore.Configuration(voters: [ReplicaID(1)])
                let disk = NotedFolders()
                var options = RaftLogOptions()
                options.disk = disk
                let (log, _) = try RaftLog.open(directory: folder + "/log", options: options)
                let machine = DirectoryMachine(vault: FieldVault(clusterKey: nil))
                func open(_ name: String) throws -> ShardDatabase {
                    try ShardDatabase.open(path: "\(folder)/\(name)") { db in
                        try AppliedRow.create(in: db, configuration: members)
                        try machine.createTables(in: db)
                    }
                }
                try open("new").close()
                let applier = try Applier(
                    group: .directory, machine: machine, database: try open("old"), path: folder + "/old",
                    options: ShardDatabaseOptions(), log: log, settings: ApplySettings(), levels: FeatureLevels(),
                    logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
                let mark = SnapshotMark(position: .zero, configuration: members)
                #expect(applier.enqueue(.install(path: folder + "/new", mark)))
                var installed: SnapshotMark?
                applier.drain { if case .applied(_, let mark) = $0 { installed = mark } }
                #expect(installed == mark)
                #expect(disk.synced.withLock { $0.filter { $0 == folder }.count } == 2)
                try applier.database.close()
                log.close()
                let names = try listFolder(at: folder)
                #expect(try ClusterMap.ofStopped(folder + "/old") == nil)
                #expect(try Set(listFolder(at: folder)).isSubset(of: names), "a map is read without traces")
            }
        }

        @Test("reading where a copy stands leaves nothing beside it")
        func nothingBeside() async throws {
            try await TemporaryFolder.with { folder in
                let members = RaftCore.Configuration(voters: [ReplicaID(1)])
                let database = try ShardDatabase.open(path: folder + "/own") {
                    try AppliedRow.create(in: $0, configuration: members)
                }
                let copies = folder + "/copies"
                try makeFolder(at: copies)
                let copy = try OutgoingSnapshot(copying: database, to: copies + "/out", id: 1)
                #expect(copy.mark.configuration == members)
                #expect(try SnapshotInstall.level(ofFileAt: copy.path) == .first)
                #expect(try listFolder(at: copies) == ["out"])
                try database.close()
            }
        }

        @Test("a log with another entry than the one that the database stands at gives way to the database's mark")
        func contradictedLog() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1)
            let group = GroupID(1)
            _ = try await cluster.node(1).router.submit(.hashState, to: group, by: cluster.node(1).deadline())
            await cluster.stop()
            // As where the process ended after a snapshot was installed and before the log was told.
            let later = Term(1_000)
            let database = try DatabaseQueue(path: ReplicaOpening.databasePath(of: group, in: cluster.dataPath(1)))
            try await database.write { db in
                var position = try AppliedRow.mark(of: db).position
                position.term = later
                try AppliedRow.setPosition(position, in: db)
            }
            try database.close()
            try await cluster.start()
            let node = try cluster.node(1)
            let raft = try await node.lane.eventLoop.submit { node.raft(of: group) }.get()
            #expect(try #require(raft).term >= later)
            await cluster.stop()
        }

        /// Has nodes keep little of what a node that is away lacks.
        private static func forget(_ settings: inout NodeSettings) {
            settings.log.segmentBytes = 64 << 10
            settings.commandBytesMax = 32 << 10
            settings.log.keepEntries = 0
            // A leader sends from memory what it has there.
            settings.raft.cacheBytesMax = 16 << 10
            settings.checkpoint.intervalMilliseconds = 50
            settings.checkpoint.ageMilliseconds = 50
        }

        /// Stops a node that follows in a group, until the logs of the others lack what it lacks.
        private func leaveBehind(in cluster: TestCluster) async throws -> (group: GroupID, node: UInt64) {
            _ = try await Commands.submit(Commands.installSchema(), to: cluster.node(1))
            let group = try cluster.node(1).map.group(of: Commands.zone)
            let leader = try await leader(of: group, in: cluster)
            let away = try #require(cluster.nodes.keys.sorted().first { $0 != leader })
            await cluster.stop([away])
            let witness = try #require(cluster.nodes.keys.sorted().first)
            for number in 0..<1_500 {
                _ = try await Commands.submit(
                    Commands.save("n\(number)", number: Int64(number)), to: cluster.node(witness))
            }
            for node in cluster.nodes.values { try await awaitCollection(of: group, on: node) }
            return (group, away)
        }

        /// Has a node make checkpoints until one of a group is whole: what writes just now holds one back.
        private func checkpoint(_ group: GroupID, on node: ClusterNode) async throws {
            var now = MonotonicTime(milliseconds: 3_600_000)
            try await yieldUntil {
                now = now.adding(milliseconds: 3_600_000)
                node.checkpointer.round(now: now)
                return !node.log.uncheckpointedGroups.contains(group)
            }
        }

        private func leader(of group: GroupID, in cluster: TestCluster) async throws -> UInt64 {
            _ = try await Commands.submit(Commands.save("first", number: 0), to: cluster.node(1))
            return try #require(try cluster.node(1).leader(of: group)).rawValue
        }

        /// Waits until the log has dropped the entries that the node that is away lacks.
        private func awaitCollection(of group: GroupID, on node: ClusterNode) async throws {
            let early = LogIndex(20)
            try await yieldUntil {
                try node.log.entries(of: group, from: early, through: early, bytesMax: 1 << 20) == nil
            }
        }

        /// Whether the node's replica has recorded the hash; its database may be exchanged just now.
        private func isAt(_ hash: [UInt8], of group: GroupID, on node: ClusterNode) async -> Bool {
            await ((try? node.stateHashes(of: group)) ?? []).contains { $0.hash == hash }
        }
    }
}

/// A disk on which a folder's second sync fails, as for want of room.
private final class ForgetfulFolders: LogDisk {
    let isDurable = Atomic(false)
    private let syncs = Atomic(0)

    func syncFolder(_ path: String) throws(DiskError) {
        let count = syncs.add(1, ordering: .relaxed).newValue
        guard count != 2 else { throw DiskError(operation: "fsync", path: path, code: ENOSPC) }
        isDurable.store(count > 2, ordering: .releasing)
    }
}

/// A disk that notes which folders were synced.
private final class NotedFolders: LogDisk {
    let synced = Mutex<[String]>([])

    func syncFolder(_ path: String) throws(DiskError) {
        try fsyncFolder(at: path)
        synced.withLock { $0.append(path) }
    }
}

/// A disk that can be told to have no room but for what nodes keep of it.
private final class NarrowDisk: LogDisk {
    let isNarrow = Atomic(false)

    func freeBytes(at folder: String) throws(DiskError) -> Int {
        isNarrow.load(ordering: .acquiring) ? AssetSettings().spareBytes : 1 << 40
    }
}
