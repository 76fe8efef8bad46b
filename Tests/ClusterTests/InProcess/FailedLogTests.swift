import Cluster
import Foundation
import Storage
import Synchronization
import Testing

extension ClusterSuites {
    @Suite("A node whose raft log fails")
    struct FailedLogTests {
        @Test("it ends where it only joins, too, and has no replica yet that could tell", .timeLimit(.minutes(1)))
        func joining() async throws {
            let disk = BrokenDisk()
            let cluster = try await TestCluster(nodeCount: 3) { settings in
                settings.shardCount = 1
                if settings.nodeID == 3 { settings.log.disk = disk }
            }
            try await cluster.start()
            try await cluster.awaitMaps()
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
            try await cluster.shutDown()
        }
    }
}

/// A disk that can be told to fail what is written to the log.
private final class BrokenDisk: LogDisk {
    let isBroken = Atomic(false)

    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        if isBroken.load(ordering: .acquiring), file.path.hasSuffix(".seg") {
            throw DiskError(operation: "pwrite", path: file.path, code: EIO)
        }
        return try file.write(bytes, at: offset)
    }
}
