import Foundation
import RecordModel
import ServiceClient
import Synchronization
import Testing

@testable import CloudKit

@Suite("Fetching records with assets")
struct AssetFetchTests {
    private static let id = CKRecord.ID(recordName: "one")

    /// Runs `body` with a record that has a file.
    private func running(
        _ bytes: [UInt8], nodes: Int = 1, patience: Duration = .zero,
        _ body: (AssetServer, CKDatabase) async throws -> Void
    ) async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let file = try folder.file(bytes)
        try await AssetServer.running(nodes: nodes, patience: patience) { server, database in
            let record = CKRecord(recordType: "Photo", recordID: Self.id)
            record["image"] = CKAsset(fileURL: file)
            record["title"] = "x"
            try await database.save(record)
            try await body(server, database)
        }
    }

    private static func bytes(_ record: CKRecord?) throws -> [UInt8]? {
        try ((record?["image"] as? CKAsset)?.fileURL).map { try [UInt8](Data(contentsOf: $0)) }
    }

    /// The file of the record.
    private static func fetched(_ database: CKDatabase) async throws -> [UInt8]? {
        try bytes(try await database.record(for: id))
    }

    @Test("Every way to fetch a record brings its file, for its owner's eyes")
    func ways() async throws {
        let bytes = someBytes(700_000)
        try await running(bytes) { server, database in
            let single = try await database.record(for: Self.id)
            #expect(try Self.bytes(single) == bytes)
            #expect((single["image"] as? CKAsset)?.size == 700_000 && single.changedKeys().isEmpty)
            let looked = try await database.records(for: [Self.id])
            #expect(try Self.bytes(try looked[Self.id]?.get()) == bytes)
            let query = CKQuery(recordType: "Photo", predicate: NSPredicate(value: true))
            let found = try await database.records(matching: query).matchResults.first
            #expect(try Self.bytes(try found?.1.get()) == bytes)
            let changes = try await database.recordZoneChanges(inZoneWith: CKRecordZone.ID(zoneName: "z"), since: nil)
            let changed = try #require(try changes.modificationResultsByID.values.first?.get().record)
            #expect(try Self.bytes(changed) == bytes)
            let path = try #require((changed["image"] as? CKAsset)?.fileURL?.path)
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
    }

    @Test("Fields that are not desired, and calls without files, fetch none; URL and size are known")
    func withoutFiles() async throws {
        try await running(someBytes(500)) { server, database in
            let named = try await database.records(for: [Self.id], desiredKeys: ["title"])
            #expect(try named[Self.id]?.get()["image"] == nil)
            let configuration = CKOperation.Configuration()
            configuration.fetchesAssetFiles = false
            let record = try await database.configuredWith(configuration: configuration) {
                try await $0.record(for: Self.id)
            }
            let asset = try #require(record["image"] as? CKAsset)
            #expect(asset.fileURL == nil && asset.size == 500 && asset.downloadURL?.path.hasPrefix("/down/") == true)
            let operation = CKFetchRecordsOperation(recordIDs: [Self.id])
            operation.configuration = configuration
            let log = Log<URL?>()
            operation.perRecordResultBlock = { _, result in
                log.add(((try? result.get())?["image"] as? CKAsset)?.fileURL)
            }
            await run(operation, on: database)
            #expect(log.all == [nil] && server.count("/down/") == 0)
        }
    }

    @Test("A download that is cut goes on behind what is there, at another node")
    func resumed() async throws {
        let bytes = someBytes(2_000_000)
        try await running(bytes, nodes: 3) { server, database in
            server.fail { $0.cutDownloads = [600_000, 700_000] }
            let found = try await Self.fetched(database)
            #expect(found == bytes)
            let downloads = server.requests.filter { $0.path.hasPrefix("/down/") }
            #expect(Set(downloads.map(\.node)) == [0, 1, 2] && downloads.count == 3)
            let starts = downloads.map { $0.range.flatMap { Int($0.dropFirst(6).dropLast()) } ?? 0 }
            #expect(starts == starts.sorted() && starts[0] == 0 && starts[1] > 0 && starts[2] > starts[1])
        }
    }

    @Test("A download that is cut behind its last byte is whole")
    func cutBehindTheEnd() async throws {
        let bytes = someBytes(1_000)
        try await running(bytes) { server, database in
            server.fail { $0.cutDownloads = [bytes.count] }
            let found = try await Self.fetched(database)
            #expect(found == bytes && server.count("/down/") == 1)
        }
    }

    @Test("Without an entity tag a cut download begins again")
    func withoutTag() async throws {
        let bytes = someBytes(1_000_000)
        try await running(bytes, nodes: 2) { server, database in
            server.fail { ($0.cutDownloads, $0.hasTags) = ([600_000], false) }
            let found = try await Self.fetched(database)
            #expect(found == bytes)
            #expect(server.requests.allSatisfy { $0.range == nil } && server.count("/down/") == 2)
        }
    }

    @Test("A download that is always cut, and comes no further, is networkFailure")
    func lost() async throws {
        try await running(someBytes(1_000)) { server, database in
            server.fail { $0.cutDownloads = [Int](repeating: 0, count: 9) }
            #expect(await failure { try await database.record(for: Self.id) }?.code == .networkFailure)
        }
    }

    @Test("As long as bytes come, many cuts are no failure, whatever the patience")
    func manyCuts() async throws {
        let bytes = someBytes(900_000)
        try await running(bytes, patience: .seconds(5)) { server, database in
            server.fail { $0.cutDownloads = [Int](repeating: 300_000, count: 2) }
            let found = try await Self.fetched(database)
            #expect(found == bytes)
        }
    }

    @Test("A URL that has expired: the record is fetched again, and comes as it is by then")
    func expired() async throws {
        try await running(someBytes(100)) { server, database in
            server.fail { $0.downloadStatus = [410] }
            let other = someBytes(222, seed: 9)
            server.replace(other, in: "image", of: "one")
            let record = try await database.record(for: Self.id)
            #expect(try Self.bytes(record) == other && server.count("records/lookup") == 2)
            server.fail { $0.downloadStatus = [410, 410, 410] }
            #expect(await failure { try await database.record(for: Self.id) }?.code == .assetNotAvailable)
        }
    }

    @Test("A file that the server does not have is assetNotAvailable, 35, for its record only")
    func gone() async throws {
        try await running(someBytes(100)) { server, database in
            let folder = try TestFolder()
            defer { folder.remove() }
            let other = CKRecord(recordType: "Photo", recordID: CKRecord.ID(recordName: "two"))
            other["image"] = CKAsset(fileURL: try folder.file(someBytes(50, seed: 3)))
            try await database.save(other)
            server.fail { $0.downloadStatus = [404] }
            let found = try await database.records(for: [Self.id, other.recordID])
            let codes = found.values.map(\.code)
            #expect(codes.count == 2 && codes.contains(nil) && codes.contains(.assetNotAvailable))
            #expect(CKError.Code.assetNotAvailable.rawValue == 35)
        }
    }

    @Test("A zone's page whose files fail for now is not gone past; what is lost for good is the record's error")
    func feed() async throws {
        try await running(someBytes(100)) { server, database in
            let zone = CKRecordZone.ID(zoneName: "z")
            server.fail { $0.downloadStatus = [503] }
            #expect(
                await failure { try await database.recordZoneChanges(inZoneWith: zone, since: nil) }?.code
                    == .serviceUnavailable)
            server.fail { $0.downloadStatus = [404] }
            let changes = try await database.recordZoneChanges(inZoneWith: zone, since: nil)
            #expect(changes.modificationResultsByID.values.first?.code == .assetNotAvailable)
        }
    }

    @Test("A sync engine gets a record without a file that is lost, and goes on with the zone")
    func lostForEngine() async throws {
        try await running(someBytes(100)) { server, database in
            let device = Device(database)
            server.fail { $0.downloadStatus = [404] }
            try await device.engine.fetchChanges()
            #expect(device.told.contains("fetched +1 -0") && device.texts.keys.sorted() == ["one"])
            #expect(device.engine.state.zoneIDsWithUnfetchedServerChanges.isEmpty)
        }
    }

    @Test("A zone that a sync engine could not fetch to its end is told by the call, and is fetched again")
    func zoneForEngine() async throws {
        try await running(someBytes(100)) { server, database in
            let device = Device(database)
            server.fail { $0.downloadStatus = [403] }
            let error = await failure { try await device.engine.fetchChanges() }
            let zone = CKRecordZone.ID(zoneName: "z")
            #expect(error?.code == .partialFailure)
            #expect(error?.partialErrorsByItemID?[zone] is CKError)
            #expect(device.engine.state.zoneIDsWithUnfetchedServerChanges == [zone])
            try await device.engine.fetchChanges()
            #expect(device.told.contains("fetched +1 -0"))
        }
    }

    @Test("Bytes of another number, or with another digest, are not taken for the file")
    func damaged() async throws {
        let bytes = someBytes(1_000)
        try await running(bytes) { server, database in
            server.fail { $0.surplusBytes = 1 }
            #expect(await failure { try await database.record(for: Self.id) }?.code == .networkFailure)
            server.fail { ($0.surplusBytes, $0.wrongDigests) = (0, 1) }
            let found = try await Self.fetched(database)
            #expect(found == bytes, "the second attempt is right")
            server.fail { $0.wrongDigests = 2 }
            #expect(await failure { try await database.record(for: Self.id) }?.code == .networkFailure)
        }
    }

    @Test("Where nodes have damaged copies the file comes from the one that has a good one")
    func damagedCopies() async throws {
        let bytes = someBytes(1_000)
        try await running(bytes, nodes: 3) { server, database in
            server.fail { $0.damagedNodes = [0, 1] }
            let found = try await Self.fetched(database)
            #expect(found == bytes)
            #expect(server.requests.filter { $0.path.hasPrefix("/down/") }.map(\.node) == [0, 1, 2])
            server.fail { $0.damagedNodes = [0, 1, 2] }
            #expect(await failure { try await database.record(for: Self.id) }?.code == .networkFailure)
        }
    }

    @Test("Progress of a fetch goes by bytes to 1")
    func progress() async throws {
        try await running(someBytes(3_000_000)) { server, database in
            let operation = CKFetchRecordsOperation(recordIDs: [Self.id])
            let log = Log<Double>()
            operation.perRecordProgressBlock = { id, part in
                #expect(id == Self.id)
                log.add(part)
            }
            await run(operation, on: database)
            #expect(log.all.last == 1 && log.all == log.all.sorted() && log.all.count > 5 && log.all.count <= 100)
        }
    }

    @Test("The server's record of a conflict has its assets without files")
    func conflicts() throws {
        let json = try JSONParser.parse(
            Array(
                #"{"recordName":"a","recordType":"T","recordChangeTag":"1","fields":{"image":{"type":"ASSETID","value":{"fileChecksum":"c","size":3,"downloadURL":"https://h/x"}}}}"#
                    .utf8))
        let record = try RecordReader(zone: .default).record(json)
        let asset = try #require(record["image"] as? CKAsset)
        #expect(asset.fileURL == nil && asset.size == 3 && asset.downloadURL?.absoluteString == "https://h/x")
    }
}

@Suite("The folder of fetched files")
struct AssetStagingTests {
    private static func staged(_ staging: AssetStaging) throws -> StagedFile {
        let sink = try staging.newFile()
        sink.finish()
        return StagedFile(url: URL(fileURLWithPath: sink.path), staging: staging)
    }

    private static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    @Test("A file stays while something refers to it, and ten minutes more")
    func life() throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let start = ContinuousClock.now
        let elapsed = Mutex(Duration.zero)
        let staging = AssetStaging(root: folder.path + "/root") { start + elapsed.withLock { $0 } }
        var file: StagedFile? = try Self.staged(staging)
        let kept = try Self.staged(staging)
        let path = try #require(file?.url.path)
        elapsed.withLock { $0 = .seconds(10_000) }
        _ = try Self.staged(staging)
        #expect(Self.exists(path), "it is referred to")
        withExtendedLifetime(file) {}
        file = nil
        elapsed.withLock { $0 += .seconds(599) }
        _ = try Self.staged(staging)
        #expect(Self.exists(path), "an app may have kept the URL")
        elapsed.withLock { $0 += .seconds(2) }
        _ = try Self.staged(staging)
        #expect(!Self.exists(path) && Self.exists(kept.url.path))
        staging.removeAll()
        #expect(!Self.exists(kept.url.path))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/root").isEmpty)
    }

    @Test("The folder of a process that was killed is removed by the next one, and no other")
    func abandoned() throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let root = folder.path + "/root"
        let living = AssetStaging(root: root)
        let file = try Self.staged(living)
        try FileManager.default.createDirectory(atPath: root + "/1-2", withIntermediateDirectories: false)
        for name in ["1-2/1", "1-2.lock"] { try Data([1]).write(to: URL(fileURLWithPath: "\(root)/\(name)")) }
        _ = try Self.staged(AssetStaging(root: root))
        #expect(!Self.exists(root + "/1-2") && !Self.exists(root + "/1-2.lock"))
        #expect(Self.exists(file.url.path))
    }

    @Test("A folder that belongs to everybody is not taken, and a file that fails leaves nothing")
    func refused() throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let root = folder.path + "/root"
        try FileManager.default.createDirectory(
            atPath: root, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o777])
        #expect(throws: AssetFileError.self) { try AssetStaging(root: root).newFile() }
        let staging = AssetStaging(root: folder.path + "/other")
        let path = try staging.newFile().path
        #expect(!Self.exists(path))
    }

    @Test("A full disk is an error that says so, and not one of the network")
    func fullDisk() throws {
        let error = ErrorMapping().error(AssetFileError.notWritten(path: "/tmp/x", code: ENOSPC))
        #expect(error.code == .internalError && error.localizedDescription.contains("No space left"))
        let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(cause?.code == Int(ENOSPC) && cause?.domain == NSPOSIXErrorDomain)
    }
}
