import Foundation
import RecordModel
import ServiceClient
import Synchronization
import Testing

@testable import CloudKit

@Suite("Saving records with assets")
struct AssetSaveTests {
    private static func photo(_ file: URL, _ name: String = "one", zone: CKRecordZone.ID = .default) -> CKRecord {
        let record = CKRecord(recordType: "Photo", recordID: CKRecord.ID(recordName: name, zoneID: zone))
        record["image"] = CKAsset(fileURL: file)
        return record
    }

    private static let custom = CKRecordZone.ID(zoneName: "zone")

    @Test("The file is sent, then the record with its receipt, and the record keeps the file")
    func plain() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let bytes = someBytes(700_000)
        let file = try folder.file(bytes)
        try await AssetServer.running { server, database in
            let record = Self.photo(file)
            try await database.save(record)
            #expect(server.files == [bytes])
            let token = try #require(server.requests.first?.json["tokens"]?.array?.first)
            #expect(token["recordType"] == .string("Photo") && token["fieldName"] == .string("image"))
            #expect(token["size"] == .integer(700_000))
            let asset = try #require(record["image"] as? CKAsset)
            #expect(asset.fileURL == file && asset.size == 700_000 && asset.downloadURL != nil)
            #expect(record.changedKeys().isEmpty)
        }
    }

    @Test("An empty file is an asset of 0 bytes")
    func empty() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let file = try folder.file([])
        try await AssetServer.running { server, database in
            let record = Self.photo(file)
            try await database.save(record)
            #expect(server.files == [[]] && (record["image"] as? CKAsset)?.size == 0)
            let fetched = try await database.record(for: record.recordID)
            let url = try #require((fetched["image"] as? CKAsset)?.fileURL)
            #expect(try Data(contentsOf: url).isEmpty)
        }
    }

    @Test("Lists keep the order of their files")
    func lists() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let contents = (0..<6).map { someBytes(1_000 + $0, seed: UInt64($0)) }
        let files = try contents.enumerated().map { try folder.file($1, "\($0)") }
        try await AssetServer.running { server, database in
            let record = CKRecord(recordType: "Photo")
            record["images"] = files.map { CKAsset(fileURL: $0) }
            try await database.save(record)
            let sent = server.requests.last?.json["operations"]?.array?.first?["record"]?["fields"]?["images"]
            #expect(sent?["type"] == .string("ASSETID_LIST"))
            #expect((record["images"] as? [CKAsset])?.map(\.fileURL) == files)
            let fetched = try await database.record(for: record.recordID)
            let urls = try #require(fetched["images"] as? [CKAsset]).compactMap(\.fileURL)
            #expect(try urls.map { try [UInt8](Data(contentsOf: $0)) } == contents)
        }
    }

    @Test("A record that is saved back keeps its asset without sending it, and a new file of a list goes alone")
    func keeping() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let (first, second) = (try folder.file(someBytes(100), "a"), try folder.file(someBytes(200), "b"))
        try await AssetServer.running { server, database in
            try await database.save(Self.photo(first))
            let record = try await database.record(for: CKRecord.ID(recordName: "one"))
            record["image"] = record["image"] as? CKAsset
            record["title"] = "x"
            try await database.save(record)
            #expect(server.count("/up/") == 1 && server.count("assets/upload") == 1)
            let sent = server.requests.last?.json["operations"]?.array?.first?["record"]?["fields"]?["image"]?["value"]
            #expect(sent?["fileChecksum"] != nil && sent?["receipt"] == nil && sent?["size"] == .integer(100))
            let url = try #require((record["image"] as? CKAsset)?.fileURL)
            #expect(try Data(contentsOf: url).count == 100, "the fetched file stays with the saved record")

            record["images"] = [CKAsset(fileURL: first)]
            try await database.save(record)
            let list = try #require(record["images"] as? [CKAsset])
            record["images"] = list + [CKAsset(fileURL: second)]
            try await database.save(record)
            #expect(server.count("/up/") == 3)
            #expect((record["images"] as? [CKAsset])?.map(\.size) == [100, 200])
        }
    }

    /// The asset of the record `one`, with or without its file.
    private static func fetched(_ database: CKDatabase, _ key: String, withFiles: Bool) async throws -> [CKAsset] {
        let configuration = CKOperation.Configuration()
        configuration.fetchesAssetFiles = withFiles
        let record = try await database.configuredWith(configuration: configuration) {
            try await $0.record(for: CKRecord.ID(recordName: "one"))
        }
        if let list = record[key] as? [CKAsset] { return list }
        return [try #require(record[key] as? CKAsset)]
    }

    @Test("Another record gets an asset from the one that it came with, fetched or not, and no file is sent")
    func otherRecord() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let files = [try folder.file(someBytes(100), "a"), try folder.file(someBytes(200, seed: 2), "b")]
        try await AssetServer.running { server, database in
            let one = Self.photo(files[0])
            one["images"] = files.map { CKAsset(fileURL: $0) }
            try await database.save(one)
            #expect(server.count("/up/") == 3)
            for (name, withFiles) in [("two", true), ("three", false)] {
                let other = CKRecord(
                    recordType: "Photo", recordID: CKRecord.ID(recordName: name, zoneID: Self.custom))
                other["image"] = try await Self.fetched(database, "image", withFiles: withFiles)[0]
                let list = try await Self.fetched(database, "images", withFiles: withFiles)
                other["images"] = [list[1], CKAsset(fileURL: files[0]), list[0]]
                try await database.save(other)
                #expect((other["images"] as? [CKAsset])?.map(\.size) == [200, 100, 100])
                #expect(((other["image"] as? CKAsset)?.fileURL != nil) == withFiles)
            }
            // Only what was new in them.
            #expect(server.count("/up/") == 5)
            let asked = try #require(server.requests.last { $0.path.hasSuffix("assets/rereference") }?.json)
            #expect(asked["zoneID"]?["zoneName"]?.string == "_defaultZone")
            #expect(asked["targetZoneID"]?["zoneName"]?.string == "zone")
            #expect(asked["assets"]?.array?.compactMap { $0["fieldName"]?.string } == ["image", "images"])
            // A record that was saved is one that has it, and so is another field of the same record.
            one["cover"] = one["image"] as? CKAsset
            try await database.save(one)
            #expect(server.count("/up/") == 5 && (one["cover"] as? CKAsset)?.fileURL == files[0])
        }
    }

    @Test("What the record does not have any more is sent where its file is here, and else assetFileNotFound")
    func sourceGone() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let file = try folder.file(someBytes(100))
        try await AssetServer.running { server, database in
            try await database.save(Self.photo(file))
            let here = try await Self.fetched(database, "image", withFiles: true)[0]
            let described = try await Self.fetched(database, "image", withFiles: false)[0]
            func save(_ asset: CKAsset, in database: CKDatabase) async -> CKError? {
                let record = CKRecord(recordType: "Photo")
                record["image"] = asset
                return await failure { try await database.save(record) }
            }
            server.replace(someBytes(50, seed: 7), in: "image", of: "one")
            #expect(await save(here, in: database) == nil && server.count("/up/") == 2)
            let replaced = await save(described, in: database)
            #expect(replaced?.code == .assetFileNotFound)
            #expect(replaced?.localizedDescription.contains("fetch it again") == true)
            server.remove("one")
            #expect(await save(here, in: database) == nil && server.count("/up/") == 3)
            #expect(await save(described, in: database)?.code == .assetFileNotFound)
            // Records of other databases are not asked.
            let asked = server.count("assets/rereference")
            let other = try #require(server.container).publicCloudDatabase
            #expect(await save(described, in: other)?.code == .assetFileNotFound)
            #expect(server.count("assets/rereference") == asked)
        }
    }

    @Test(
        "A save over what another device saved brings its file back; where the record still has it, nothing is sent",
        arguments: [CKModifyRecordsOperation.RecordSavePolicy.allKeys, .changedKeys])
    func overwriting(_ policy: CKModifyRecordsOperation.RecordSavePolicy) async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let file = try folder.file(someBytes(100))
        try await AssetServer.running { server, database in
            try await database.save(Self.photo(file))
            let record = try await database.record(for: CKRecord.ID(recordName: "one"))
            for (hasChanged, count) in [(false, 1), (true, 2)] {
                if hasChanged { server.replace(someBytes(50, seed: 7), in: "image", of: "one") }
                record["image"] = record["image"] as? CKAsset
                let saved = try await database.modifyRecords(saving: [record], deleting: [], savePolicy: policy)
                #expect(saved.saveResults[record.recordID]?.code == nil)
                #expect(server.count("/up/") == count)
                let again = try await database.record(for: record.recordID)
                let url = try #require((again["image"] as? CKAsset)?.fileURL)
                #expect(try [UInt8](Data(contentsOf: url)) == someBytes(100))
            }
        }
    }

    @Test("A file that is not there is assetFileNotFound, and nothing is sent")
    func missing() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let path = folder.path
        try await AssetServer.running { server, database in
            for wrong in ["\(path)/none", path, "/dev/zero"] {
                let error = await failure { try await database.save(Self.photo(URL(fileURLWithPath: wrong))) }
                #expect(error?.code == .assetFileNotFound, "\(wrong)")
                #expect(error?.errorCode == 16 && error?.localizedDescription.contains(wrong) == true)
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test("Of an atomic batch nothing is done where a file is missing; elsewhere the others are saved")
    func batches() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let (file, gone) = (try folder.file(someBytes(10)), URL(fileURLWithPath: folder.path + "/gone"))
        try await AssetServer.running { server, database in
            let atomic = try await database.modifyRecords(
                saving: [Self.photo(file, "a", zone: Self.custom), Self.photo(gone, "b", zone: Self.custom)],
                deleting: [CKRecord.ID(recordName: "c", zoneID: Self.custom)])
            #expect(
                atomic.saveResults[CKRecord.ID(recordName: "a", zoneID: Self.custom)]?.code == .batchRequestFailed)
            #expect(
                atomic.saveResults[CKRecord.ID(recordName: "b", zoneID: Self.custom)]?.code == .assetFileNotFound)
            #expect(atomic.deleteResults.values.first?.code == .batchRequestFailed)
            #expect(server.count("records/modify") == 0)
            let others = try await database.modifyRecords(
                saving: [Self.photo(file, "a", zone: Self.custom), Self.photo(gone, "b", zone: Self.custom)],
                deleting: [], atomically: false)
            #expect(others.saveResults[CKRecord.ID(recordName: "a", zoneID: Self.custom)]?.code == nil)
            #expect(others.saveResults[CKRecord.ID(recordName: "b", zoneID: Self.custom)]?.code == .assetFileNotFound)
        }
    }

    @Test("A file that is written to while it is sent is assetFileModified, and the record is not saved")
    func modified() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let file = try folder.hole(60_000_000)
        try await AssetServer.running { server, database in
            server.fail { faults in
                faults.duringUpload = { count in
                    guard count < 200_000, let handle = try? FileHandle(forWritingTo: file) else { return }
                    try? handle.truncate(atOffset: 50_000_000)
                    try? handle.close()
                }
            }
            let error = await failure { try await database.save(Self.photo(file)) }
            #expect(error?.code == .assetFileModified && server.files.isEmpty)
            #expect(server.count("records/modify") == 0)
        }
    }

    @Test("A file that is written to and keeps its size is assetFileModified too")
    func overwritten() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let file = try folder.hole(60_000_000)
        try await AssetServer.running { server, database in
            server.fail { faults in
                faults.duringUpload = { count in
                    guard count < 200_000, let handle = try? FileHandle(forWritingTo: file) else { return }
                    try? handle.write(contentsOf: [1, 2, 3])
                    try? handle.close()
                }
            }
            #expect(await failure { try await database.save(Self.photo(file)) }?.code == .assetFileModified)
            #expect(server.files.isEmpty)
        }
    }

    @Test("A connection that is cut inside an upload: the file goes again, to another node")
    func cut() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let bytes = someBytes(2_000_000)
        let file = try folder.file(bytes)
        try await AssetServer.running(nodes: 2) { server, database in
            server.fail { $0.cutUploads = [500_000] }
            try await database.save(Self.photo(file))
            #expect(server.files == [bytes])
            #expect(server.requests.filter { $0.path.hasPrefix("/up/") }.map(\.node) == [1])
        }
        try await AssetServer.running { server, database in
            server.fail { $0.cutUploads = [500_000] }
            let error = await failure { try await database.save(Self.photo(file)) }
            #expect(error?.code == .networkFailure && server.count("records/modify") == 0)
        }
    }

    @Test("A URL that has expired is asked for again; a busy node is asked again within the patience")
    func retries() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let file = try folder.file(someBytes(1_000))
        try await AssetServer.running(patience: .seconds(10)) { server, database in
            server.fail { $0.uploadStatus = [410, 503, 429] }
            try await database.save(Self.photo(file))
            #expect(server.count("assets/upload") == 2 && server.count("/up/") == 4)
        }
    }

    @Test(
        "What the server refuses is the record's error",
        arguments: [(413, CKError.Code.limitExceeded), (400, .invalidArguments), (404, .unknownItem)])
    func refusals(status: Int, code: CKError.Code) async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let file = try folder.file(someBytes(1_000))
        try await AssetServer.running { server, database in
            server.fail { $0.uploadStatus = [status] }
            #expect(await failure { try await database.save(Self.photo(file)) }?.code == code)
            server.fail { $0.refusedField = "image" }
            #expect(await failure { try await database.save(Self.photo(file)) }?.code == .permissionFailure)
        }
    }

    @Test("One upload that is refused does not keep the others of the call back")
    func oneRefused() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let file = try folder.file(someBytes(10))
        try await AssetServer.running { server, database in
            server.fail { ($0.refusedField, $0.refusesWhole) = ("wrong", true) }
            let records = (0..<7).map { number in
                let record = CKRecord(recordType: "Photo", recordID: CKRecord.ID(recordName: "\(number)"))
                record[number == 4 ? "wrong" : "image"] = CKAsset(fileURL: file)
                return record
            }
            let saved = try await database.modifyRecords(saving: records, deleting: []).saveResults
            #expect(saved.values.filter { $0.code == nil }.count == 6)
            #expect(saved[CKRecord.ID(recordName: "4")]?.code == .invalidArguments)
        }
    }

    @Test("Encrypted values take no assets, and no file is sent for them")
    func encrypted() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let file = try folder.file(someBytes(10))
        try await AssetServer.running { server, database in
            let record = CKRecord(recordType: "Photo")
            record.encryptedValues["image"] = CKAsset(fileURL: file)
            #expect(await failure { try await database.save(record) }?.code == .invalidArguments)
            #expect(server.requests.isEmpty)
        }
    }

    @Test("Progress goes by the bytes of a record's files, forwards, to 1")
    func progress() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let files = [try folder.file(someBytes(3_000_000), "a"), try folder.file(someBytes(1_000_000, seed: 2), "b")]
        try await AssetServer.running { server, database in
            server.fail { $0.cutUploads = [1_000_000] }
            let record = CKRecord(recordType: "Photo")
            record["images"] = files.map { CKAsset(fileURL: $0) }
            let operation = CKModifyRecordsOperation(recordsToSave: [record])
            let configuration = CKOperation.Configuration()
            configuration.timeoutIntervalForRequest = 20
            operation.configuration = configuration
            let log = Log<Double>()
            operation.perRecordProgressBlock = { saved, part in
                #expect(saved === record)
                log.add(part)
            }
            let saved = Mutex(false)
            operation.perRecordSaveBlock = { _, result in saved.withLock { $0 = result.code == nil } }
            await run(operation, on: database)
            #expect(saved.withLock { $0 })
            #expect(log.all.last == 1 && log.all == log.all.sorted() && Set(log.all).count == log.all.count)
            #expect(log.all.count > 10 && log.all.count <= 100)
        }
    }

    @Test("A cancelled operation stops sending")
    func cancelled() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let file = try folder.hole(60_000_000)
        try await AssetServer.running { server, database in
            let operation = CKModifyRecordsOperation(recordsToSave: [Self.photo(file)])
            server.fail { $0.duringUpload = { _ in operation.cancel() } }
            let code = Mutex<CKError.Code?>(nil)
            operation.modifyRecordsResultBlock = { result in code.withLock { $0 = result.code } }
            await run(operation, on: database)
            #expect(code.withLock { $0 } == .operationCancelled && server.count("records/modify") == 0)
        }
    }
}
