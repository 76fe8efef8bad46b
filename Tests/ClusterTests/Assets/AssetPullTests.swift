import Crypto
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

/// A disk that waits before it reads beyond a place, until it is told to go on.
private final class GatedDisk: LogDisk {
    private let place: Int
    private let isOpen = Atomic(false)
    private let isReached = Atomic(false)
    private let gate = DispatchSemaphore(value: 0)

    init(place: Int) { self.place = place }

    /// Whether a read waits, or did.
    var wasReached: Bool { isReached.load(ordering: .relaxed) }

    func open() {
        isOpen.store(true, ordering: .relaxed)
        gate.signal()
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, of file: DiskFile, at offset: Int
    ) throws(DiskError) -> Int {
        if offset >= place, !isOpen.load(ordering: .relaxed) {
            isReached.store(true, ordering: .relaxed)
            gate.wait()
            gate.signal()
        }
        return try file.read(into: buffer, at: offset)
    }
}

/// A disk that knows the first place of a file's content from which it was read.
private final class WatchedDisk: LogDisk {
    private let first = Mutex(Int.max)
    var firstPlace: Int { first.withLock { $0 } }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, of file: DiskFile, at offset: Int
    ) throws(DiskError) -> Int {
        if offset > 0 { first.withLock { $0 = min($0, offset) } }
        return try file.read(into: buffer, at: offset)
    }
}

/// A disk that, once armed, waits in the next sync of a folder until it is told to fail there.
private final class UnsyncedDisk: LogDisk {
    private let isArmed = Atomic(false)
    private let isReached = Atomic(false)
    private let gate = DispatchSemaphore(value: 0)

    /// Whether a sync waits, or did.
    var wasReached: Bool { isReached.load(ordering: .relaxed) }

    func arm() { isArmed.store(true, ordering: .relaxed) }
    func fail() { gate.signal() }

    func syncFolder(_ path: String) throws(DiskError) {
        guard isArmed.exchange(false, ordering: .relaxed) else { return try PosixDisk().syncFolder(path) }
        isReached.store(true, ordering: .relaxed)
        gate.wait()
        throw DiskError(operation: "fsync", path: path, code: EIO)
    }
}

/// A disk that has room for so many bytes, which are never given back.
private final class NarrowDisk: LogDisk {
    private let left: Mutex<Int>
    init(bytes: Int) { left = Mutex(bytes) }

    func grow(by bytes: Int) { left.withLock { $0 += bytes } }

    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        let fits = left.withLock { left in
            guard left >= bytes.count else { return false }
            left -= bytes.count
            return true
        }
        guard fits else { throw DiskError(operation: "pwrite", path: file.path, code: ENOSPC) }
        return try file.write(bytes, at: offset)
    }
}

extension WaitingClusterSuites.AssetClusterTests {
    private func incoming(_ cluster: TestCluster, _ id: UInt64) throws -> [String] {
        try listFolder(at: cluster.dataPath(id) + "/assets/incoming")
    }

    private func expectUnavailable(_ body: () async throws -> Void) async throws {
        let error = await #expect(throws: AssetError.self) { try await body() }
        let isUnavailable = if case .unavailable? = error { true } else { false }
        #expect(isUnavailable, "it threw \(error.debugDescription)")
    }

    /// Three nodes that wait for pieces however long they take, and leave their files alone; the disk is the third's.
    private func patientCluster(
        _ disk: GatedDisk, _ change: (inout NodeSettings) -> Void = { _ in }
    ) async throws -> TestCluster {
        try await cluster(3) { settings in
            settings.assets.pieceMilliseconds = 3_600_000
            settings.assets.scrubPauseMilliseconds = 3_600_000
            if settings.nodeID == NodeID(3) { settings.assets.disk = disk }
            change(&settings)
        }
    }

    @Test("an upload that is given up while the line before the disk is full goes as soon as there is a thread")
    func fullLine() async throws {
        let cluster = try await cluster(1) { settings in
            settings.assets.collectionMilliseconds = 3_600_000
            settings.assets.scrubPauseMilliseconds = 3_600_000
        }
        let exchange = try cluster.node(1).assets
        let given = try await exchange.receive(limit: 10, for: nil)
        let gate = DispatchSemaphore(value: 0)
        let (waits, waiting) = AsyncStream.makeStream(of: Void.self)
        for _ in 0..<2 {
            try exchange.pool.submit { _ in
                waiting.yield()
                gate.wait()
            }
        }
        for await _ in waits.prefix(2) {}
        while (try? exchange.pool.submit { _ in }) != nil {}
        await given.abandon()
        for _ in 0..<2 { gate.signal() }
        try await awaitTrue("the line is worked off") { exchange.pool.load.waiting == 0 }
        let next = try await exchange.receive(limit: 10, for: nil)
        #expect(try incoming(cluster, 1).count == 1)
        await next.abandon()
        #expect(try incoming(cluster, 1).isEmpty)
        await cluster.stop()
    }

    @Test("a fetch whose only peer falls silent fails in time, leaves nothing, and is tried again")
    func peerSilent() async throws {
        let disk = GatedDisk(place: 600_000)
        let cluster = try await cluster(3) { settings in
            settings.assets.pieceMilliseconds = 300
            if settings.nodeID == NodeID(3) { settings.assets.disk = disk }
        }
        let bytes = bytes(1_500_000)
        let asset = try await upload(bytes, to: cluster.node(3))
        let puller = try cluster.node(1)
        // Not that nobody has it: one did not answer.
        try await expectUnavailable { try await puller.assets.pull(asset, from: [NodeID(3), NodeID(2)]) }
        #expect(try incoming(cluster, 1).isEmpty && puller.assetCounts.failedPulls == 1)
        try await expectUnavailable { _ = try await download(asset, from: puller) }
        disk.open()
        try await puller.assets.pull(asset, from: [NodeID(3)])
        #expect(try await download(asset, from: puller) == bytes)
        await cluster.stop()
    }

    @Test("a fetch whose peer goes in the middle goes on at the next one, behind what is there")
    func peerGoes() async throws {
        let (disk, other) = (GatedDisk(place: 600_000), WatchedDisk())
        // A peer that is gone is not waited for.
        let cluster = try await patientCluster(disk) { settings in
            if settings.nodeID == NodeID(2) { settings.assets.disk = other }
        }
        let bytes = bytes(1_500_000)
        let asset = try await upload(bytes, to: cluster.node(2))
        #expect(try await upload(bytes, to: cluster.node(3)) == asset)
        let (puller, peer) = (try cluster.node(1), try cluster.node(3))
        async let pulled: Void = puller.assets.pull(asset, from: [NodeID(3), NodeID(2)])
        try await awaitTrue("half of the file was read") { disk.wasReached }
        // A stop would wait for the disk before it closes connections.
        try await peer.transport.shutdown().get()
        try await pulled
        disk.open()
        #expect(other.firstPlace > 200_000 && other.firstPlace < .max)
        #expect(puller.assetCounts.pulls == 1 && puller.assetCounts.failedPulls == 0)
        #expect(try await download(asset, from: puller) == bytes)
        #expect(try incoming(cluster, 1).isEmpty)
        await cluster.stop()
    }

    @Test("a peer that reads as many pieces as it may is asked again after a pause, and not passed over")
    func peerBusy() async throws {
        let disk = GatedDisk(place: 600_000)
        let cluster = try await patientCluster(disk)
        let bytes = bytes(1_500_000)
        let asset = try await upload(bytes, to: cluster.node(3))
        let (puller, peer) = (try cluster.node(1), try cluster.node(3))
        let (refusals, refused) = AsyncStream.makeStream(of: Void.self)
        for _ in 0..<40 {
            peer.assets.read(asset, 1_000_000..<1_000_100) { reply in
                if case .overloaded = reply { refused.yield() }
            }
        }
        for await _ in refusals.prefix(8) {}
        async let pulled: Void = puller.assets.pull(asset, from: [NodeID(3)])
        try await awaitTrue("the peer is left alone for a moment") {
            cluster.clocks[0].wasAskedToSleep(milliseconds: AssetPeers.busyMilliseconds)
        }
        disk.open()
        try await pulled
        #expect(puller.assetCounts.pulls == 1 && puller.assetCounts.failedPulls == 0)
        #expect(try await download(asset, from: puller) == bytes)
        await cluster.stop()
    }

    @Test("a peer that sends other bytes is passed over, where files are in the clear and nothing shows that they are")
    func otherBytes() async throws {
        let cluster = try await cluster(3) { settings in
            settings.encryptionKey = nil
            settings.assets.scrubPauseMilliseconds = 3_600_000
        }
        let bytes = bytes(600_000)
        let asset = try await upload(bytes, to: cluster.node(2))
        _ = try await upload(bytes, to: cluster.node(3))
        try flip(asset, at: 500_000, on: 3, cluster)
        let puller = try cluster.node(1)
        await #expect(throws: AssetError.missing) { try await puller.assets.pull(asset, from: [NodeID(3)]) }
        #expect(try await !puller.assets.holds(asset))
        #expect(try incoming(cluster, 1).isEmpty)
        try await puller.assets.pull(asset, from: [NodeID(3), NodeID(2)])
        #expect(try await download(asset, from: puller) == bytes)
        await cluster.stop()
    }

    @Test("a node tells which named files are on their way, and which no node has")
    func missing() async throws {
        let cluster = try await cluster(3)
        let asset = try await upload(bytes(1_000), to: cluster.node(1))
        let group = try cluster.node(1).map.group(of: Commands.zone)
        try await cluster.node(1).holdAsset(asset, in: group)
        try await save("a", asset, on: cluster.node(1))
        for node in cluster.nodes.values {
            try await awaitTrue("all hold it") { try await node.assets.holds(asset) }
        }
        await cluster.stop([3])
        for id in 1...2 as ClosedRange<UInt64> {
            try FileManager.default.removeItem(atPath: path(of: asset, on: id, cluster))
        }
        // The third has it, and does not answer.
        await cluster.stop([2])
        try await cluster.start([2])
        try await awaitTrue("the file counts as on its way") { try cluster.node(2).assetCounts.fetching == 1 }
        #expect(try cluster.node(2).assetCounts.missing == 0)
        try FileManager.default.removeItem(atPath: path(of: asset, on: 3, cluster))
        try await cluster.start([3])
        try await awaitTrue("the file counts as missing") {
            let counts = try cluster.node(2).assetCounts
            return counts.missing == 1 && counts.fetching == 0 && counts.missingFiles == [asset]
        }
        // Another upload gives it back to the records.
        #expect(try await upload(bytes(1_000), to: cluster.node(1)) == asset)
        try await awaitTrue("the file is there again") { try cluster.node(2).assetCounts.missing == 0 }
        #expect(try await download(asset, from: cluster.node(2)) == bytes(1_000))
        await cluster.stop()
    }

    @Test("a file that no node has is not asked for in every round")
    func searches() async throws {
        let cluster = try await cluster(1) { $0.assets.searchMilliseconds = 3_600_000 }
        let node = try cluster.node(1)
        let lost = AssetReference(sha256: [UInt8](repeating: 5, count: 32), size: 10)
        try await save("a", lost, on: node)
        try await awaitTrue("it counts as missing") { node.assetCounts.missing == 1 }
        let failed = node.assetCounts.failedPulls
        // Each new file is counted in a later round.
        for count in 1...3 {
            _ = try await upload(bytes(count), to: node)
            try await awaitTrue("files are looked through") { node.assetCounts.files == UInt64(count) }
        }
        #expect(node.assetCounts.failedPulls == failed)
        await cluster.stop()
    }

    @Test("a file whose name is not durable yet does not count as fetched")
    func unsyncedName() async throws {
        let disk = UnsyncedDisk()
        let cluster = try await cluster(1) { $0.assets.disk = disk }
        let node = try cluster.node(1)
        let bytes = bytes(1_000)
        let asset = AssetReference(sha256: Array(SHA256.hash(data: bytes)), size: UInt64(bytes.count))
        disk.arm()
        let upload = Task { try await self.upload(bytes, to: node) }
        try await awaitTrue("it has its name") { disk.wasReached }
        let pull = Task { try await node.assets.pull(asset, from: []) }
        for _ in 0..<1_000 { await Task.yield() }
        disk.fail()
        await #expect(throws: AssetError.self) { try await upload.value }
        await #expect(throws: AssetError.missing) { try await pull.value }
        await cluster.stop()
    }

    @Test("a request ends at its deadline however long nodes fetch a file; what they fetch serves the next one")
    func heldTooLate() async throws {
        let disk = GatedDisk(place: 600_000)
        let cluster = try await patientCluster(disk) { $0.assets.holdMilliseconds = 3_600_000 }
        let asset = try await upload(bytes(1_500_000), to: cluster.node(3))
        let node = try cluster.node(1)
        let group = node.map.group(of: Commands.zone)
        try await expectUnavailable {
            try await node.holdAsset(asset, in: group, by: node.deadline(milliseconds: 300))
        }
        disk.open()
        try await node.holdAsset(asset, in: group, by: node.deadline(milliseconds: 3_600_000))
        await cluster.stop()
    }

    @Test("a node that lacks many files notes some at a time, and has all of them in the end")
    func manyMissing() async throws {
        let disk = NarrowDisk(bytes: 0)
        let cluster = try await cluster(3) { settings in
            settings.assets.wantedMax = 2
            if settings.nodeID == NodeID(3) { settings.assets.disk = disk }
        }
        let node = try cluster.node(1)
        let group = node.map.group(of: Commands.zone)
        var assets: [AssetReference] = []
        for count in 1...9 {
            let asset = try await upload(bytes(count * 1_000), to: node)
            try await node.holdAsset(asset, in: group)
            try await save("a\(count)", asset, on: node)
            assets.append(asset)
        }
        await cluster.stop([3])
        try await cluster.start([3])
        let third = try cluster.node(3)
        try await awaitTrue("it knows of some") { third.assetCounts.fetching > 1 }
        #expect(third.assetCounts.fetching <= 4)
        disk.grow(by: 10_000_000)
        for asset in assets { try await awaitTrue("it has all") { try await third.assets.holds(asset) } }
        await cluster.stop()
    }

    @Test("a disk that becomes full in the middle: uploads and fetches are refused, leave nothing, and may be repeated")
    func diskFull() async throws {
        let disk = NarrowDisk(bytes: 1_000_000)
        let cluster = try await cluster(3) { settings in
            settings.assets.uploadsMax = 1
            if settings.nodeID == NodeID(1) { settings.assets.disk = disk }
        }
        let node = try cluster.node(1)
        let bytes = bytes(1_500_000)
        await #expect(throws: AssetError.diskFull) { _ = try await upload(bytes, to: node) }
        #expect(try incoming(cluster, 1).isEmpty)
        let asset = try await upload(bytes, to: cluster.node(2))
        disk.grow(by: 500_000)
        await #expect(throws: AssetError.diskFull) { try await node.assets.pull(asset, from: [NodeID(2)]) }
        #expect(try incoming(cluster, 1).isEmpty)
        #expect(try await !node.assets.holds(asset))
        // It is read through the other node meanwhile.
        #expect(try await download(asset, from: node) == bytes)
        disk.grow(by: 10_000_000)
        #expect(try await upload(bytes, to: node) == asset)
        await cluster.stop()
    }

    @Test("of ten thousand uploads at once a node takes as many as it may, and the others are told to try again")
    func manyUploads() async throws {
        let cluster = try await cluster(1)
        let node = try cluster.node(1)
        var taken: [AssetUpload] = []
        var refused = 0
        for _ in 0..<10_000 {
            do {
                taken.append(try await node.receiveAsset(limit: 10))
            } catch {
                guard case .unavailable = error else { throw error }
                refused += 1
            }
        }
        #expect(taken.count == node.settings.assets.uploadsMax && refused == 10_000 - taken.count)
        #expect(try incoming(cluster, 1).count == taken.count)
        for upload in taken { await upload.abandon() }
        #expect(try incoming(cluster, 1).isEmpty)
        #expect(try await upload([1], to: node).size == 1)
        await cluster.stop()
    }

    /// Makes it look as if a file had last been asked for some seconds ago.
    func age(_ asset: AssetReference, by seconds: Double, on id: UInt64, _ cluster: TestCluster) throws {
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -seconds)], ofItemAtPath: path(of: asset, on: id, cluster))
    }

    @Test("a file is not deleted while the log has a command that may name it, however long that waits")
    func waitingCommand() async throws {
        let cluster = try await cluster(3) { settings in
            settings.assets.graceMilliseconds = 3_600_000
            settings.requestDeadlineMilliseconds = 1_000
        }
        let asset = try await upload(bytes(1_000), to: cluster.node(1))
        let group = try cluster.node(1).map.group(of: Commands.zone)
        let leader = try #require(try cluster.node(1).leader(of: group)).rawValue
        let node = try cluster.node(leader)
        try await node.holdAsset(asset, in: group)
        // The command stays in the leader's log, as nobody else is there.
        await cluster.stop([1, 2, 3].filter { $0 != leader })
        let unsaved = try await upload(bytes(2_000), to: node)
        await #expect(throws: (any Error).self) { try await save("a", asset, on: node) }
        for file in [asset, unsaved] { try age(file, by: 3_700, on: leader, cluster) }
        // Each new file is counted by a look through all of them that began after the last one.
        for count in 1...3 {
            _ = try await upload(bytes(count), to: node)
            try await awaitTrue("files are looked through") { node.assetCounts.files == UInt64(2 + count) }
        }
        #expect(try await node.assets.holds(asset))
        #expect(try await node.assets.holds(unsaved))
        await cluster.stop()
    }

    @Test("a file that a clock far ahead stamped is not kept for so much longer")
    func future() async throws {
        let cluster = try await cluster(1)
        let node = try cluster.node(1)
        let asset = try await upload(bytes(1_000), to: node)
        try age(asset, by: -86_400, on: 1, cluster)
        try await awaitTrue("the file has a time that was") {
            let modified = try node.assets.files.status(of: asset.sha256)?.modified
            return try #require(modified) <= node.platform.clock.wallMilliseconds
        }
        await cluster.stop()
    }

    @Test("after a replica went to another node no file is deleted for the grace")
    func gaveUp() async throws {
        let grace: Int64 = 3_600_000
        let cluster = try await cluster(1) { $0.assets.graceMilliseconds = grace }
        let node = try cluster.node(1)
        let asset = try await upload(bytes(1_000), to: node)
        cluster.clocks[0].set(aheadMilliseconds: grace + 60_000)
        try node.folder.update { $0.giveUp(GroupID(99), at: node.platform.clock.wallMilliseconds) }
        _ = try await upload(bytes(1), to: node)
        try await awaitTrue("files are looked through") { node.assetCounts.files >= 2 }
        _ = try await upload(bytes(2), to: node)
        try await awaitTrue("files are looked through again") { node.assetCounts.files == 3 }
        #expect(try await node.assets.holds(asset))
        // Where the time was not known, or a clock was far ahead, the grace begins when it is known.
        for time in [nil, node.platform.clock.wallMilliseconds + 30 * grace] {
            try node.folder.update { $0.giveUp(GroupID(99), at: time) }
            try await awaitTrue("the time is known") {
                try #require(node.folder.identity.gaveUpAt) <= node.platform.clock.wallMilliseconds
            }
            #expect(try await node.assets.holds(asset))
        }
        cluster.clocks[0].set(aheadMilliseconds: 2 * grace + 120_000)
        try await awaitTrue("the file goes") { try await !node.assets.holds(asset) }
        await cluster.stop()
    }
}
