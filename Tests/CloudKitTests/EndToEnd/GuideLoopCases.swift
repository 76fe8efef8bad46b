import Foundation
import Synchronization
import Testing

@testable import CloudKit

extension EndToEnd {
    @Suite("The sync loop of Apple's guide", .timeLimit(.minutes(10)))
    struct GuideLoopCases {
        @Test("A notification of a database subscription leads to the zones that changed, and these to the records")
        func loop() async throws {
            let (one, other) = try await Cloud.devices()
            let cache = GuideCache(other.privateCloudDatabase)
            await cache.subscribe()
            var notifications = other.notifications().makeAsyncIterator()
            /// Handles one notification as an app does that gets it by its remote notification.
            func handleNext() async throws {
                let delivered = try #require(try await notifications.next())
                let notification = try #require(
                    CKNotification(fromRemoteNotificationDictionary: delivered.userInfo))
                #expect(notification.subscriptionID == GuideCache.subscriptionID)
                #expect((notification as? CKDatabaseNotification)?.databaseScope == .private)
                await cache.fetchChanges()
            }
            let database = one.privateCloudDatabase
            let zone = try await database.save(CKRecordZone(zoneName: "zone")).zoneID
            try await database.save(note(1, in: zone))
            while cache.names.isEmpty { try await handleNext() }
            #expect(cache.names == ["note-1"])
            // What came is not fetched again, and what went is told.
            try await database.save(note(2, in: zone))
            try await database.deleteRecord(withID: note(1, in: zone).recordID)
            while cache.names != ["note-2"] { try await handleNext() }
            #expect(cache.fetched == ["note-1", "note-2"])
            let token = cache.databaseToken
            try await database.deleteRecordZone(withID: zone)
            while !cache.names.isEmpty { try await handleNext() }
            #expect(cache.databaseToken != token && cache.errors.isEmpty)
        }
    }
}

/// An app's copy of a database, kept by the operations of the guide.
private final class GuideCache: Sendable {
    static let subscriptionID = "private-changes"

    private struct State: Sendable {
        var databaseToken: CKServerChangeToken?
        var zoneTokens: [CKRecordZone.ID: CKServerChangeToken] = [:]
        var records: [CKRecord.ID: CKRecord] = [:]
        var fetched: [String] = []
        var errors: [String] = []
    }

    private let database: CKDatabase
    private let state = Mutex(State())
    private let queue = OperationQueue()

    init(_ database: CKDatabase) { self.database = database }

    var databaseToken: CKServerChangeToken? { state.withLock { $0.databaseToken } }
    var names: [String] { state.withLock { $0.records.keys.map(\.recordName).sorted() } }
    var fetched: [String] { state.withLock { $0.fetched } }
    var errors: [String] { state.withLock { $0.errors } }

    private func note<Value>(_ result: Result<Value, any Error>) {
        if case .failure(let error) = result { state.withLock { $0.errors.append("\(error)") } }
    }

    func subscribe() async {
        let subscription = CKDatabaseSubscription(subscriptionID: Self.subscriptionID)
        let info = CKSubscription.NotificationInfo()
        info.shouldSendContentAvailable = true
        subscription.notificationInfo = info
        let operation = CKModifySubscriptionsOperation(subscriptionsToSave: [subscription])
        operation.modifySubscriptionsResultBlock = { self.note($0) }
        operation.qualityOfService = .utility
        await run(operation)
    }

    private func run(_ operation: CKDatabaseOperation) async {
        operation.database = database
        await withCheckedContinuation { continuation in
            operation.completionBlock = { continuation.resume() }
            queue.addOperation(operation)
        }
    }

    /// Which zones changed; then the records of these.
    func fetchChanges() async {
        let changed = Mutex<[CKRecordZone.ID]>([])
        let operation = CKFetchDatabaseChangesOperation(previousServerChangeToken: databaseToken)
        operation.recordZoneWithIDChangedBlock = { zone in changed.withLock { $0.append(zone) } }
        operation.recordZoneWithIDWasDeletedBlock = { zone in
            self.state.withLock { state in
                state.records = state.records.filter { $0.key.zoneID != zone }
                state.zoneTokens[zone] = nil
            }
        }
        operation.changeTokenUpdatedBlock = { token in self.state.withLock { $0.databaseToken = token } }
        operation.fetchDatabaseChangesResultBlock = { result in
            self.note(result)
            if let end = try? result.get() { self.state.withLock { $0.databaseToken = end.serverChangeToken } }
        }
        await run(operation)
        let zones = changed.withLock { $0 }
        if !zones.isEmpty { await fetchRecords(of: zones) }
    }

    private func fetchRecords(of zones: [CKRecordZone.ID]) async {
        let tokens = state.withLock { $0.zoneTokens }
        let configurations = zones.map { zone in
            (zone, CKFetchRecordZoneChangesOperation.ZoneConfiguration(previousServerChangeToken: tokens[zone]))
        }
        let operation = CKFetchRecordZoneChangesOperation(
            recordZoneIDs: zones, configurationsByRecordZoneID: Dictionary(uniqueKeysWithValues: configurations))
        operation.recordWasChangedBlock = { id, result in
            self.note(result)
            self.state.withLock { state in
                state.records[id] = try? result.get()
                state.fetched.append(id.recordName)
            }
        }
        operation.recordWithIDWasDeletedBlock = { id, _ in self.state.withLock { $0.records[id] = nil } }
        operation.recordZoneChangeTokensUpdatedBlock = { zone, token, _ in
            self.state.withLock { $0.zoneTokens[zone] = token }
        }
        operation.recordZoneFetchResultBlock = { zone, result in
            self.note(result)
            if let end = try? result.get() { self.state.withLock { $0.zoneTokens[zone] = end.serverChangeToken } }
        }
        operation.fetchRecordZoneChangesResultBlock = { self.note($0) }
        await run(operation)
    }
}
