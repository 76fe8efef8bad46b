import Foundation
import Glibc
import ServiceClient
import Synchronization
import TestSupport
import Testing

@testable import CloudKit

@Suite("Assets, where real nodes are killed in the middle of a file")
struct AssetKillTests {
    private static let size = 24_000_000

    /// Kills a process once, as soon as a part of a file has moved and a condition holds.
    private final class Killer: Sendable {
        private let pid: Int32
        private let mayKill: @Sendable () -> Bool
        /// How much had moved then.
        let part = Mutex<Double?>(nil)

        init(_ process: ServerProcess, where mayKill: @escaping @Sendable () -> Bool = { true }) {
            pid = process.pid
            self.mayKill = mayKill
        }

        func moved(_ part: Double) {
            self.part.withLock { known in
                guard known == nil, part >= 0.4, mayKill() else { return }
                kill(pid, SIGKILL)
                known = part
            }
        }
    }

    /// The cluster's container, by nodes in the order in which they are asked.
    private func database(_ cluster: ProcessCluster, _ ports: [Int]) throws -> CKDatabase {
        var configuration = try ZonekeeperConfiguration(variables: cluster.environment)
        configuration.urls = ports.map { "https://127.0.0.1:\($0)" }
        return CKContainer(configuration: configuration).privateCloudDatabase
    }

    @Test(
        "an upload begins again at another node, and a download goes on there behind what came",
        .timeLimit(.minutes(10)))
    func killed() async throws {
        let cluster = try ProcessCluster()
        try await cluster.startAll()
        try await cluster.prepare()
        let folder = try TestFolder()
        defer { folder.remove() }
        let bytes = someBytes(Self.size)
        let record = CKRecord(recordType: "Photo")
        record["image"] = CKAsset(fileURL: try folder.file(bytes))

        let incoming = "\(cluster.folder)/data/node-1/assets/incoming"
        let uploading = Killer(try #require(cluster.processes[1])) {
            (try? FileManager.default.contentsOfDirectory(atPath: incoming).isEmpty) == false
        }
        let save = CKModifyRecordsOperation(recordsToSave: [record])
        save.perRecordProgressBlock = { _, part in uploading.moved(part) }
        let saved = Mutex<CKError.Code??>(nil)
        save.perRecordSaveBlock = { _, result in saved.withLock { $0 = .some(result.code) } }
        await run(save, on: try database(cluster, cluster.clientPorts))
        #expect(try #require(uploading.part.withLock { $0 }) < 0.9)
        #expect(saved.withLock { $0 } == .some(nil))

        cluster.kill(1)
        try cluster.start(1)
        try await cluster.awaitReady(1)
        // The node that is killed cannot have sent it all.
        let second = try await Relay(to: [cluster.clientPorts[1]], bytesMax: Self.size * 3 / 5)
        let others = try await Relay(to: [cluster.clientPorts[0], cluster.clientPorts[2]])
        let downloading = Killer(try #require(cluster.processes[2]))
        let fetch = CKFetchRecordsOperation(recordIDs: [record.recordID])
        fetch.perRecordProgressBlock = { _, part in downloading.moved(part) }
        let fetched = Mutex<CKRecord?>(nil)
        fetch.perRecordResultBlock = { _, result in fetched.withLock { $0 = try? result.get() } }
        await run(fetch, on: try database(cluster, [second.port, others.port]))
        let asset = try #require(fetched.withLock { $0 }?["image"] as? CKAsset)
        #expect(try [UInt8](Data(contentsOf: #require(asset.fileURL))) == bytes)
        // It did not begin again. What was on its way as a connection broke may have come twice.
        let (part, carried) = (try #require(downloading.part.withLock { $0 }), others.bytesToClients)
        #expect(carried > Self.size / 4 && carried < Self.size * 9 / 10, "\(part), \(carried)")
        second.close()
        others.close()
        cluster.kill(2)
        #expect(cluster.stop() == [])
    }
}
