import Foundation
import Synchronization
import Testing

@testable import CloudKit

extension EndToEnd {
    @Suite("Operations and tasks")
    struct OperationCases {
        @Test("An operation waits for those it depends on, in the SDK's queue and in an app's own")
        func dependencies() async throws {
            let (database, zone) = try await Cloud.zone()
            for isOwnQueue in [false, true] {
                let name = isOwnQueue ? 1 : 2
                let save = CKModifyRecordsOperation(recordsToSave: [note(name, in: zone)])
                let fetch = CKFetchRecordsOperation(recordIDs: [CKRecord.ID(recordName: "note-\(name)", zoneID: zone)])
                let log = Log<String>()
                save.modifyRecordsResultBlock = { _ in log.add("saved") }
                fetch.perRecordResultBlock = { _, result in log.add("fetched \(result.code == nil)") }
                fetch.addDependency(save)
                await withCheckedContinuation { continuation in
                    fetch.completionBlock = { continuation.resume() }
                    if isOwnQueue {
                        let queue = OperationQueue()
                        for operation in [fetch, save] as [CKDatabaseOperation] {
                            operation.database = database
                            queue.addOperation(operation)
                        }
                    } else {
                        database.add(fetch)
                        database.add(save)
                    }
                }
                #expect(log.all == ["saved", "fetched true"])
                #expect(save.isFinished && !save.isExecuting && fetch.isFinished)
            }
        }

        @Test("An operation that was cancelled before it began sends nothing and ends with operationCancelled")
        func cancelledBefore() async throws {
            let (database, zone) = try await Cloud.zone()
            let save = CKModifyRecordsOperation(recordsToSave: [note(1, in: zone)])
            let log = Log<CKError.Code?>()
            save.modifyRecordsResultBlock = { log.add($0.code) }
            save.cancel()
            await run(save, on: database)
            #expect(log.all == [.operationCancelled])
            #expect(save.isCancelled && save.isFinished)
            let id = CKRecord.ID(recordName: "note-1", zoneID: zone)
            #expect(await failure { try await database.record(for: id) }?.code == .unknownItem)
        }

        @Test("An operation that is cancelled on its way ends after the page that it was at")
        func cancelledOnItsWay() async throws {
            let (database, zone) = try await Cloud.zone()
            try await database.modifyRecords(saving: (0..<30).map { note($0, in: zone) }, deleting: [])
            let configuration = CKFetchRecordZoneChangesOperation.ZoneConfiguration(resultsLimit: 10)
            let operation = CKFetchRecordZoneChangesOperation(
                recordZoneIDs: [zone], configurationsByRecordZoneID: [zone: configuration])
            let (log, count) = (Log<CKError.Code?>(), Log<Int>())
            operation.recordWasChangedBlock = { _, _ in count.add(1) }
            operation.recordZoneChangeTokensUpdatedBlock = { [unowned operation] _, _, _ in operation.cancel() }
            operation.recordZoneFetchResultBlock = { _, result in log.add(result.code) }
            operation.fetchRecordZoneChangesResultBlock = { log.add($0.code) }
            await run(operation, on: database)
            #expect(count.all.count == 10)
            #expect(log.all == [.operationCancelled, .operationCancelled])
        }

        @Test("A cancelled task ends its call with operationCancelled")
        func cancelledTask() async throws {
            let (database, zone) = try await Cloud.zone()
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await failure { try await database.save(note(1, in: zone)) }?.code
            }
            #expect(await task.value == .operationCancelled)
        }

        @Test("Completion handlers are called with what async calls return")
        func handlers() async throws {
            let (database, zone) = try await Cloud.zone()
            let saved = await withCheckedContinuation { continuation in
                database.save(note(1, in: zone)) { continuation.resume(returning: ($0?.recordID, $1 == nil)) }
            }
            #expect(saved.0?.recordName == "note-1" && saved.1)
            let query = CKQuery(recordType: "Note", predicate: NSPredicate(value: true))
            let found = await withCheckedContinuation { continuation in
                database.perform(query, inZoneWith: zone) { continuation.resume(returning: ($0?.count, $1 == nil)) }
            }
            #expect(found.0 == 1 && found.1)
            let deleted = await withCheckedContinuation { continuation in
                database.delete(withRecordID: CKRecord.ID(recordName: "note-1", zoneID: zone)) { id, error in
                    continuation.resume(returning: (id?.recordName, error == nil))
                }
            }
            #expect(deleted.0 == "note-1" && deleted.1)
            let missing = await withCheckedContinuation { continuation in
                database.fetch(withRecordID: CKRecord.ID(recordName: "note-1", zoneID: zone)) { record, error in
                    continuation.resume(returning: (record == nil, (error as? CKError)?.code))
                }
            }
            #expect(missing.0 && missing.1 == .unknownItem)
        }

        @Test("The current user's record is fetched from the public database, whatever the operation's own is")
        func currentUser() async throws {
            let container = try await Cloud.container()
            let operation = CKFetchRecordsOperation.fetchCurrentUserRecordOperation()
            let log = Log<String>()
            operation.perRecordResultBlock = { id, result in
                log.add("\(id.recordName) \((try? result.get())?.recordType ?? "")")
            }
            await run(operation, on: container.privateCloudDatabase)
            #expect(log.all == ["\(try await container.userRecordID().recordName) Users"])
        }

        @Test("Edits made while a save is under way stay, and stay changed")
        func laterEdits() async throws {
            let (database, zone) = try await Cloud.zone()
            let record = note(1, in: zone, text: "first")
            let operation = CKModifyRecordsOperation(recordsToSave: [record])
            let seen = Log<[String]>()
            operation.perRecordSaveBlock = { _, _ in
                seen.add(record.changedKeys())
                record["text"] = "second"
            }
            await run(operation, on: database)
            #expect(seen.all == [[]])
            #expect(record.changedKeys() == ["text"])
            try await database.save(record)
            #expect(try await database.record(for: record.recordID)["text"] as? String == "second")
        }
    }
}
