import Foundation
import ServiceClient
import Testing

@testable import CloudKit

extension EndToEnd {
    @Suite("Assets")
    struct AssetCases {
        private static func bytes(_ asset: CKAsset?) throws -> [UInt8]? {
            try asset?.fileURL.map { try [UInt8](Data(contentsOf: $0)) }
        }

        private static func photo(_ name: String, in zone: CKRecordZone.ID) -> CKRecord {
            CKRecord(recordType: "Photo", recordID: CKRecord.ID(recordName: name, zoneID: zone))
        }

        @Test(
            "A file that is saved with its record comes with it, in each way to fetch it", arguments: [0, 1, 3_000_000])
        func roundTrip(size: Int) async throws {
            let (database, zone) = try await Cloud.zone()
            let folder = try TestFolder()
            defer { folder.remove() }
            let bytes = someBytes(size)
            let record = Self.photo("one", in: zone)
            record["image"] = CKAsset(fileURL: try folder.file(bytes))
            try await database.save(record)
            #expect((record["image"] as? CKAsset)?.size == Int64(size))
            let fetched = try await database.record(for: record.recordID)
            #expect(try Self.bytes(fetched["image"] as? CKAsset) == bytes)
            let changes = try await database.recordZoneChanges(inZoneWith: zone, since: nil)
            let changed = try #require(try changes.modificationResultsByID[record.recordID]?.get().record)
            #expect(try Self.bytes(changed["image"] as? CKAsset) == bytes)
            let without = try await database.records(for: [record.recordID], desiredKeys: ["title"])
            #expect(try without[record.recordID]?.get()["image"] == nil)
        }

        @Test("A fetched record that is saved keeps its assets; lists take new ones beside them; nil gives them up")
        func keeping() async throws {
            let (database, zone) = try await Cloud.zone()
            let folder = try TestFolder()
            defer { folder.remove() }
            let contents = [someBytes(70_000), someBytes(80_000, seed: 2), someBytes(90_000, seed: 3)]
            let files = try contents.enumerated().map { try folder.file($1, "\($0)") }
            let record = Self.photo("one", in: zone)
            record["image"] = CKAsset(fileURL: files[0])
            record["images"] = files.prefix(2).map { CKAsset(fileURL: $0) }
            try await database.save(record)
            folder.remove()
            let fetched = try await database.record(for: record.recordID)
            fetched["title"] = "x"
            fetched["image"] = fetched["image"] as? CKAsset
            try await database.save(fetched)
            let other = try TestFolder()
            defer { other.remove() }
            let list = try #require(fetched["images"] as? [CKAsset])
            fetched["images"] = [list[1], CKAsset(fileURL: try other.file(contents[2])), list[0]]
            try await database.save(fetched)
            var again = try await database.record(for: record.recordID)
            #expect(try Self.bytes(again["image"] as? CKAsset) == contents[0] && again["title"] as? String == "x")
            let order = try (again["images"] as? [CKAsset])?.map { try Self.bytes($0) }
            #expect(order == [contents[1], contents[2], contents[0]])
            again["image"] = nil
            try await database.save(again)
            again = try await database.record(for: record.recordID)
            #expect(again["image"] == nil && (again["images"] as? [CKAsset])?.count == 3)
        }

        @Test("Assets of a record can be saved in others, of another zone too, without their files")
        func otherRecord() async throws {
            let (database, zone) = try await Cloud.zone()
            let folder = try TestFolder()
            defer { folder.remove() }
            let (bytes, more) = (someBytes(50_000), someBytes(60_000, seed: 2))
            let record = Self.photo("one", in: zone)
            record["image"] = CKAsset(fileURL: try folder.file(bytes))
            record["images"] = [CKAsset(fileURL: try folder.file(bytes)), CKAsset(fileURL: try folder.file(more, "b"))]
            try await database.save(record)
            folder.remove()
            let configuration = CKOperation.Configuration()
            configuration.fetchesAssetFiles = false
            let described = try await database.configuredWith(configuration: configuration) {
                try await $0.record(for: record.recordID)
            }
            let list = try #require(described["images"] as? [CKAsset])
            #expect(list.allSatisfy { $0.fileURL == nil })
            var others = [Self.photo("two", in: zone), Self.photo("three", in: .default)]
            for other in others {
                other["image"] = described["image"] as? CKAsset
                other["images"] = [list[1], list[0]]
                try await database.save(other)
            }
            try await database.deleteRecord(withID: record.recordID)
            others = try await database.records(for: others.map(\.recordID)).values.map { try $0.get() }
            for other in others {
                #expect(try Self.bytes(other["image"] as? CKAsset) == bytes)
                #expect(try (other["images"] as? [CKAsset])?.map { try Self.bytes($0) } == [more, bytes])
            }
            // The record is gone, and so is what other records could have had from it.
            let late = Self.photo("late", in: zone)
            late["image"] = described["image"] as? CKAsset
            #expect(await failure { try await database.save(late) }?.code == .assetFileNotFound)
            let fourth = Self.photo("four", in: zone)
            fourth["cover"] = try #require(others.first)["image"] as? CKAsset
            try await database.save(fourth)
            let fetched = try await database.record(for: fourth.recordID)
            #expect(try Self.bytes(fetched["cover"] as? CKAsset) == bytes)
        }

        @Test("The public database has assets too, and a conflict's server record has no file")
        func publicConflict() async throws {
            let database = try await Cloud.container().publicCloudDatabase
            let folder = try TestFolder()
            defer { folder.remove() }
            let record = Self.photo("public-\(CloudNode.unique())", in: .default)
            record["image"] = CKAsset(fileURL: try folder.file(someBytes(1_000)))
            try await database.save(record)
            let stale = try await database.record(for: record.recordID)
            record["title"] = "a"
            try await database.save(record)
            stale["title"] = "b"
            let error = try #require(await failure { try await database.save(stale) })
            #expect(error.code == .serverRecordChanged)
            let asset = try #require(error.serverRecord?["image"] as? CKAsset)
            #expect(asset.fileURL == nil && asset.size == 1_000)
        }

        @Test("A stale save of a list that keeps a file is a conflict, or unknownItem; a forced one brings it back")
        func staleList() async throws {
            let (database, zone) = try await Cloud.zone()
            let folder = try TestFolder()
            defer { folder.remove() }
            let contents = [someBytes(1_000), someBytes(2_000, seed: 2), someBytes(3_000, seed: 3)]
            let files = try contents.enumerated().map { try folder.file($1, "\($0)") }
            let record = Self.photo("one", in: zone)
            record["images"] = [CKAsset(fileURL: files[0])]
            try await database.save(record)
            let stale = try await database.record(for: record.recordID)
            stale["images"] = try #require(stale["images"] as? [CKAsset]) + [CKAsset(fileURL: files[1])]
            record["images"] = [CKAsset(fileURL: files[2])]
            try await database.save(record)
            let error = try #require(await failure { try await database.save(stale) })
            #expect(error.code == .serverRecordChanged)
            #expect((error.serverRecord?["images"] as? [CKAsset])?.map(\.size) == [3_000])
            let forced = try await database.modifyRecords(saving: [stale], deleting: [], savePolicy: .allKeys)
            #expect(forced.saveResults[record.recordID]?.code == nil)
            let again = try await database.record(for: record.recordID)
            let images = try (again["images"] as? [CKAsset])?.map { try Self.bytes($0) }
            #expect(images == [contents[0], contents[1]])
            try await database.deleteRecord(withID: record.recordID)
            again["images"] = again["images"] as? [CKAsset]
            #expect(await failure { try await database.save(again) }?.code == .unknownItem)
        }

        @Test("A file that is larger than any may be is limitExceeded before it is sent")
        func tooLarge() async throws {
            let (database, zone) = try await Cloud.zone()
            let folder = try TestFolder()
            defer { folder.remove() }
            let record = Self.photo("one", in: zone)
            record["image"] = CKAsset(fileURL: try folder.hole(300_000_000))
            #expect(await failure { try await database.save(record) }?.code == .limitExceeded)
        }
    }
}
