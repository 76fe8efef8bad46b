import Authorization
import Directory
import Foundation
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
import RecordStore
import Storage
import TestSupport
import Testing

@testable import Cluster

extension WaitingClusterSuites {
    @Suite("Files of assets in a cluster")
    struct AssetClusterTests {
        static let schema = Schema(types: [
            RecordType(name: "Note", fields: [FieldDefinition(name: "photo", type: FieldType(.asset))])
        ])

        func cluster(_ nodes: Int, _ change: (inout NodeSettings) -> Void = { _ in }) async throws
            -> TestCluster
        {
            let cluster = try await TestCluster.started(nodeCount: nodes) { settings in
                settings.assets.roundMilliseconds = 20
                settings.assets.searchMilliseconds = 20
                settings.assets.collectionMilliseconds = 20
                settings.assets.scrubPauseMilliseconds = 20
                settings.assets.renewalMilliseconds = 0
                settings.assets.pieceMilliseconds = 2_000
                settings.assets.holdMilliseconds = 20_000
                settings.encryptionKey = [UInt8](repeating: 3, count: 32)
                change(&settings)
            }
            let install = ShardCommand.record(
                .installSchema(
                    InstallSchema(
                        container: Commands.database.container, environment: Commands.database.environment,
                        version: 1, schema: Self.schema)))
            _ = try await Commands.submit(install, to: cluster.node(1))
            let group = try cluster.node(1).map.group(of: Commands.zone)
            try await awaitTrue("every replica knows of assets") {
                cluster.nodes.values.allSatisfy { ($0.holdings[group]?.level ?? .first) >= .assets }
            }
            return cluster
        }

        func bytes(_ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }
        }

        func upload(_ bytes: [UInt8], to node: ClusterNode) async throws -> AssetReference {
            let upload = try await node.receiveAsset(limit: 10 << 20)
            for start in stride(from: 0, to: bytes.count, by: 100_000) {
                try await upload.write(bytes[start..<min(start + 100_000, bytes.count)])
            }
            return try await upload.finish()
        }

        func download(_ asset: AssetReference, from node: ClusterNode, _ range: Range<UInt64>? = nil)
            async throws -> [UInt8]
        {
            var found: [UInt8] = []
            let group = node.map.group(of: Commands.zone)
            for try await piece in try await node.readAsset(asset, in: group, range: range ?? 0..<asset.size) {
                found += piece.readableBytesView
            }
            return found
        }

        func save(_ name: String, _ asset: AssetReference?, on node: ClusterNode) async throws {
            let change = RecordChange(
                .forceReplace, name, type: "Note",
                fields: [RecordChange.FieldChange(name: "photo", value: asset.map { .asset($0) })])
            let command = ShardCommand.record(
                .modifyRecords(
                    ModifyRecords(
                        zone: Commands.zone, schemaVersion: 1, caller: Caller(user: "_me"),
                        time: node.platform.clock.wallMilliseconds, operations: [change])))
            let outcome = try await Commands.submit(command, to: node)
            guard case .records(let items) = outcome, case .saved = items.first else {
                throw TestFailure("\(outcome)")
            }
        }

        @Test("what one node received a majority holds, and every node gives, whole and in ranges; then all hold it")
        func everywhere() async throws {
            let cluster = try await cluster(3)
            let bytes = bytes(1_200_000)
            let asset = try await upload(bytes, to: cluster.node(1))
            let group = try cluster.node(1).map.group(of: Commands.zone)
            try await cluster.node(1).holdAsset(asset, in: group)
            var holders = 0
            for node in cluster.nodes.values where try await node.assets.holds(asset) { holders += 1 }
            #expect(holders >= 2)
            try await save("a", asset, on: cluster.node(2))
            for node in cluster.nodes.values {
                #expect(try await download(asset, from: node) == bytes)
                #expect(try await download(asset, from: node, 300_000..<900_001) == Array(bytes[300_000..<900_001]))
            }
            for node in cluster.nodes.values {
                try await awaitTrue("node \(node.settings.nodeID) holds it") { try await node.assets.holds(asset) }
            }
            await cluster.stop()
        }

        @Test("with a node away a majority is enough; what it missed it fetches when it is back; a minority is not")
        func away() async throws {
            let cluster = try await cluster(3)
            let group = try cluster.node(1).map.group(of: Commands.zone)
            await cluster.stop([3])
            let asset = try await upload(bytes(700_000), to: cluster.node(1))
            try await cluster.node(1).holdAsset(asset, in: group)
            try await awaitTrue("a leader") {
                try await save("a", asset, on: cluster.node(2))
                return true
            }
            try await cluster.start([3])
            try await awaitTrue("the node fetches what it missed") { try await cluster.node(3).assets.holds(asset) }
            await cluster.stop([2, 3])
            await #expect(throws: AssetError.self) { try await cluster.node(1).holdAsset(asset, in: group) }
            await cluster.stop()
        }

        @Test("a file that nobody has is missing, and a candidate that has something else is passed over")
        func wrongBytes() async throws {
            let cluster = try await cluster(3)
            let group = try cluster.node(1).map.group(of: Commands.zone)
            let nowhere = AssetReference(sha256: [UInt8](repeating: 5, count: 32), size: 10)
            await #expect(throws: AssetError.missing) { try await cluster.node(1).holdAsset(nowhere, in: group) }
            await #expect(throws: AssetError.missing) { _ = try await download(nowhere, from: cluster.node(2)) }
            let bytes = bytes(600_000)
            let asset = try await upload(bytes, to: cluster.node(2))
            _ = try await upload(bytes, to: cluster.node(3))
            try flip(asset, at: 500_000, on: 3, cluster)
            try await cluster.node(1).assets.pull(asset, from: [NodeID(3), NodeID(2)])
            #expect(try await download(asset, from: cluster.node(1)) == bytes)
            #expect(try cluster.node(1).assetCounts.pulls == 1)
            await cluster.stop()
        }

        /// Where a node keeps a file.
        func path(of asset: AssetReference, on id: UInt64, _ cluster: TestCluster) -> String {
            let digits = Hex.encode(asset.sha256)
            return "\(cluster.dataPath(id))/assets/\(digits.prefix(2))/\(digits.dropFirst(2))"
        }

        /// Changes a bit of a file on a node's disk.
        func flip(_ asset: AssetReference, at offset: Int, on id: UInt64, _ cluster: TestCluster) throws {
            let file = try DiskFile(path: path(of: asset, on: id, cluster), flags: 2)
            let byte = try file.bytes(at: offset, count: 1)[0] ^ 1
            _ = try withUnsafeBytes(of: byte) { raw in try file.write(raw, at: offset) }
        }

        @Test("an upload that the disk damages before another node has it may be tried again, with the same bytes")
        func damagedUpload() async throws {
            let cluster = try await cluster(3)
            let node = try cluster.node(1)
            let group = node.map.group(of: Commands.zone)
            let bytes = bytes(300_000)
            let upload = try await node.receiveAsset(limit: 1 << 20)
            try await upload.write(bytes)
            let asset = try await upload.finish()
            try flip(asset, at: 1_000, on: 1, cluster)
            await #expect(
                throws: AssetError.unavailable(
                    "the disk of this node damaged the file before others had it: send it again")
            ) { try await upload.hold(asset, in: group, of: node) }
            #expect(try await self.upload(bytes, to: node) == asset)
            try await upload.hold(asset, in: group, of: node)
            await cluster.stop()
        }

        @Test("a copy that the disk cannot read any more is fetched again where the file is held")
        func unreadable() async throws {
            let disk = WornDisk()
            let cluster = try await cluster(3) { settings in
                settings.assets.scrubPauseMilliseconds = 3_600_000
                if settings.nodeID == NodeID(1) { settings.assets.disk = disk }
            }
            let node = try cluster.node(1)
            let group = node.map.group(of: Commands.zone)
            let bytes = bytes(300_000)
            let asset = try await upload(bytes, to: node)
            try await node.holdAsset(asset, in: group)
            try disk.wear(path(of: asset, on: 1, cluster), opens: true)
            #expect(try await download(asset, from: node) == bytes)
            try await node.assets.pull(asset, from: node.map.holders(of: group))
            #expect(try await node.assets.holds(asset))
            await cluster.stop()
        }

        @Test("a changed bit is found, set aside and fetched anew")
        func scrub() async throws {
            let cluster = try await cluster(3)
            let group = try cluster.node(1).map.group(of: Commands.zone)
            let bytes = bytes(300_000)
            let asset = try await upload(bytes, to: cluster.node(1))
            try await cluster.node(1).holdAsset(asset, in: group)
            try await save("a", asset, on: cluster.node(1))
            try await awaitTrue("node 2 holds it") { try await cluster.node(2).assets.holds(asset) }
            try flip(asset, at: 1_000, on: 2, cluster)
            try await awaitTrue("the damage is found") { try cluster.node(2).assetCounts.damaged > 0 }
            try await awaitTrue("a good copy is there") {
                let file = try cluster.node(2).assets.files.open(asset)
                return try file?.bytes(0..<asset.size) == bytes
            }
            await cluster.stop()
        }

        /// Brings the time of a shard up to 100 minutes towards the clock's: each command moves it by a minute.
        private func maintain(_ node: ClusterNode) async throws {
            var retention = Retention()
            retention.assetGrace = 3_600_000
            for _ in 0..<100 {
                let maintain = Maintain(time: node.platform.clock.wallMilliseconds, retention: retention)
                _ = try await Commands.submit(.record(.maintain(maintain)), to: node)
            }
        }

        @Test("a file stays while a record names it and for the grace, then goes from every node; so does one unsaved")
        func collected() async throws {
            let cluster = try await cluster(3) { $0.assets.graceMilliseconds = 3_600_000 }
            let group = try cluster.node(1).map.group(of: Commands.zone)
            let saved = try await upload(bytes(1_000), to: cluster.node(1))
            let unsaved = try await upload(bytes(2_000), to: cluster.node(2))
            for asset in [saved, unsaved] { try await cluster.node(1).holdAsset(asset, in: group) }
            try await save("a", saved, on: cluster.node(1))
            for node in cluster.nodes.values {
                for asset in [saved, unsaved] {
                    try await awaitTrue("all hold it") { try await node.assets.holds(asset) }
                }
            }
            try await cluster.setClocks(aheadMilliseconds: 3_700_000)
            for node in cluster.nodes.values {
                try await awaitTrue("the unsaved one goes") { try await !node.assets.holds(unsaved) }
            }
            for node in cluster.nodes.values { #expect(try await node.assets.holds(saved)) }
            let node = try cluster.node(1)
            // Now the grace begins at the clocks' time.
            try await maintain(node)
            try await save("a", nil, on: node)
            for node in cluster.nodes.values { #expect(try await node.assets.holds(saved)) }
            try await cluster.setClocks(aheadMilliseconds: 12 * 3_600_000)
            try await awaitTrue("the shard forgets it") {
                try await maintain(node)
                return try node.holdings[group].map { applier in
                    try applier.database.read { try !AssetTables.keeps(saved.sha256, in: $0) }
                } ?? false
            }
            for node in cluster.nodes.values {
                try await awaitTrue("the released one goes") { try await !node.assets.holds(saved) }
            }
            await cluster.stop()
        }

        @Test("a node alone receives, holds, gives and refuses more than the limit; an upload that is given up is gone")
        func alone() async throws {
            let cluster = try await cluster(1) { $0.assets.uploadsMax = 1 }
            let node = try cluster.node(1)
            let group = node.map.group(of: Commands.zone)
            let bytes = bytes(500_000)
            let asset = try await upload(bytes, to: node)
            try await node.holdAsset(asset, in: group)
            #expect(try await download(asset, from: node) == bytes)
            let large = try await node.receiveAsset(limit: 10)
            await #expect(throws: AssetError.unavailable("this node takes as many uploads as it may; try again")) {
                _ = try await node.receiveAsset(limit: 10)
            }
            await #expect(throws: AssetError.tooLarge(limit: 10)) {
                try await large.write([UInt8](repeating: 0, count: 11))
            }
            let given = try await node.receiveAsset(limit: 10)
            try await given.write([UInt8]([1, 2]))
            await given.abandon()
            await #expect(throws: AssetError.self) { _ = try await given.finish() }
            #expect(try listFolder(at: cluster.dataPath(1) + "/assets/incoming").isEmpty)
            await cluster.stop()
        }
    }
}
