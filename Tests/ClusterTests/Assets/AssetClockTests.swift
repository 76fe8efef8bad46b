import Admission
import Authorization
import Directory
import Logging
import RecordModel
import TestSupport
import Testing

@testable import Cluster
@testable import Service

// Files, URLs and receipts while a node does not know whether its clock is right.
extension WaitingClusterSuites.AssetClusterTests {
    @Test("while nobody knows which clock is right files are kept, and kept for the grace from when it is known")
    func clockInDoubt() async throws {
        let grace: Int64 = 3_600_000
        let cluster = try await cluster(2) { $0.assets.graceMilliseconds = grace }
        let node = try cluster.node(1)
        let before = try await upload(bytes(1_000), to: node)
        cluster.clocks[0].set(aheadMilliseconds: -9 * grace)
        #expect(node.clockDoubt != nil && node.lane.clockWatch.knownMilliseconds == nil)
        let during = try await upload(bytes(2_000), to: node)
        #expect(try await node.assets.renew(before))
        for asset in [before, during] {
            #expect(try node.assets.files.status(of: asset.sha256)?.modified == AssetFiles.unknownMilliseconds)
        }
        // The files are old by a clock that is in doubt.
        cluster.clocks[0].set(aheadMilliseconds: 9 * grace)
        for asset in [before, during] { try age(asset, by: 2 * Double(grace) / 1_000, on: 1, cluster) }
        for count in 1...2 {
            _ = try await upload(bytes(count), to: node)
            try await awaitTrue("files are looked through") { node.assetCounts.files == UInt64(2 + count) }
        }
        for asset in [before, during] { #expect(try await node.assets.renew(asset)) }
        cluster.clocks[0].set(aheadMilliseconds: 0)
        for asset in [before, during] {
            try await awaitTrue("the file has a time that was") {
                let modified = try node.assets.files.status(of: asset.sha256)?.modified
                return try #require(modified) <= node.platform.clock.wallMilliseconds
            }
            #expect(try await node.assets.holds(asset))
        }
        try await cluster.setClocks(aheadMilliseconds: grace + 120_000)
        for asset in [before, during] {
            try await awaitTrue("the file goes") { try await !node.assets.holds(asset) }
        }
        await cluster.stop()
    }

    @Test("while nobody knows which clock is right nothing is refused for its date; what is forged is refused")
    func datesInDoubt() async throws {
        let day: Int64 = 86_400_000
        let cluster = try await cluster(2)
        let node = try cluster.node(1)
        let service = RecordService(node: node, logger: Logger(label: "test"))
        let secret = try await service.requireSecret()
        let asset = AssetReference(sha256: [UInt8](repeating: 1, count: 32), size: 3)

        func open(_ expires: Int64, _ change: ([UInt8]) -> [UInt8] = { $0 }) async -> ErrorCode? {
            let url = AssetDownloadTicket(asset: asset, zone: Commands.zone, expires: expires)
            do throws(RequestFailure) {
                _ = try await AssetTransfers(service).open(
                    change(secret.bytes(of: url)), as: AssetDownloadTicket.self, address: nil)
                return nil
            } catch {
                return error.error.code
            }
        }
        func resolve(_ expires: Int64) async throws -> ErrorCode? {
            let receipt = AssetReceipt(asset: asset, zone: Commands.zone, user: "_me", expires: expires)
            let body = """
                {"operations": [{"operationType": "create", "record": {"recordName": "a", "recordType": "Note", "fields":
                {"photo": {"value": {"receipt": "\(Base64.encode(secret.bytes(of: receipt)))"}}}}}]}
                """
            let operation = try #require(try ModifyRecordsRequest(body: Array(body.utf8)).operations.first)
            let request = DatabaseRequest(
                service, key: Commands.database,
                requester: Requester(Admitted(caller: Caller(user: "_me")), requestID: "", address: nil),
                in: node.directory.snapshot, deadline: node.deadline())
            let saving = try await AssetSaving([(operation, "a")], in: Commands.zone, request)
            let place = RecordOperation.Place(
                container: Commands.database.container, environment: .development, scope: .private,
                zone: ZoneID(name: Commands.zone.name), schemaGrows: false)
            do throws(ServiceError) {
                _ = try operation.values(
                    in: Self.schema, at: place, assets: saving.resolver(of: operation, name: "a"))
                return nil
            } catch {
                do throws(RequestFailure) { try saving.requireNoClockDoubt() } catch { return error.error.code }
                return error.code
            }
        }

        let soon = service.now + day
        #expect(await open(service.now - 1) == .badRequest)
        #expect(try await resolve(service.now - 1) == .badRequest)
        cluster.clocks[0].set(aheadMilliseconds: 9 * day)
        #expect(await open(soon) == .tryAgainLater)
        #expect(try await resolve(soon) == .tryAgainLater)
        #expect(await open(soon + 30 * day) == nil)
        #expect(try await resolve(soon + 30 * day) == nil)
        #expect(await open(soon) { $0.reversed() } == .accessDenied)
        cluster.clocks[0].set(aheadMilliseconds: 0)
        #expect(await open(soon) == nil)
        await cluster.stop()
    }
}
