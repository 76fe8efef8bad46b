import Cluster
import Foundation
import PeerTransport
import RaftCore
import Storage
import Synchronization
import TestSupport
import Testing

extension WaitingClusterSuites {
    @Suite("A node whose disk fails what it must keep")
    struct FailedDiskTests {
        @Test(
            "it ends where its raft log fails, also while it only joins and has no replica that could tell",
            .timeLimit(.minutes(10)))
        func joining() async throws {
            let disk = BrokenDisk()
            let cluster = try await TestCluster.started(nodeCount: 3) { settings in
                settings.shardCount = 1
                if settings.nodeID == 3 { settings.log.disk = disk }
            }
            await cluster.stop([3])
            try FileManager.default.removeItem(atPath: cluster.dataPath(3))

            let (reasons, reason) = AsyncStream.makeStream(of: String.self)
            try await cluster.start([3]) { _, text in reason.yield(text) }
            disk.isBroken.store(true, ordering: .releasing)
            var iterator = reasons.makeAsyncIterator()
            let text = try #require(await iterator.next())
            #expect(text.contains("the raft log failed") && text.contains("errno: \(EIO)"), "\(text)")
            await cluster.stop([3])

            disk.isBroken.store(false, ordering: .releasing)
            try await cluster.start([3])
            try await cluster.awaitMaps()
            await cluster.stop()
        }

        @Test(
            "a sector of a database that cannot be read has its replica exchanged, while the others answer",
            .timeLimit(.minutes(10)))
        func unreadable() async throws {
            try FaultyFiles.prepare()
            let cluster = try await TestCluster.started(nodeCount: 3) { settings in
                settings.shardCount = 1
                settings.checkpoint.intervalMilliseconds = 10
                settings.checkpoint.ageMilliseconds = 10
                settings.requestDeadlineMilliseconds = 60_000
            }
            let node = try cluster.node(1)
            _ = try await Commands.submit(Commands.installSchema(), to: node)
            _ = try await Commands.submit(Commands.save("kept", number: 7), to: node)
            let leader = try #require(node.leader(of: .shard(0))).rawValue
            let shard = cluster.dataPath(leader) + "/shards/0000.sqlite"
            FaultyFiles.set(.read, isFailing: true, under: shard)
            // Writes bring checkpoints, which read the write-ahead log back.
            let evidence = cluster.dataPath(leader) + "/damaged"
            let end = ContinuousClock.now.advanced(by: .seconds(90))
            var number: Int64 = 0
            while !FileManager.default.fileExists(atPath: evidence), ContinuousClock.now < end {
                number += 1
                _ = try? await Commands.submit(Commands.save("more", number: number), to: node)
            }
            #expect(FileManager.default.fileExists(atPath: evidence), "the replica is still there")
            FaultyFiles.set(.read, isFailing: false, under: shard)
            for node in cluster.nodes.values {
                #expect(try await Commands.lookup("kept", on: node).contains("7"))
            }
            await cluster.stop()
        }

        @Test(
            "a raft log that cannot be read at the start is set aside, and the node joins again",
            .timeLimit(.minutes(10)))
        func unreadableLog() async throws {
            let disk = BrokenDisk()
            let cluster = try await TestCluster.started(nodeCount: 3) { settings in
                settings.shardCount = 1
                if settings.nodeID == 3 { settings.log.disk = disk }
            }
            await cluster.stop([3])
            disk.isUnreadable.store(true, ordering: .releasing)
            try await cluster.start([3], opened: { disk.isUnreadable.store(false, ordering: .releasing) })
            #expect(FileManager.default.fileExists(atPath: cluster.dataPath(3) + "/lost-1/log"))
            try await cluster.awaitMaps()
            await cluster.stop()
        }

        @Test(
            "a peer that it could not remember on a full disk is heard again once there is room",
            .timeLimit(.minutes(10)))
        func unrememberedPeer() async throws {
            let (refusals, refusal) = AsyncStream.makeStream(of: Void.self)
            let disk = ForgetfulDisk(refusal)
            let cluster = try await TestCluster.started(nodeCount: 3) { settings in
                settings.shardCount = 1
                settings.requestDeadlineMilliseconds = 60_000
                if settings.nodeID == 3 { settings.log.disk = disk }
            }
            disk.isFull.store(true, ordering: .releasing)
            // A node that was started again has to be remembered anew.
            await cluster.stop([1])
            try await cluster.start([1])
            // More often than there are connections that bring the node to mind.
            var iterator = refusals.makeAsyncIterator()
            for _ in 0..<16 { try #require(await iterator.next() != nil) }

            disk.isFull.store(false, ordering: .releasing)
            await cluster.stop([2])
            _ = try await Commands.submit(Commands.installSchema(), to: cluster.node(1))
            try await cluster.start([2])
            await cluster.stop()
        }

        @Test("it ends where a database cannot be synced, and the next start has everything", .timeLimit(.minutes(10)))
        func database() async throws {
            try FaultyFiles.prepare()
            let cluster = try await TestCluster(nodeCount: 1) { settings in
                settings.shardCount = 1
                settings.checkpoint.intervalMilliseconds = 10
                settings.checkpoint.ageMilliseconds = 10
            }
            let (reasons, reason) = AsyncStream.makeStream(of: String.self)
            try await cluster.start { _, text in reason.yield(text) }
            try await cluster.awaitMaps()
            _ = try await Commands.submit(Commands.installSchema(), to: cluster.node(1))
            _ = try await Commands.submit(Commands.save("kept", number: 7), to: cluster.node(1))
            FaultyFiles.set(.sync, isFailing: true, under: cluster.dataPath(1))
            // The node may have ended before it answers.
            _ = try? await Commands.submit(Commands.save("more", number: 8), to: cluster.node(1))
            var iterator = reasons.makeAsyncIterator()
            let text = try #require(await iterator.next())
            #expect(text.contains("syncing \(cluster.dataPath(1))") && text.contains("to its disk failed"), "\(text)")
            await cluster.stop()

            FaultyFiles.set(.sync, isFailing: false, under: cluster.dataPath(1))
            try await cluster.start()
            #expect(try await Commands.lookup("kept", on: cluster.node(1)).contains("7"))
            await cluster.stop()
        }
    }
}

/// A disk that can be told to fail what is written to the log.
private final class BrokenDisk: LogDisk {
    let isBroken = Atomic(false)
    /// Whether nothing can be read back.
    let isUnreadable = Atomic(false)

    func read(into buffer: UnsafeMutableRawBufferPointer, of file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        if isUnreadable.load(ordering: .acquiring), file.path.hasSuffix(".seg") {
            throw DiskError(operation: "pread", path: file.path, code: EIO)
        }
        return try file.read(into: buffer, at: offset)
    }

    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        if isBroken.load(ordering: .acquiring), file.path.hasSuffix(".seg") {
            throw DiskError(operation: "pwrite", path: file.path, code: EIO)
        }
        return try file.write(bytes, at: offset)
    }
}

/// A disk that can be told to have no room for what is remembered of peers, and says when it refused.
private final class ForgetfulDisk: LogDisk {
    let isFull = Atomic(false)
    private let refusal: AsyncStream<Void>.Continuation

    init(_ refusal: AsyncStream<Void>.Continuation) { self.refusal = refusal }

    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        if isFull.load(ordering: .acquiring), file.path.contains("peers.json") {
            refusal.yield()
            throw DiskError(operation: "pwrite", path: file.path, code: ENOSPC)
        }
        return try file.write(bytes, at: offset)
    }
}
