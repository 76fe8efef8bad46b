public import Foundation
import RecordModel

/// Fetches records by their IDs, of any number of zones.
open class CKFetchRecordsOperation: CKDatabaseOperation, @unchecked Sendable {
    /// The records to fetch.
    @CKGuarded public var recordIDs: [CKRecord.ID]? = nil
    /// The fields to fetch; nil for all.
    @CKGuarded public var desiredKeys: [CKRecord.FieldKey]? = nil
    /// Called with the part of a record's assets that is there, each percent at most once, and with 1 when the record
    /// is there.
    @preconcurrency @CKGuarded public var perRecordProgressBlock: (@Sendable (CKRecord.ID, Double) -> Void)? = nil
    /// Called for each record.
    @preconcurrency @CKGuarded
    public var perRecordResultBlock: (@Sendable (CKRecord.ID, Result<CKRecord, any Error>) -> Void)? = nil
    /// Called once, at the end. Records that are not there are no failure of the operation.
    @preconcurrency @CKGuarded public var fetchRecordsResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called for each record; the older form of `perRecordResultBlock`.
    @preconcurrency @CKGuarded
    public var perRecordCompletionBlock: (@Sendable (CKRecord?, CKRecord.ID?, (any Error)?) -> Void)? = nil
    /// Called once, at the end, with `partialFailure` where records failed; the older form of
    /// `fetchRecordsResultBlock`.
    @preconcurrency @CKGuarded
    public var fetchRecordsCompletionBlock: (@Sendable ([CKRecord.ID: CKRecord]?, (any Error)?) -> Void)? = nil

    /// Whether it fetches the record of the user who is signed in, whatever else is set.
    @CKGuarded var isForCurrentUser = false

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation that fetches these records.
    public convenience init(recordIDs: [CKRecord.ID]) {
        self.init()
        self.recordIDs = recordIDs
    }

    /// An operation that fetches the record of the user who is signed in; it runs on the public database.
    public class func fetchCurrentUserRecordOperation() -> Self {
        let operation = CKFetchRecordsOperation()
        operation.isForCurrentUser = true
        guard let operation = operation as? Self else {
            preconditionFailure("a subclass of CKFetchRecordsOperation has to make this operation itself")
        }
        return operation
    }

    override func execute() async {
        var records: [CKRecord.ID: CKRecord] = [:]
        var errors: [AnyHashable: any Error] = [:]
        let callbacks = Callbacks.Serial()
        let progress = perRecordProgressBlock.map { block in
            { @Sendable (id: CKRecord.ID, part: Double) in callbacks.post { block(id, part) } }
        }
        let work = await outcome { () async throws(CKError) in
            var service = service
            var ids = recordIDs ?? []
            if isForCurrentUser {
                service.scope = .public
                ids = [try await service.userRecordID()]
            }
            try await service.fetch(ids, desiredKeys: desiredKeys, progress: progress) { results in
                for (id, result) in results {
                    records[id] = try? result.get()
                    errors[id] = result.failure
                }
                await callbacks.run { [self] in for (id, result) in results { tell(id, result) } }
            }
        }
        let result = ending(of: work)
        let error = result.failure ?? CKError.partialFailure(errors)
        await callbacks.run { [self, records] in
            fetchRecordsResultBlock?(result)
            fetchRecordsCompletionBlock?(records, error)
        }
    }

    private func tell(_ id: CKRecord.ID, _ result: Result<CKRecord, any Error>) {
        if case .success = result { perRecordProgressBlock?(id, 1) }
        perRecordResultBlock?(id, result)
        perRecordCompletionBlock?(try? result.get(), id, result.failure)
    }
}

/// Saves and deletes records, at most 400, of any number of zones.
///
/// What is saved are the records as they are when the operation starts; each instance takes the server's state over
/// when its save succeeded, and keeps edits made meanwhile.
open class CKModifyRecordsOperation: CKDatabaseOperation, @unchecked Sendable {
    /// What to do where the server's version of a record is not the one that the record was fetched as.
    public enum RecordSavePolicy: Int, Hashable, Sendable {
        /// Fail with `serverRecordChanged`.
        case ifServerRecordUnchanged = 0
        /// Write the changed keys over the server's.
        case changedKeys = 1
        /// Write all keys over the server's; keys that the record does not have stay.
        case allKeys = 2
    }

    /// The records to save.
    @CKGuarded public var recordsToSave: [CKRecord]? = nil
    /// The records to delete, whatever their version.
    @CKGuarded public var recordIDsToDelete: [CKRecord.ID]? = nil
    /// What to do where the server has another version.
    @CKGuarded public var savePolicy: RecordSavePolicy = .ifServerRecordUnchanged
    /// Whether the records of each custom zone are saved and deleted wholly or not at all; elsewhere each stands alone.
    /// At most 200 of one zone can go so, where CloudKit has 400: more fail with `limitExceeded`.
    @CKGuarded public var isAtomic = true
    /// Kept and shown; the server does not hand it to others.
    @CKGuarded public var clientChangeTokenData: Data? = nil
    /// Called with the part of a record's assets that was sent, each percent at most once, and with 1 when the record
    /// was saved.
    @preconcurrency @CKGuarded public var perRecordProgressBlock: (@Sendable (CKRecord, Double) -> Void)? = nil
    /// Called for each record to save.
    @preconcurrency @CKGuarded
    public var perRecordSaveBlock: (@Sendable (CKRecord.ID, Result<CKRecord, any Error>) -> Void)? = nil
    /// Called for each record to delete.
    @preconcurrency @CKGuarded
    public var perRecordDeleteBlock: (@Sendable (CKRecord.ID, Result<Void, any Error>) -> Void)? = nil
    /// Called once, at the end. Records that failed are no failure of the operation.
    @preconcurrency @CKGuarded public var modifyRecordsResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called for each record to save; the older form of `perRecordSaveBlock`.
    @preconcurrency @CKGuarded public var perRecordCompletionBlock: (@Sendable (CKRecord, (any Error)?) -> Void)? = nil
    /// Called once, at the end, with `partialFailure` where records failed; the older form of
    /// `modifyRecordsResultBlock`.
    @preconcurrency @CKGuarded
    public var modifyRecordsCompletionBlock: (@Sendable ([CKRecord]?, [CKRecord.ID]?, (any Error)?) -> Void)? = nil

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation that saves and deletes.
    public convenience init(recordsToSave: [CKRecord]? = nil, recordIDsToDelete: [CKRecord.ID]? = nil) {
        self.init()
        self.recordsToSave = recordsToSave
        self.recordIDsToDelete = recordIDsToDelete
    }

    override func execute() async {
        let saves = recordsToSave ?? []
        let call = ModifyCall(
            saves: saves, deletes: recordIDsToDelete ?? [], policy: savePolicy, isAtomic: isAtomic)
        let records = Dictionary(saves.map { ($0.recordID, $0) }) { first, _ in first }
        var tally = ModifyTally<CKRecord.ID, CKRecord>()
        let callbacks = Callbacks.Serial()
        let progress = perRecordProgressBlock.map { block in
            TransferProgress { place, part in callbacks.post { block(saves[place], part) } }
        }
        let work = await outcome { () async throws(CKError) in
            try await service.modify(call, progress: progress) { results in
                for result in results { tally.note(result) }
                await callbacks.run { [self] in for result in results { tell(result, records) } }
            }
        }
        let result = ending(of: work)
        let error = tally.error(of: result)
        await callbacks.run { [self, saved = tally.saved, deleted = tally.deleted] in
            modifyRecordsResultBlock?(result)
            modifyRecordsCompletionBlock?(saved, deleted, error)
        }
    }

    private func tell(_ result: ModifyResult, _ records: [CKRecord.ID: CKRecord]) {
        switch result {
        case .saved(let id, let result):
            if case .success(let record) = result { perRecordProgressBlock?(record, 1) }
            perRecordSaveBlock?(id, result)
            if let record = records[id] { perRecordCompletionBlock?(record, result.failure) }
        case .deleted(let id, let result): perRecordDeleteBlock?(id, result)
        }
    }
}

/// Finds records by a query, page by page.
open class CKQueryOperation: CKDatabaseOperation, @unchecked Sendable {
    /// A place in the results of a query.
    public typealias Cursor = CKQueryCursor

    /// As many records as the server gives at once.
    public static let maximumResults: Int = 0

    /// What to look for.
    @CKGuarded public var query: CKQuery? = nil
    /// Where to go on, instead of a query.
    @CKGuarded public var cursor: CKQueryOperation.Cursor? = nil
    /// The zone to look in; nil for every zone of the private database.
    @CKGuarded public var zoneID: CKRecordZone.ID? = nil
    /// How many records to fetch at most.
    @CKGuarded public var resultsLimit: Int = CKQueryOperation.maximumResults
    /// The fields to fetch; nil for all.
    @CKGuarded public var desiredKeys: [CKRecord.FieldKey]? = nil
    /// Called for each record, while the operation runs.
    @preconcurrency @CKGuarded
    public var recordMatchedBlock: (@Sendable (CKRecord.ID, Result<CKRecord, any Error>) -> Void)? = nil
    /// Called once, at the end, with a cursor where there is more.
    @preconcurrency @CKGuarded
    public var queryResultBlock: (@Sendable (Result<CKQueryOperation.Cursor?, any Error>) -> Void)? = nil
    /// Called for each record; the older form of `recordMatchedBlock`.
    @preconcurrency @CKGuarded public var recordFetchedBlock: (@Sendable (CKRecord) -> Void)? = nil
    /// Called once, at the end; the older form of `queryResultBlock`.
    @preconcurrency @CKGuarded
    public var queryCompletionBlock: (@Sendable (CKQueryOperation.Cursor?, (any Error)?) -> Void)? = nil

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation that looks for the records of a query.
    public convenience init(query: CKQuery) {
        self.init()
        self.query = query
    }

    /// An operation that goes on where another one ended.
    public convenience init(cursor: CKQueryOperation.Cursor) {
        self.init()
        self.cursor = cursor
    }

    override func execute() async {
        let work = await outcome { () async throws(CKError) -> CKQueryOperation.Cursor? in
            let service = service
            var next: QueryCall?
            if let call = try call(service) {
                next = try await service.query(call, desiredKeys: desiredKeys, limit: resultsLimit) { results in
                    await Callbacks.run { [self] in for (id, result) in results { tell(id, result) } }
                }
            }
            return next.map { CKQueryCursor($0) }
        }
        let result = ending(of: work)
        await Callbacks.run { [self] in
            queryResultBlock?(result)
            queryCompletionBlock?((try? result.get()) ?? nil, result.failure)
        }
    }

    private func call(_ service: DatabaseService) throws(CKError) -> QueryCall? {
        try checkCancellation()
        if let cursor { return cursor.call }
        guard let query else {
            throw CKError(.invalidArguments, reason: "a CKQueryOperation needs a query or a cursor")
        }
        return try service.call(query, in: zoneID)
    }

    private func tell(_ id: CKRecord.ID, _ result: Result<CKRecord, any Error>) {
        recordMatchedBlock?(id, result)
        if case .success(let record) = result { recordFetchedBlock?(record) }
    }
}

/// A place in the results of a query: `CKQueryOperation.Cursor`.
///
/// Immutable and opaque; equal when both name the same place of the same query.
public final class CKQueryCursor: NSObject, _CKImmutable, Sendable {
    let call: QueryCall

    init(_ call: QueryCall) { self.call = call }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool { (object as? CKQueryCursor)?.call == call }
    /// Equal for equal objects.
    public override var hash: Int { call.hashValue }
    /// The text for logs.
    public override var description: String { "<CKQueryCursor>" }

    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("query", call.query)
            if let marker = call.marker { writer.member("marker", marker) }
            if let zone = call.zone {
                writer.key("zone")
                writer.zoneID(of: zone)
            }
        }
        coder.encode(Data(writer.bytes) as NSData, forKey: "Call")
    }

    /// Nil where the archive holds no cursor.
    public convenience init?(coder: NSCoder) {
        guard let data = coder.decodeObject(of: NSData.self, forKey: "Call"),
            let json = try? JSONParser.parse(Array(data as Data)), let query = json["query"]
        else { return nil }
        self.init(
            QueryCall(query: query, zone: json["zone"].flatMap(RecordReader.zoneID), marker: json["marker"]?.string))
    }
}
