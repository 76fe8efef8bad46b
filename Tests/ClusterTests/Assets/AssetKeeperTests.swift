import Crypto
import Directory
import Foundation
import GRDB
import Logging
import PeerTransport
import RaftCore
import RecordModel
import RecordStore
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Cluster
@testable import Service

/// A disk that does something before the next file is removed.
private final class HookedDisk: LogDisk {
    private let hook = Mutex<(@Sendable () -> Void)?>(nil)

    func beforeRemoval(_ body: @escaping @Sendable () -> Void) { hook.withLock { $0 = body } }

    func remove(_ path: String) throws(DiskError) {
        hook.withLock { $0.take() }?()
        try PosixDisk().remove(path)
    }
}

/// A disk without room for files.
private final class FullDisk: LogDisk {
    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        throw DiskError(operation: "pwrite", path: file.path, code: ENOSPC)
    }
}

/// A disk that opens no file whose name ends with a text, for lack of descriptors, as long as it is set.
private final class CrowdedDisk: LogDisk {
    private let state = Mutex<(ending: String?, refused: Int)>((nil, 0))

    var refused: Int { state.withLock(\.refused) }
    func refuse(_ ending: String?) { state.withLock { $0.ending = ending } }

    func open(_ path: String, creating: Bool) throws(DiskError) -> DiskFile {
        let isRefused = state.withLock { state in
            guard let ending = state.ending, path.hasSuffix(ending) else { return false }
            state.refused += 1
            return true
        }
        if isRefused { throw DiskError(operation: "open", path: path, code: EMFILE) }
        return try PosixDisk().open(path, creating: creating)
    }
}

extension WaitingClusterSuites.AssetClusterTests {
    @Test("what a node could not look for when a record named it is fetched as soon as it can")
    func newsAgain() async throws {
        let disk = CrowdedDisk()
        let cluster = try await cluster(3) { settings in
            if settings.nodeID == NodeID(3) { settings.assets.disk = disk }
        }
        let node = try cluster.node(3)
        // Once it has the first one it compares nothing more by itself, for an hour.
        let first = try await upload(bytes(1_000), to: cluster.node(1))
        try await save("a", first, on: cluster.node(1))
        try await awaitTrue("the node fetches the first one") { try await node.assets.holds(first) }
        let second = try await upload(bytes(2_000), to: cluster.node(1))
        disk.refuse(String(Hex.encode(second.sha256).dropFirst(2)))
        try await save("b", second, on: cluster.node(1))
        try await awaitTrue("the node looks for the second one") { disk.refused > 0 }
        disk.refuse(nil)
        try await awaitTrue("the node fetches the second one") { try await node.assets.holds(second) }
        await cluster.stop()
    }

    @Test("of files that no node has so many are remembered at most, and the others are asked for")
    func manyLost() async throws {
        let cluster = try await cluster(1) { settings in
            settings.assets.wantedMax = 3
            settings.assets.searchMilliseconds = 3_600_000
        }
        let node = try cluster.node(1)
        for number in 1...5 as ClosedRange<UInt8> {
            let lost = AssetReference(sha256: [UInt8](repeating: number, count: 32), size: 10)
            try await save("r\(number)", lost, on: node)
            try await awaitTrue("it was asked for") { node.assetCounts.failedPulls >= UInt64(number) }
        }
        // Files are counted in a later round.
        _ = try await upload(bytes(1_000), to: node)
        try await awaitTrue("files are looked through") { node.assetCounts.files == 1 }
        #expect(node.assetCounts.missing == 3 && node.assetCounts.missingFiles.count == 3)
        await cluster.stop()
    }

    @Test("where a shard's table of files cannot be read the files of the others are seen to all the same")
    func damagedTable() async throws {
        let cluster = try await cluster(1)
        let lost = AssetReference(sha256: [UInt8](repeating: 5, count: 32), size: 10)
        try await save("a", lost, on: cluster.node(1))
        let group = try cluster.node(1).map.group(of: Commands.zone)
        let own = ReplicaOpening.databasePath(of: group, in: cluster.dataPath(1))
        await cluster.stop()
        let shards = cluster.dataPath(1) + "/shards"
        for path in try listFolder(at: shards).map({ "\(shards)/\($0)" }) where path.hasSuffix(".sqlite") && path != own
        {
            let queue = try DatabaseQueue(path: path)
            try await queue.write { try $0.execute(sql: "INSERT INTO asset VALUES (x'00', 5, 1, 0)") }
            try queue.close()
        }
        try await cluster.start()
        let node = try cluster.node(1)
        try await awaitTrue("the file counts as missing") { node.assetCounts.missing == 1 }
        _ = try await upload(bytes(1_000), to: node)
        try await awaitTrue("files are looked through") { node.assetCounts.files == 1 }
        await cluster.stop()
    }

    @Test("a transaction that names more files than it tells of has all of them compared")
    func manyNamed() {
        let news = AssetNews()
        _ = news.take()
        let files = (0..<RecordTransaction.namedAssetsMax).map { number in
            AssetReference(
                sha256: [UInt8](repeating: 0, count: 30) + [UInt8(number >> 8), UInt8(number & 255)], size: 1)
        }
        news.named(Array(files.dropLast()))
        #expect(!news.take().isComparisonDue)
        news.named(files)
        #expect(news.take().isComparisonDue)
    }

    @Test("a node with another key, or none, does not start and leaves its files alone; with its key it does")
    func wrongKey() async throws {
        let cluster = try await cluster(1)
        let key = try cluster.node(1).settings.encryptionKey
        let bytes = bytes(300_000)
        let asset = try await upload(bytes, to: cluster.node(1))
        for other in [nil, [UInt8](repeating: 4, count: 32)] {
            await cluster.stop()
            cluster.change(1) { $0.encryptionKey = other }
            let error = await #expect(throws: NodeStartError.self) { try await cluster.start() }
            #expect(error?.description.contains("put back the cluster's encryption.key") == true, "\(error as Any)")
            #expect(!FileManager.default.fileExists(atPath: cluster.dataPath(1) + "/assets/damaged"))
            cluster.change(1) { $0.encryptionKey = key }
            try await cluster.start()
            #expect(try await download(asset, from: cluster.node(1)) == bytes)
        }
        await cluster.stop()
    }

    @Test("the background reading rests also after a file that it could not read")
    func restAfterDamage() async throws {
        // A file's first bytes are another's: nothing of it is read. 1 MiB takes 1,040 ms.
        let cluster = try await cluster(1) { $0.assets.scrubBytesPerSecond = 1_007_691 }
        let node = try cluster.node(1)
        let asset = try await upload(bytes(1_000), to: node)
        try flip(asset, at: 0, on: 1, cluster)
        try await awaitTrue("the damage is found") { node.assetCounts.damaged == 1 }
        try await awaitTrue("it rests") { cluster.clocks[0].wasAskedToSleep(milliseconds: 1_040) }
        await cluster.stop()
    }

    @Test("after a start the background reading goes on where it was")
    func scrubPosition() async throws {
        let cluster = try await cluster(1)
        let files = try cluster.node(1).assets.files
        var assets: [AssetReference] = []
        for count in 1...5 { assets.append(try await upload(bytes(count * 1_000), to: cluster.node(1))) }
        assets.sort { $0.sha256[0] < $1.sha256[0] }
        try await awaitTrue("it is written down") { assets.contains { $0.sha256[0] == files.scrubPosition() } }
        await cluster.stop()
        for asset in assets { try flip(asset, at: 0, on: 1, cluster) }
        let next = try #require(assets.last)
        try files.noteScrub(at: next.sha256[0])
        // The first damaged file takes days.
        cluster.change(1) { $0.assets.scrubBytesPerSecond = 1 }
        try await cluster.start()
        try await awaitTrue("a damaged file is found") { try cluster.node(1).assetCounts.damaged > 0 }
        #expect(try listFolder(at: cluster.dataPath(1) + "/assets/damaged") == [Hex.encode(next.sha256)])
        await cluster.stop()
    }

    @Test("a replica that is given up while files are looked through ends their deletion at once")
    func gaveUpMeanwhile() async throws {
        let grace: Int64 = 3_600_000
        let disk = HookedDisk()
        let cluster = try await cluster(1) { settings in
            settings.assets.graceMilliseconds = grace
            settings.assets.disk = disk
        }
        let node = try cluster.node(1)
        let assets = [try await upload(bytes(1_000), to: node), try await upload(bytes(2_000), to: node)]
        disk.beforeRemoval { [weak node] in
            try? node?.folder.update { $0.giveUp(GroupID(99), at: node?.lane.clockWatch.knownMilliseconds) }
        }
        cluster.clocks[0].set(aheadMilliseconds: grace + 60_000)
        try await awaitTrue("a file goes") { node.assetCounts.collected > 0 }
        // Each new file is counted by a look through all of them that began after the last one.
        for count in 1...2 {
            _ = try await upload(bytes(count), to: node)
            try await awaitTrue("files are looked through") { node.assetCounts.files == UInt64(1 + count) }
        }
        var held = 0
        for asset in assets where try await node.assets.holds(asset) { held += 1 }
        #expect(held == 1 && node.assetCounts.collected == 1)
        await cluster.stop()
    }

    @Test(
        "while a replica cannot apply, its leader tells which files it will name: these stay, the others go",
        .timeLimit(.minutes(10)))
    func failingReplica() async throws {
        let cluster = try await cluster(3) { settings in
            settings.shardCount = 1
            settings.assets.graceMilliseconds = 3_600_000
        }
        let first = try cluster.node(1)
        let group = first.map.group(of: Commands.zone)
        let leads = [first.leader(of: group), first.map.preferredLeader(of: group)].map { $0?.rawValue }
        let id = try #require((1...3).first { !leads.contains($0) })
        let node = try cluster.node(id)
        func failure() async -> String? { await node.status().first { $0.group == group }?.applyFailure }
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(10)
        configuration.allowsUnsafeTransactions = true
        // While somebody else writes to its database, the replica applies nothing.
        let path = cluster.dataPath(id) + "/shards/0000.sqlite"
        let writer = try DatabaseQueue(path: path, configuration: configuration)
        try await writer.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        let named = try await upload(bytes(1_000), to: node)
        let unsaved = try await upload(bytes(2_000), to: node)
        for asset in [named, unsaved] { try await node.holdAsset(asset, in: group) }
        try await save("a", named, on: node)
        try await awaitTrue("the replica does not apply it") { await failure() != nil }
        for asset in [named, unsaved] { try age(asset, by: 3_700, on: id, cluster) }
        try await awaitTrue("what no record names goes") { try await !node.assets.holds(unsaved) }
        // Each new file is counted by a look through all of them that began after the last one.
        for count in 1...2 {
            _ = try await upload(bytes(count), to: node)
            try await awaitTrue("files are looked through") { node.assetCounts.files == UInt64(1 + count) }
        }
        #expect(await failure() != nil)
        #expect(try await node.assets.holds(named))
        try await writer.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
        try writer.close()
        try await awaitTrue("the replica goes on") { await failure() == nil }
        #expect(try await download(named, from: node) == bytes(1_000))
        await cluster.stop()
    }

    @Test("a file that too few nodes could hold counts as unsaved: it stays on the disk of the node that took it")
    func heldByTooFew() async throws {
        let cluster = try await cluster(3) { settings in
            if settings.nodeID != NodeID(1) { settings.assets.disk = FullDisk() }
        }
        let node = try cluster.node(1)
        let service = RecordService(node: node, logger: Logger(label: "test"))
        let owner = UnsavedUploads.Owner(container: Commands.database.container, user: "_me")
        let bytes = bytes(100_000)
        func upload() async throws(RequestFailure) {
            try service.unsavedUploads.begin(owner, limit: .max, now: service.now)
            let file: AssetUpload
            do throws(AssetError) {
                file = try await node.receiveAsset(limit: 10 << 20)
            } catch {
                throw RequestFailure(error)
            }
            let ticket = AssetUploadTicket(
                zone: Commands.zone, recordType: "Note", field: "photo", uploader: "_me", bytesMax: 10 << 20,
                expires: .max)
            let incoming = IncomingAsset(service, ticket, file, owner: owner, unsavedBytesMax: .max)
            do throws(RequestFailure) {
                try await incoming.write(bytes)
                _ = try await incoming.finish()
            } catch {
                await incoming.abandon()
                throw error
            }
        }
        for _ in 1...2 {
            let failure = await #expect(throws: RequestFailure.self) { try await upload() }
            #expect(failure?.error.code == .tryAgainLater)
        }
        #expect(try await node.assets.holds(reference(bytes)))
        // The same bytes count once, however often they are sent.
        try service.unsavedUploads.begin(owner, limit: 100_000 + 65_536, now: service.now)
        service.unsavedUploads.end(owner, size: 0)
        #expect(throws: RequestFailure.self) {
            try service.unsavedUploads.begin(owner, limit: 100_000 + 65_535, now: service.now)
        }
        await cluster.stop()
    }

    private func reference(_ bytes: [UInt8]) -> AssetReference {
        AssetReference(sha256: Array(SHA256.hash(data: bytes)), size: UInt64(bytes.count))
    }
}
