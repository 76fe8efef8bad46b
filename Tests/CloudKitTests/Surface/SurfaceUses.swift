import CloudKit

/// Uses of every member of ``SurfaceList``, with explicit types: where a signature or a default differs, this does not
/// compile. Nothing of it is run.
enum SurfaceUses {
    typealias Results<ID: Hashable, Value> = [ID: Result<Value, any Error>]
    typealias Page = (matchResults: [(CKRecord.ID, Result<CKRecord, any Error>)], queryCursor: CKQueryOperation.Cursor?)

    static func container(_ container: CKContainer) async throws {
        let _: CKContainer = CKContainer.default()
        let _: CKContainer = CKContainer(identifier: "iCloud.com.example.app")
        let _: String? = container.containerIdentifier
        let _: [CKDatabase] = [
            container.publicCloudDatabase, container.privateCloudDatabase, container.sharedCloudDatabase,
        ]
        let _: (CKDatabase.Scope) -> CKDatabase = container.database(with:)
        let _: CKAccountStatus = try await container.accountStatus()
        container.accountStatus { (_: CKAccountStatus, _: (any Error)?) in }
        let _: CKRecord.ID = try await container.userRecordID()
        container.fetchUserRecordID { (_: CKRecord.ID?, _: (any Error)?) in }
        let _: (CKOperation) -> Void = container.add
        let _: Int = try container.configuredWith { (_: CKContainer) throws -> Int in 1 }
        let _: Int = try await container.configuredWith(configuration: nil, group: nil) {
            (container: CKContainer) async throws -> Int in
            _ = try await container.accountStatus()
            return 1
        }
        let _: [String] = [CKCurrentUserDefaultName, CKRecordNameZoneWideShare]
        let _: Notification.Name = .CKAccountChanged
    }

    static func sharing(_ container: CKContainer, _ metadata: CKShare.Metadata, _ url: URL) async throws {
        let _: CKShare.Metadata = try await container.shareMetadata(for: url)
        container.fetchShareMetadata(with: url) { (_: CKShare.Metadata?, _: (any Error)?) in }
        let _: Results<URL, CKShare.Metadata> = try await container.shareMetadatas(for: [url])
        container.fetchShareMetadatas(for: [url]) { (_: Result<Results<URL, CKShare.Metadata>, any Error>) in }
        let _: CKShare = try await container.accept(metadata)
        container.accept(metadata) { (_: CKShare?, _: (any Error)?) in }
        let _: Results<CKShare.Metadata, CKShare> = try await container.accept([metadata])
        container.accept([metadata]) { (_: Result<Results<CKShare.Metadata, CKShare>, any Error>) in }
        let id = CKRecord.ID(recordName: "x")
        let _: CKShare.Participant = try await container.shareParticipant(forEmailAddress: "a@example.com")
        let _: CKShare.Participant = try await container.shareParticipant(forPhoneNumber: "1")
        let _: CKShare.Participant = try await container.shareParticipant(forUserRecordID: id)
        container.fetchShareParticipant(withEmailAddress: "") { (_: CKShare.Participant?, _: (any Error)?) in }
        container.fetchShareParticipant(withPhoneNumber: "") { (_: CKShare.Participant?, _: (any Error)?) in }
        container.fetchShareParticipant(withUserRecordID: id) { (_: CKShare.Participant?, _: (any Error)?) in }
        let _: Results<String, CKShare.Participant> = try await container.shareParticipants(forEmailAddresses: [""])
        let _: Results<String, CKShare.Participant> = try await container.shareParticipants(forPhoneNumbers: [""])
        let _: Results<CKRecord.ID, CKShare.Participant> = try await container.shareParticipants(forUserRecordIDs: [id])
    }

    static func database(_ database: CKDatabase, _ query: CKQuery, _ cursor: CKQueryOperation.Cursor) async throws {
        let _: CKDatabase.Scope = database.databaseScope
        let _: (CKDatabaseOperation) -> Void = database.add
        let _: Int = try database.configuredWith { (_: CKDatabase) throws -> Int in 1 }
        let zone = CKRecordZone.ID.default
        let _: Page = try await database.records(matching: query)
        let _: Page = try await database.records(
            matching: query, inZoneWith: nil, desiredKeys: nil, resultsLimit: CKQueryOperation.maximumResults)
        let _: Page = try await database.records(continuingMatchFrom: cursor)
        let _: Page = try await database.records(continuingMatchFrom: cursor, desiredKeys: ["a"], resultsLimit: 1)
        database.fetch(withQuery: query) { (_: Result<Page, any Error>) in }
        database.fetch(withQuery: query, inZoneWith: zone, desiredKeys: [], resultsLimit: 1) { _ in }
        database.fetch(withCursor: cursor) { (_: Result<Page, any Error>) in }
        database.fetch(withCursor: cursor, desiredKeys: nil, resultsLimit: 1) { _ in }
        let perform: (CKQuery, CKRecordZone.ID?, @escaping @Sendable ([CKRecord]?, (any Error)?) -> Void) -> Void =
            database.perform(_:inZoneWith:completionHandler:)
        perform(query, nil) { _, _ in }
    }

    static func records(_ database: CKDatabase, _ record: CKRecord, _ id: CKRecord.ID) async throws {
        let _: Results<CKRecord.ID, CKRecord> = try await database.records(for: [id])
        let _: Results<CKRecord.ID, CKRecord> = try await database.records(for: [id], desiredKeys: ["a"])
        let _: CKRecord = try await database.record(for: id)
        let _: CKRecord = try await database.save(record)
        try await database.save(record)
        try await database.deleteRecord(withID: id)
        let _: CKRecord.ID = try await database.deleteRecord(withID: id)
        let _: (saveResults: Results<CKRecord.ID, CKRecord>, deleteResults: Results<CKRecord.ID, Void>) =
            try await database.modifyRecords(saving: [record], deleting: [id])
        _ = try await database.modifyRecords(saving: [], deleting: [], savePolicy: .changedKeys, atomically: false)
        database.save(record) { (_: CKRecord?, _: (any Error)?) in }
        database.fetch(withRecordID: id) { (_: CKRecord?, _: (any Error)?) in }
        database.delete(withRecordID: id) { (_: CKRecord.ID?, _: (any Error)?) in }
        database.fetch(withRecordIDs: [id]) { (_: Result<Results<CKRecord.ID, CKRecord>, any Error>) in }
        database.modifyRecords(saving: [record], deleting: [id]) {
            (
                _: Result<
                    (saveResults: Results<CKRecord.ID, CKRecord>, deleteResults: Results<CKRecord.ID, Void>), any Error
                >
            ) in
        }
    }

    static func zones(_ database: CKDatabase, _ zone: CKRecordZone, _ token: CKServerChangeToken?) async throws {
        let id: CKRecordZone.ID = zone.zoneID
        let _: CKRecordZone = try await database.save(zone)
        try await database.save(zone)
        try await database.deleteRecordZone(withID: id)
        let _: CKRecordZone = try await database.recordZone(for: id)
        let _: Results<CKRecordZone.ID, CKRecordZone> = try await database.recordZones(for: [id])
        let _: [CKRecordZone] = try await database.allRecordZones()
        let _: (saveResults: Results<CKRecordZone.ID, CKRecordZone>, deleteResults: Results<CKRecordZone.ID, Void>) =
            try await database.modifyRecordZones(saving: [zone], deleting: [id])
        database.save(zone) { (_: CKRecordZone?, _: (any Error)?) in }
        database.delete(withRecordZoneID: id) { (_: CKRecordZone.ID?, _: (any Error)?) in }
        database.fetch(withRecordZoneID: id) { (_: CKRecordZone?, _: (any Error)?) in }
        database.fetch(withRecordZoneIDs: [id]) { (_: Result<Results<CKRecordZone.ID, CKRecordZone>, any Error>) in }
        database.fetchAllRecordZones { (_: [CKRecordZone]?, _: (any Error)?) in }
        let changes = try await database.recordZoneChanges(inZoneWith: id, since: token)
        let _:
            (
                modificationResultsByID: Results<CKRecord.ID, CKDatabase.RecordZoneChange.Modification>,
                deletions: [CKDatabase.RecordZoneChange.Deletion], changeToken: CKServerChangeToken, moreComing: Bool
            ) = changes
        let _: [(CKRecord.ID, CKRecord.RecordType)] = changes.deletions.map { ($0.recordID, $0.recordType) }
        let all = try await database.databaseChanges(since: token)
        let _:
            (
                modifications: [CKDatabase.DatabaseChange.Modification],
                deletions: [CKDatabase.DatabaseChange.Deletion],
                changeToken: CKServerChangeToken, moreComing: Bool
            ) = all
        let _: [CKRecordZone.ID] = all.modifications.map(\.zoneID) + all.deletions.map(\.zoneID)
        let _: [any (Hashable & Sendable)] = all.modifications + all.deletions + changes.deletions
        let _: any (Sendable & NSSecureCoding) = all.changeToken
        for deletion in all.deletions {
            switch deletion.reason {
            case .deleted, .purged, .encryptedDataReset: break
            @unknown default: break
            }
        }
        database.fetchRecordZoneChanges(inZoneWith: id, since: token) { (result) in _ = try? result.get().changeToken }
        database.fetchDatabaseChanges(since: token, resultsLimit: 1) { (result) in _ = try? result.get().moreComing }
    }
}
