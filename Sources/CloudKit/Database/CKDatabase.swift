public import Foundation

// @unchecked: immutable; what it is made of is Sendable.
/// One of a container's databases.
///
/// Calls may be made from any thread, any number at once. An async call ends with `operationCancelled` when its task is
/// cancelled; what it had sent may have been done. Where it has results of several items and some are there already, it
/// returns them, and the items that are left get the error one by one, as on Apple's systems. Completion handlers are
/// called on threads of the SDK.
///
/// What the server asks to be sent later, and what gets lost on the way, is sent again for as long as the
/// configuration's `patience` says; a change is done once however often it is sent.
public final class CKDatabase: NSObject, @unchecked Sendable {
    /// Which database of a container.
    public typealias Scope = CKDatabaseScope

    /// What calls and operations are made with, before they begin.
    let configured: DatabaseService
    /// What a call is made with that begins now.
    var service: DatabaseService { configured.begun() }

    init(_ service: DatabaseService) { configured = service }

    /// Which of the container's databases it is.
    public var databaseScope: CKDatabase.Scope { configured.scope }

    /// Where operations run that are added to databases and containers; they hold no thread while they wait.
    static let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "zonekeeper.cloudkit.operations"
        queue.maxConcurrentOperationCount = 16
        return queue
    }()

    /// Runs an operation on this database.
    public func add(_ operation: CKDatabaseOperation) {
        operation.database = self
        Self.queue.addOperation(operation)
    }

    /// Runs `body` with this database, whose calls are made as the configuration, or else the group's, says.
    public func configuredWith<Value>(
        configuration: CKOperation.Configuration? = nil, group: CKOperationGroup? = nil,
        body: (CKDatabase) throws -> Value
    ) rethrows -> Value {
        try body(configured(configuration, group))
    }

    /// Runs `body` with this database, whose calls are made as the configuration, or else the group's, says.
    public func configuredWith<Value>(
        configuration: CKOperation.Configuration? = nil, group: CKOperationGroup? = nil,
        body: (CKDatabase) async throws -> Value
    ) async rethrows -> Value {
        try await body(configured(configuration, group))
    }

    private func configured(_ configuration: CKOperation.Configuration?, _ group: CKOperationGroup?) -> CKDatabase {
        var service = configured
        service.times = CallTimes(configuration, group?.defaultConfiguration).filled(from: service.times)
        return CKDatabase(service)
    }

    /// The text for logs.
    public override var description: String { "<CKDatabase: \(databaseScope)>" }
}

extension CKDatabase {
    /// What a database's changes are made of.
    public enum DatabaseChange {
        /// A zone in which something changed.
        public struct Modification: Hashable, Sendable {
            /// The zone.
            public let zoneID: CKRecordZone.ID
        }

        /// A zone that is gone.
        public struct Deletion: Hashable, Sendable {
            /// The zone.
            public let zoneID: CKRecordZone.ID
            /// How it went.
            public let reason: Reason

            /// How a zone went.
            public enum Reason: Hashable, Sendable {
                /// An app deleted it.
                case deleted
                /// The user removed the app's data; there are no such settings here.
                case purged
                /// The user lost the keys of encrypted data; keys are the server's here, and are not lost so.
                case encryptedDataReset
            }
        }
    }

    /// What a zone's changes are made of.
    public enum RecordZoneChange {
        /// A record that was saved.
        public struct Modification: Hashable, Sendable {
            /// The record as it is now.
            public let record: CKRecord
        }

        /// A record that is gone.
        public struct Deletion: Hashable, Sendable {
            /// Its ID.
            public let recordID: CKRecord.ID
            /// Its type; empty, as the server keeps no type of what is gone.
            public let recordType: CKRecord.RecordType
        }
    }

    /// The zones that changed or went since a token, one page of them.
    /// - Parameters:
    ///   - changeToken: nil for the beginning.
    ///   - resultsLimit: the most zones; nil for the server's number.
    /// - Throws: `changeTokenExpired` where the token is no longer valid: begin again without one.
    public func databaseChanges(
        since changeToken: CKServerChangeToken?, resultsLimit: Int? = nil
    ) async throws -> (
        modifications: [DatabaseChange.Modification], deletions: [DatabaseChange.Deletion],
        changeToken: CKServerChangeToken, moreComing: Bool
    ) {
        let page = try await service.databaseChanges(since: changeToken, limit: resultsLimit)
        return (page.modifications, page.deletions, page.token, page.hasMore)
    }

    /// The records of a zone that changed or went since a token, one page of them.
    /// - Parameters:
    ///   - zoneID: a custom zone.
    ///   - changeToken: nil for the beginning.
    ///   - desiredKeys: the fields to fetch; nil for all.
    ///   - resultsLimit: the most records; nil for the server's number.
    /// - Throws: `changeTokenExpired` where the token is no longer valid: begin again without one.
    public func recordZoneChanges(
        inZoneWith zoneID: CKRecordZone.ID, since changeToken: CKServerChangeToken?,
        desiredKeys: [CKRecord.FieldKey]? = nil, resultsLimit: Int? = nil
    ) async throws -> (
        modificationResultsByID: [CKRecord.ID: Result<RecordZoneChange.Modification, any Error>],
        deletions: [RecordZoneChange.Deletion], changeToken: CKServerChangeToken, moreComing: Bool
    ) {
        let call = ZoneChangesCall(zone: zoneID, token: changeToken, limit: resultsLimit, desiredKeys: desiredKeys)
        let page = try await service.zoneChanges(call)
        var modifications: [CKRecord.ID: Result<RecordZoneChange.Modification, any Error>] = [:]
        var deletions: [RecordZoneChange.Deletion] = []
        for change in page.changes {
            switch change {
            case .changed(let id, let result):
                modifications[id] = result.map { RecordZoneChange.Modification(record: $0) }
            case .deleted(let id, let type):
                deletions.append(RecordZoneChange.Deletion(recordID: id, recordType: type))
            }
        }
        return (modifications, deletions, page.token, page.hasMore)
    }
}

extension CKDatabase {
    /// A zone.
    /// - Throws: `zoneNotFound` if there is none.
    public func recordZone(for recordZoneID: CKRecordZone.ID) async throws -> CKRecordZone {
        guard let result = try await service.zones([recordZoneID]).first else { throw CKError.unreadable("zone") }
        return try result.1.get()
    }

    /// Zones by their IDs, each with its zone or error.
    public func recordZones(
        for ids: [CKRecordZone.ID]
    ) async throws -> [CKRecordZone.ID: Result<CKRecordZone, any Error>] {
        Dictionary(try await service.zones(ids)) { first, _ in first }
    }

    /// All zones of the database, the default one among them.
    public func allRecordZones() async throws -> [CKRecordZone] { try await service.allZones() }

    /// Makes a zone; one that is there stays as it is.
    @discardableResult
    public func save(_ zone: CKRecordZone) async throws -> CKRecordZone {
        try await service.modifyZones(saving: [zone], deleting: []).savedItem()
    }

    /// Deletes a zone with all that is in it; one that is not there is no error.
    @discardableResult
    public func deleteRecordZone(withID recordZoneID: CKRecordZone.ID) async throws -> CKRecordZone.ID {
        try await service.modifyZones(saving: [], deleting: [recordZoneID]).deletedID()
    }

    /// Makes and deletes zones.
    /// - Throws: where nothing was done; errors of single zones are in the results.
    @discardableResult
    public func modifyRecordZones(
        saving recordZonesToSave: [CKRecordZone], deleting recordZoneIDsToDelete: [CKRecordZone.ID]
    ) async throws -> (
        saveResults: [CKRecordZone.ID: Result<CKRecordZone, any Error>],
        deleteResults: [CKRecordZone.ID: Result<Void, any Error>]
    ) {
        try await service.modifyZones(saving: recordZonesToSave, deleting: recordZoneIDsToDelete).byID()
    }
}

// The same with completion handlers.
extension CKDatabase {
    /// Fetches a zone.
    @preconcurrency
    public func fetch(
        withRecordZoneID recordZoneID: CKRecordZone.ID,
        completionHandler: @escaping @Sendable (CKRecordZone?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.recordZone(for: recordZoneID) }
    }

    /// Fetches zones by their IDs.
    @preconcurrency
    public func fetch(
        withRecordZoneIDs recordZoneIDs: [CKRecordZone.ID],
        completionHandler:
            @escaping @Sendable (Result<[CKRecordZone.ID: Result<CKRecordZone, any Error>], any Error>) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.recordZones(for: recordZoneIDs) }
    }

    /// Fetches all zones of the database.
    @preconcurrency
    public func fetchAllRecordZones(completionHandler: @escaping @Sendable ([CKRecordZone]?, (any Error)?) -> Void) {
        Callbacks.complete(completionHandler) { try await self.allRecordZones() }
    }

    /// Makes a zone; one that is there stays as it is.
    @preconcurrency
    public func save(
        _ zone: CKRecordZone, completionHandler: @escaping @Sendable (CKRecordZone?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.save(zone) }
    }

    /// Deletes a zone with all that is in it.
    @preconcurrency
    public func delete(
        withRecordZoneID zoneID: CKRecordZone.ID,
        completionHandler: @escaping @Sendable (CKRecordZone.ID?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.deleteRecordZone(withID: zoneID) }
    }

    /// Makes and deletes zones.
    @preconcurrency
    public func modifyRecordZones(
        saving recordZonesToSave: [CKRecordZone], deleting recordZoneIDsToDelete: [CKRecordZone.ID],
        completionHandler:
            @escaping @Sendable (
                Result<
                    (
                        saveResults: [CKRecordZone.ID: Result<CKRecordZone, any Error>],
                        deleteResults: [CKRecordZone.ID: Result<Void, any Error>]
                    ), any Error
                >
            ) -> Void
    ) {
        Callbacks.complete(completionHandler) {
            try await self.modifyRecordZones(saving: recordZonesToSave, deleting: recordZoneIDsToDelete)
        }
    }

    /// Fetches the zones that changed or went since a token, one page of them.
    @preconcurrency
    public func fetchDatabaseChanges(
        since changeToken: CKServerChangeToken?, resultsLimit: Int? = nil,
        completionHandler:
            @escaping @Sendable (
                Result<
                    (
                        modifications: [DatabaseChange.Modification], deletions: [DatabaseChange.Deletion],
                        changeToken: CKServerChangeToken, moreComing: Bool
                    ), any Error
                >
            ) -> Void
    ) {
        Callbacks.complete(completionHandler) {
            try await self.databaseChanges(since: changeToken, resultsLimit: resultsLimit)
        }
    }

    /// Fetches the records of a zone that changed or went since a token, one page of them.
    @preconcurrency
    public func fetchRecordZoneChanges(
        inZoneWith zoneID: CKRecordZone.ID, since changeToken: CKServerChangeToken?,
        desiredKeys: [CKRecord.FieldKey]? = nil, resultsLimit: Int? = nil,
        completionHandler:
            @escaping @Sendable (
                Result<
                    (
                        modificationResultsByID: [CKRecord.ID: Result<RecordZoneChange.Modification, any Error>],
                        deletions: [RecordZoneChange.Deletion], changeToken: CKServerChangeToken, moreComing: Bool
                    ), any Error
                >
            ) -> Void
    ) {
        Callbacks.complete(completionHandler) {
            try await self.recordZoneChanges(
                inZoneWith: zoneID, since: changeToken, desiredKeys: desiredKeys, resultsLimit: resultsLimit)
        }
    }
}
