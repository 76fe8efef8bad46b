import Foundation
import NIOCore
import RaftCore
import Storage
import Synchronization
import Testing
import Wire

@testable import Cluster

extension WaitingClusterSuites {
    @Suite("A node whose disk is slow")
    struct SlowDiskTests {
        @Test(
            "it takes no more than the log's queue holds, calls no disk full, and does what it took",
            .timeLimit(.minutes(10)))
        func slowDisk() async throws {
            let disk = StuckDisk()
            let cluster = try await TestCluster.started(nodeCount: 1) { settings in
                settings.log.disk = disk
                settings.log.queueBytesMax = 16 << 20
                settings.requestDeadlineMilliseconds = 60_000
            }
            let node = try cluster.node(1)
            _ = try await Commands.submit(Commands.installSchema(), to: node)
            disk.isStuck.update { $0 = true }

            let results = Mutex<[Int: Result<[UInt8], ReplicaError>]>([:])
            let command = GroupCommand.machine([UInt8](repeating: 0xFF, count: 5 << 20)).encoded()
            for number in 0..<8 {
                let group = GroupID.shard(number % 4)
                try await node.lane.eventLoop.submit { [lane = node.lane] in
                    lane.runner.propose(command, to: group) { result in results.withLock { $0[number] = result } }
                }.get()
                // After the lane's flush, so that each is a submission of its own.
                try await node.lane.eventLoop.submit {}.get()
            }
            // Three fit the queue; with the fourth one in hand the lane takes no more.
            let refused = results.withLock { $0 }
            #expect(refused.keys.sorted() == [4, 5, 6, 7])
            for result in refused.values { #expect(throws: ReplicaError.overloaded) { try result.get() } }
            await #expect(throws: ClusterError.self) {
                try await Commands.submit(Commands.save("refused", number: 1), to: node)
            }
            let isShort = try await node.lane.eventLoop.submit { [lane = node.lane] in lane.context.disk.isShort }.get()
            #expect(!isShort)
            #expect(FileManager.default.fileExists(atPath: cluster.dataPath(1) + "/reserve.free"))

            disk.isStuck.update { $0 = false }
            let end = ContinuousClock.now.advanced(by: .seconds(60))
            while results.withLock({ $0.count }) < 8, ContinuousClock.now < end { try await node.refreshDirectory() }
            for number in 0..<4 {
                let result = try #require(results.withLock { $0[number] })
                #expect(throws: Never.self) { try result.get() }
            }
            _ = try await Commands.submit(Commands.save("taken", number: 1), to: node)
            await cluster.stop()
        }
    }
}

/// A disk whose syncs of the log can be held up.
private final class StuckDisk: LogDisk {
    let isStuck = Monitor(false)

    func sync(_ file: DiskFile) throws(DiskError) {
        if file.path.hasSuffix(".seg") { isStuck.wait { $0 ? nil : () } }
        try file.syncData()
    }
}
