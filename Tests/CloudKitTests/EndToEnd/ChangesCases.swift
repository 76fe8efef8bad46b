import Foundation
import Testing

@testable import CloudKit

extension EndToEnd {
    @Suite("Zones and changes")
    struct ChangesCases {
        @Test("Zones are made, looked up, listed and deleted with all that is in them")
        func zones() async throws {
            let (database, zone) = try await Cloud.zone()
            let made = try await database.recordZone(for: zone)
            #expect(made.capabilities.isSuperset(of: [.fetchChanges, .atomic]))
            #expect(try await database.allRecordZones().map(\.zoneID.zoneName) == ["_defaultZone", "zone"])
            let record = try await database.save(note(1, in: zone))
            try await database.deleteRecordZone(withID: zone)
            #expect(await failure { try await database.recordZone(for: zone) }?.code == .zoneNotFound)
            // As the tests of Apple's sample of the sync engine want it, one that is gone can be deleted once more.
            try await database.deleteRecordZone(withID: zone)
            #expect(await failure { try await database.save(record) }?.code == .zoneNotFound)
            let both = try await database.modifyRecordZones(
                saving: [CKRecordZone(zoneName: "a")], deleting: [CKRecordZone.ID(zoneName: "none")])
            #expect(both.saveResults.values.first?.code == nil)
            #expect(both.deleteResults.values.allSatisfy { $0.code == nil } && both.deleteResults.count == 1)
        }

        @Test("A zone of 1,000 records comes page by page, with a token after each; later only what changed")
        func feed() async throws {
            let (database, zone) = try await Cloud.zone()
            for start in stride(from: 0, to: 1_000, by: 200) {
                try await database.modifyRecords(
                    saving: (start..<start + 200).map { note($0, in: zone) }, deleting: [])
            }
            let operation = CKFetchRecordZoneChangesOperation(recordZoneIDs: [zone])
            let (changed, steps, end) = (Log<String>(), Log<CKServerChangeToken?>(), Log<CKServerChangeToken>())
            operation.recordWasChangedBlock = { id, _ in changed.add(id.recordName) }
            operation.recordZoneChangeTokensUpdatedBlock = { _, token, _ in steps.add(token) }
            operation.recordZoneFetchResultBlock = { _, result in
                if let last = try? result.get(), !last.moreComing { end.add(last.serverChangeToken) }
            }
            await run(operation, on: database)
            #expect(Set(changed.all).count == 1_000 && changed.all.count == 1_000)
            #expect(steps.all.count >= 4)
            let token = try #require(end.all.first)
            try await database.deleteRecord(withID: CKRecord.ID(recordName: "note-5", zoneID: zone))
            try await database.save(note(5_000, in: zone))
            let later = try await database.recordZoneChanges(inZoneWith: zone, since: token)
            #expect(later.modificationResultsByID.keys.map(\.recordName) == ["note-5000"])
            #expect(later.deletions.map(\.recordID.recordName) == ["note-5"])
            #expect(!later.moreComing)
        }

        @Test("A walk of several zones tells each zone's own end, and the error of one that is gone")
        func severalZones() async throws {
            let (database, zone) = try await Cloud.zone()
            let (other, gone) = (CKRecordZone.ID(zoneName: "other"), CKRecordZone.ID(zoneName: "gone"))
            try await database.save(CKRecordZone(zoneID: other))
            try await database.modifyRecords(saving: [note(1, in: zone), note(2, in: other)], deleting: [])
            let configuration = CKFetchRecordZoneChangesOperation.ZoneConfiguration(
                previousServerChangeToken: nil, resultsLimit: 1, desiredKeys: [])
            let operation = CKFetchRecordZoneChangesOperation(
                recordZoneIDs: [zone, gone, other], configurationsByRecordZoneID: [zone: configuration])
            let log = Log<String>()
            operation.recordChangedBlock = { log.add("\($0.recordID.recordName) \($0.allKeys().count)") }
            operation.recordZoneFetchResultBlock = { zone, result in
                log.add("\(zone.zoneName) \(result.code == .zoneNotFound)")
            }
            operation.fetchRecordZoneChangesResultBlock = { log.add("end \($0.code == nil)") }
            await run(operation, on: database)
            #expect(log.all.last == "end true")
            #expect(log.all.sorted() == ["end true", "gone true", "note-1 0", "note-2 2", "other false", "zone false"])
        }

        @Test("The database tells which zones changed and which went")
        func database() async throws {
            let (database, zone) = try await Cloud.zone()
            let first = try await database.databaseChanges(since: nil)
            #expect(first.modifications.map(\.zoneID) == [zone])
            try await database.save(CKRecordZone(zoneName: "second"))
            try await database.deleteRecordZone(withID: zone)
            let operation = CKFetchDatabaseChangesOperation(previousServerChangeToken: first.changeToken)
            let log = Log<String>()
            operation.recordZoneWithIDChangedBlock = { log.add("changed \($0.zoneName)") }
            operation.recordZoneWithIDWasDeletedBlock = { log.add("deleted \($0.zoneName)") }
            operation.fetchDatabaseChangesResultBlock = { log.add("end \((try? $0.get())?.moreComing == false)") }
            await run(operation, on: database)
            #expect(log.all.sorted() == ["changed second", "deleted zone", "end true"])
        }

        @Test("A token that is none any more is told, so that the app begins anew")
        func expired() async throws {
            let (database, zone) = try await Cloud.zone()
            let token = try await database.recordZoneChanges(inZoneWith: zone, since: nil).changeToken
            try await database.deleteRecordZone(withID: zone)
            try await database.save(CKRecordZone(zoneID: zone))
            let error = await failure { try await database.recordZoneChanges(inZoneWith: zone, since: token) }
            #expect(error?.code == .changeTokenExpired)
        }
    }
}
