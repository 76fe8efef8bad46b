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
