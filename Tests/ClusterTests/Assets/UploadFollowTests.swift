import Foundation
import Glibc
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Cluster

/// A disk that takes nothing beyond a place of a file: it is full there, or waits until it is told to go on.
private final class HaltingDisk: LogDisk {
    private let place: Int
    private let isFull: Bool
    private let isOpen = Atomic(false)
    private let gate = DispatchSemaphore(value: 0)

    init(place: Int, isFull: Bool = false) {
        self.place = place
        self.isFull = isFull
    }

    func open() {
        isOpen.store(true, ordering: .relaxed)
        gate.signal()
    }

    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        if offset >= place, !isOpen.load(ordering: .relaxed) {
            if isFull { throw DiskError(operation: "pwrite", path: file.path, code: ENOSPC) }
            gate.wait()
            gate.signal()
        }
        return try file.write(bytes, at: offset)
    }
}

extension WaitingClusterSuites.AssetClusterTests {
    private func incoming(_ cluster: TestCluster, _ id: UInt64) throws -> [String] {
        try listFolder(at: cluster.dataPath(id) + "/assets/incoming")
    }

    /// A cluster in which nobody is given up for being slow, and the first node and the others have met.
    private func patientCluster(_ change: (inout NodeSettings) -> Void = { _ in }) async throws -> TestCluster {
        let cluster = try await cluster(3) { settings in
            settings.assets.pieceMilliseconds = 3_600_000
            settings.assets.holdMilliseconds = 3_600_000
            settings.requestDeadlineMilliseconds = 60_000
            change(&settings)
        }
        for (one, other) in [(1, 2), (1, 3), (2, 1), (3, 1)] as [(UInt64, UInt64)] {
            let node = try cluster.node(one)
            try await awaitTrue("node \(one) has a way for files to node \(other)") {
                try await node.lane.eventLoop.submit { [transport = node.transport] in
                    transport.isConnected(NodeID(other), channel: .bulk)
                }.get()
            }
        }
        return cluster
    }

    /// Waits until each of the two other nodes has fetched a file.
    /// - Returns: how many of these each began while it came in.
    private func earlyPulls(_ cluster: TestCluster) async throws -> [UInt64] {
        for id in 2...3 as ClosedRange<UInt64> {
            try await awaitTrue("node \(id) has fetched it") { try cluster.node(id).assetCounts.pulls == 1 }
            #expect(try cluster.node(id).assetCounts.failedPulls == 0)
        }
        return try (2...3).map { try cluster.node($0).assetCounts.earlyPulls }
    }

    /// Begins an upload to the first node, and waits until another one copies it.
    private func begin(
        _ bytes: [UInt8], on cluster: TestCluster, copiedBy id: UInt64
    ) async throws -> (AssetUpload, GroupID) {
        let node = try cluster.node(1)
        let group = node.map.group(of: Commands.zone)
        let upload = try await node.receiveAsset(limit: 10 << 20, for: group)
        for start in stride(from: 0, to: bytes.count, by: 50_000) {
            try await upload.write(bytes[start..<min(start + 50_000, bytes.count)])
        }
        try await awaitTrue("node \(id) copies the upload") { try !incoming(cluster, id).isEmpty }
        return (upload, group)
    }

    @Test("a file is copied while it comes in, by as many nodes as make a majority; the third fetches it afterwards")
    func follows() async throws {
        let cluster = try await patientCluster()
        let bytes = bytes(1_500_000)
        let (upload, group) = try await begin(bytes, on: cluster, copiedBy: 2)
        #expect(try incoming(cluster, 3).isEmpty)
        let asset = try await upload.finish()
        try await upload.hold(asset, in: group, of: cluster.node(1))
        #expect(try await earlyPulls(cluster) == [1, 0])
        for id in 2...3 as ClosedRange<UInt64> {
            #expect(try await download(asset, from: cluster.node(id)) == bytes)
        }
        for id in 1...3 as ClosedRange<UInt64> { #expect(try incoming(cluster, id).isEmpty) }
        await cluster.stop()
    }

    @Test("an upload that is given up, or whose node goes, leaves nothing where it was copied")
    func givenUp() async throws {
        let cluster = try await patientCluster()
        let (upload, _) = try await begin(bytes(1_000_000), on: cluster, copiedBy: 2)
        await upload.abandon()
        try await awaitTrue("the copy goes") { try incoming(cluster, 2).isEmpty }
        let (next, _) = try await begin(bytes(1_000_000), on: cluster, copiedBy: 2)
        try await cluster.node(1).transport.shutdown().get()
        try await awaitTrue("the copy goes with the node") { try incoming(cluster, 2).isEmpty }
        await next.abandon()
        #expect(try cluster.node(2).assetCounts.earlyPulls == 0)
        await cluster.stop()
    }

    @Test("a node that takes no more uploads to copy is passed over, for the next one")
    func refused() async throws {
        let cluster = try await patientCluster { settings in
            if settings.nodeID == NodeID(2) { settings.assets.uploadsMax = 0 }
        }
        let (upload, group) = try await begin(bytes(700_000), on: cluster, copiedBy: 3)
        let asset = try await upload.finish()
        try await upload.hold(asset, in: group, of: cluster.node(1))
        #expect(try await earlyPulls(cluster) == [0, 1])
        await cluster.stop()
    }

    @Test("a copy whose disk becomes full leaves nothing, and the file is held by the others")
    func fullDisk() async throws {
        let cluster = try await patientCluster { settings in
            if settings.nodeID == NodeID(2) { settings.assets.disk = HaltingDisk(place: 500_000, isFull: true) }
        }
        let (upload, group) = try await begin(bytes(300_000), on: cluster, copiedBy: 2)
        try await upload.write(bytes(900_000))
        try await awaitTrue("the copy goes") { try incoming(cluster, 2).isEmpty }
        let asset = try await upload.finish()
        try await upload.hold(asset, in: group, of: cluster.node(1))
        #expect(try await cluster.node(3).assets.holds(asset))
        #expect(try await !cluster.node(2).assets.holds(asset))
        #expect(try incoming(cluster, 2).isEmpty)
        await cluster.stop()
    }

    @Test("a node that stops in a copy keeps nobody waiting: the others hold the file, and it goes on when it can")
    func stuck() async throws {
        let disk = HaltingDisk(place: 500_000)
        let cluster = try await patientCluster { settings in
            if settings.nodeID == NodeID(2) { settings.assets.disk = disk }
        }
        let bytes = bytes(1_500_000)
        let (upload, group) = try await begin(bytes, on: cluster, copiedBy: 2)
        let asset = try await upload.finish()
        try await upload.hold(asset, in: group, of: cluster.node(1))
        #expect(try await cluster.node(3).assets.holds(asset))
        disk.open()
        try await awaitTrue("node 2 holds it") { try await cluster.node(2).assets.holds(asset) }
        #expect(try await download(asset, from: cluster.node(2)) == bytes)
        await cluster.stop()
    }
}

@Suite("blocks of an upload for who copies it")
struct UploadFeedTests {
    private final class Answers: Sendable {
        private let given = Mutex<[String]>([])
        var all: [String] { given.withLock(\.self) }
        func add(_ reply: NodeReply) { given.withLock { $0.append("\(reply)") } }
    }

    @Test("a block is given as it comes, or read back by who is late; the end is told to everybody, then and later")
    func feed() throws {
        let disk = PosixDisk()
        let file = try disk.open("/dev/null", creating: false)
        let begun = Atomic(0)
        let closed = Atomic(0)
        let feed = UploadFeed(
            id: UploadID(rawValue: 1), content: AssetContent(file: file, disk: disk, cipher: nil),
            didBegin: { begun.add(1, ordering: .relaxed) }, didClose: { closed.add(1, ordering: .relaxed) })
        let answers = Answers()
        #expect(feed.read(from: 0, answers.add) == nil && answers.all.isEmpty)
        #expect(feed.read(from: 3, answers.add) == nil)
        feed.wrote([1, 2, 3])
        #expect(answers.all == ["\(NodeReply.done([1, 2, 3]))"])
        let late = try #require(feed.read(from: 0, answers.add))
        #expect(late.range == 0..<3 && late.size == 3)
        feed.wrote([4])
        #expect(answers.all.last == "\(NodeReply.done([4]))" && begun.load(ordering: .relaxed) == 1)
        #expect(feed.read(from: 4, answers.add) == nil)
        let asset = AssetReference(sha256: [UInt8](repeating: 7, count: 32), size: 5)
        feed.finish(asset)
        feed.close()
        #expect(feed.read(from: 0, answers.add) == nil && closed.load(ordering: .relaxed) == 1)
        #expect(answers.all.suffix(2) == ["\(NodeReply.whole(asset))", "\(NodeReply.whole(asset))"])
        #expect(answers.all.count == 4)
    }

    @Test("only so many wait for a block")
    func bounded() throws {
        let disk = PosixDisk()
        let feed = UploadFeed(
            id: UploadID(rawValue: 1),
            content: AssetContent(file: try disk.open("/dev/null", creating: false), disk: disk, cipher: nil),
            didBegin: {}, didClose: {})
        let answers = Answers()
        for _ in 0..<20 { #expect(feed.read(from: 0, answers.add) == nil) }
        #expect(answers.all == Array(repeating: "\(NodeReply.overloaded)", count: 4))
        feed.abandon()
        #expect(answers.all.count == 20 && answers.all.last == "\(UploadFeed.gone)")
    }
}
