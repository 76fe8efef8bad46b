import CoreLocation
import Foundation
import Testing

@testable import CloudKit

extension EndToEnd {
    @Suite("Saving, fetching and deleting records")
    struct RecordCases {
        @Test("A record comes back with every kind of value, and system fields")
        func values() async throws {
            let (database, zone) = try await Cloud.zone()
            let other = try await database.save(note(1, in: zone))
            let record = CKRecord(recordType: "Everything", recordID: CKRecord.ID(recordName: "one", zoneID: zone))
            let date = Date(timeIntervalSince1970: 1_700_000_000.123)
            record["text"] = "text \u{1F600} \"quoted\""
            record["number"] = Int64.min
            record["ratio"] = 2.5
            record["whole"] = 3.0
            record["flag"] = true
            record["date"] = date
            record["data"] = Data([0, 1, 255])
            record["place"] = CLLocation(latitude: 52.5, longitude: -13.25)
            record["link"] = CKRecord.Reference(record: other, action: .deleteSelf)
            record["texts"] = ["a", "b"]
            record["numbers"] = [1, 2]
            record.setParent(other)
            let saved = try await database.save(record)
            #expect(saved === record)
            #expect(record.changedKeys().isEmpty)
            #expect(record.recordChangeTag != nil && record.creationDate != nil)
            let read = try await database.record(for: record.recordID)
            #expect(read["text"] as? String == "text \u{1F600} \"quoted\"")
            #expect(read["number"] as? Int64 == .min)
            #expect(read["ratio"] as? Double == 2.5 && read["whole"] as? Double == 3)
            #expect(read["flag"] as? Bool == true && read["flag"] as? Int == 1)
            #expect(read["date"] as? Date == date)
            #expect(read["data"] as? Data == Data([0, 1, 255]))
            #expect((read["place"] as? CLLocation)?.coordinate.longitude == -13.25)
            #expect(
                read["link"] as? CKRecord.Reference == CKRecord.Reference(recordID: other.recordID, action: .deleteSelf)
            )
            #expect(read["texts"] as? [String] == ["a", "b"])
            #expect((read["numbers"] as? [NSNumber])?.map(\.intValue) == [1, 2])
            #expect(read.parent?.recordID == other.recordID)
            #expect(read.recordChangeTag == record.recordChangeTag)
            let user = try await database.service.userRecordID()
            #expect(read.creatorUserRecordID == user)
            try await database.deleteRecord(withID: other.recordID)
            #expect(await failure { try await database.record(for: record.recordID) }?.code == .unknownItem)
        }

        @Test("A changed record is saved with its new values, a cleared field is gone, and encrypted values come back")
        func update() async throws {
            let (database, zone) = try await Cloud.zone()
            let record = try await database.save(note(1, in: zone, text: "first"))
            let tag = record.recordChangeTag
            record["text"] = nil
            record["number"] = 2
            try await database.save(record)
            #expect(record.recordChangeTag != tag)
            let read = try await database.record(for: record.recordID)
            #expect(read["text"] == nil && read["number"] as? Int == 2)
            let sealed = CKRecord(recordType: "Sealed", recordID: CKRecord.ID(zoneID: zone))
            sealed.encryptedValues["secret"] = "hush"
            try await database.save(sealed)
            let opened = try await database.record(for: sealed.recordID)
            #expect(opened.encryptedValues["secret"] as? String == "hush" && opened["secret"] == nil)
        }

        @Test(
            "A save of an older version fails with the server's, the client's and the ancestor's record; merging succeeds"
        )
        func conflict() async throws {
            let (database, zone) = try await Cloud.zone()
            let mine = try await database.save(note(1, in: zone, text: "base"))
            let theirs = try await database.record(for: mine.recordID)
            theirs["text"] = "theirs"
            try await database.save(theirs)
            mine["text"] = "mine"
            let error = try #require(await failure { try await database.save(mine) })
            #expect(error.code == .serverRecordChanged)
            #expect(error.serverRecord?["text"] as? String == "theirs")
            #expect(error.clientRecord?["text"] as? String == "mine")
            #expect(error.ancestorRecord?["text"] as? String == "base")
            let merged = try #require(error.serverRecord)
            merged["text"] = "both"
            try await database.save(merged)
            #expect(try await database.record(for: mine.recordID)["text"] as? String == "both")
            // A new record of a name that is taken is told the same way; it has no ancestor.
            let taken = try #require(await failure { try await database.save(note(1, in: zone)) })
            #expect(taken.code == .serverRecordChanged)
            #expect(taken.serverRecord?["text"] as? String == "both" && taken.ancestorRecord == nil)
        }

        @Test("Changed keys, or all, are written over another version where the policy says so")
        func policies() async throws {
            let (database, zone) = try await Cloud.zone()
            let mine = try await database.save(note(1, in: zone, text: "base"))
            let theirs = try await database.record(for: mine.recordID)
            theirs["number"] = 7
            try await database.save(theirs)
            mine["text"] = "mine"
            let changed = try await database.modifyRecords(saving: [mine], deleting: [], savePolicy: .changedKeys)
            #expect(try changed.saveResults[mine.recordID]?.get()["number"] as? Int == 7)
            #expect(mine["number"] as? Int == 7 && mine["text"] as? String == "mine")
            let old = note(1, in: zone, text: "old")
            let all = try await database.modifyRecords(saving: [old], deleting: [], savePolicy: .allKeys)
            #expect(try all.saveResults[old.recordID]?.get().recordChangeTag != mine.recordChangeTag)
            #expect(try await database.record(for: mine.recordID)["number"] as? Int == 1)
        }

        @Test("An atomic batch is saved wholly or not at all; the culprit has its own error, the others say so")
        func atomic() async throws {
            let (database, zone) = try await Cloud.zone()
            try await database.save(note(1, in: zone))
            let batch = [note(2, in: zone), note(1, in: zone), note(3, in: zone)]
            let results = try await database.modifyRecords(saving: batch, deleting: []).saveResults
            #expect(
                batch.map { results[$0.recordID]?.code } == [
                    .batchRequestFailed, .serverRecordChanged, .batchRequestFailed,
                ])
            #expect(await failure { try await database.record(for: batch[0].recordID) }?.code == .unknownItem)
            #expect(batch[0].changedKeys() == ["number", "text"])
            let apart = try await database.modifyRecords(saving: batch, deleting: [], atomically: false).saveResults
            #expect(batch.map { apart[$0.recordID]?.code } == [nil, .serverRecordChanged, nil])
            #expect(try await database.record(for: batch[2].recordID)["number"] as? Int == 3)
        }

        @Test("Records of several zones go together, and those that are not there are errors of their own")
        func partialFailure() async throws {
            let (database, zone) = try await Cloud.zone()
            let gone = CKRecordZone.ID(zoneName: "gone")
            let batch = [note(1), note(2, in: zone), note(3, in: gone)]
            let (saved, _) = try await database.modifyRecords(saving: batch, deleting: [])
            #expect(batch.map { saved[$0.recordID]?.code } == [nil, nil, .zoneNotFound])
            let missing = CKRecord.ID(recordName: "missing", zoneID: zone)
            let found = try await database.records(for: batch.map(\.recordID) + [missing], desiredKeys: ["number"])
            #expect(found[batch[1].recordID].flatMap { try? $0.get() }?.allKeys() == ["number"])
            #expect(found[missing]?.code == .unknownItem)
            #expect(found[batch[2].recordID]?.code == .zoneNotFound)
            let (_, deleted) = try await database.modifyRecords(saving: [], deleting: [batch[0].recordID, missing])
            #expect(deleted.values.allSatisfy { $0.code == nil })
        }

        @Test("The older blocks get a partial failure with the errors of the items; the newer ones success")
        func olderBlocks() async throws {
            let (database, zone) = try await Cloud.zone()
            try await database.save(note(1, in: zone))
            let operation = CKModifyRecordsOperation(
                recordsToSave: [note(1, in: zone), note(2, in: zone)], recordIDsToDelete: nil)
            operation.isAtomic = false
            let log = Log<String>()
            operation.perRecordSaveBlock = { id, result in log.add("\(id.recordName) \(result.code == nil)") }
            operation.modifyRecordsResultBlock = { result in log.add("result \(result.code == nil)") }
            operation.modifyRecordsCompletionBlock = { saved, deleted, error in
                let errors = (error as? CKError)?.partialErrorsByItemID ?? [:]
                let code = errors[CKRecord.ID(recordName: "note-1", zoneID: zone)] as? CKError
                log.add(
                    "older \(saved?.count ?? 0) \((error as? CKError)?.code == .partialFailure) \(code?.code == .serverRecordChanged)"
                )
            }
            await run(operation, on: database)
            #expect(log.all == ["note-1 false", "note-2 true", "result true", "older 1 true true"])
        }

        @Test("What is too large, and too many records, are refused with words")
        func refusals() async throws {
            let (database, zone) = try await Cloud.zone()
            let large = note(2, in: zone)
            large["body"] = Data(count: 1_100_000)
            #expect(await failure { try await database.save(large) }?.code == .limitExceeded)
            let many = (0..<401).map { note($0, in: zone) }
            let tooMany = await failure { try await database.modifyRecords(saving: many, deleting: []) }
            #expect(tooMany?.code == .limitExceeded && tooMany?.localizedDescription.contains("400") == true)
        }
    }
}
