import Cluster
import Foundation
import RecordModel
import RecordStore
import Storage
import Synchronization
import Testing

@Suite("A node whose disk is full")
struct FullDiskTests {
    @Test(
        "it refuses what grows and says why, reads and deletes, and is well again by itself", .timeLimit(.minutes(10)))
    func fullDisk() async throws {
        let disk = CrampedDisk()
        let cluster = try await TestCluster.started(nodeCount: 1) { settings in
            settings.shardCount = 1
            settings.log.segmentBytes = 64 << 10
            settings.commandBytesMax = 32 << 10
            settings.log.disk = disk
            settings.spaceReserveBytes = 64 << 10
        }
        let node = try cluster.node(1)
        _ = try await Commands.submit(Commands.installSchema(), to: node)
        _ = try await Commands.submit(Commands.save(Self.name(0), number: 0), to: node)
        // While its disk is full, a node raises no group's feature level.
        try await yieldUntil { await node.isReady(node.status()) }

        disk.isFull.store(true, ordering: .releasing)
        var saved = 0
        var refusal: ClusterError?
        while refusal == nil, saved < 2_000 {
            do {
                saved += 1
                _ = try await Commands.submit(Commands.save(Self.name(saved), number: 1), to: node)
            } catch let error as ClusterError {
                refusal = error
            }
        }
        guard case .unavailable(let reason)? = refusal else {
            Issue.record("after \(saved) records: \(String(describing: refusal))")
            return
        }
        #expect(reason.contains("the disk of node 1") && reason.contains("full"))
        #expect(await node.obstacle(node.status())?.contains("the disk of node 1 is full") == true)
        #expect(await NodeMetrics.lines(of: node).contains("zonekeeper_disk_short 1"))

        // What was accepted until then is there. How much that is depends on when the node looks at its disk again.
        #expect(try await Commands.lookup(Self.name(saved - 1), on: node).contains("number"))
        // What found the disk full goes to the log once more, and a deletion is taken after that.
        #expect(try await Self.outcome(of: Commands.delete(Self.name(0)), by: node) == .records([.deleted]))
        await #expect(throws: ClusterError.self) {
            try await Commands.submit(Commands.save("refused", number: 1), to: node)
        }

        disk.isFull.store(false, ordering: .releasing)
        // Space came back, and nothing else is needed.
        _ = try await Self.outcome(of: Commands.save("again", number: 2), by: node)
        let obstacle = await node.obstacle(node.status())
        #expect(obstacle == nil)
        #expect(await NodeMetrics.lines(of: node).contains("zonekeeper_disk_short 0"))
        await cluster.stop()
    }

    /// What came of a command, which is tried until the node takes it.
    private static func outcome(of command: ShardCommand, by node: ClusterNode) async throws -> RecordOutcome? {
        var outcome: RecordOutcome?
        try await yieldUntil {
            outcome = try? await Commands.submit(command, to: node)
            return outcome != nil
        }
        return outcome
    }

    private static func name(_ number: Int) -> String { "\(number)-" + String(repeating: "n", count: 240) }
}

/// A disk that can be told to have no room for new files.
private final class CrampedDisk: LogDisk {
    let isFull = Atomic(false)

    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        if isFull.load(ordering: .acquiring), !file.path.hasSuffix(".seg") {
            throw DiskError(operation: "pwrite", path: file.path, code: ENOSPC)
        }
        return try file.write(bytes, at: offset)
    }

    func freeBytes(at folder: String) throws(DiskError) -> Int {
        isFull.load(ordering: .acquiring) ? 0 : 1 << 40
    }
}
