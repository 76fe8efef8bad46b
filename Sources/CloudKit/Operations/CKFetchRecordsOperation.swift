import Foundation
import Synchronization

/// Fetches records by their IDs, of any number of zones.
public class CKFetchRecordsOperation: CKDatabaseOperation, @unchecked Sendable {
    /// The records to fetch.
    @CKGuarded public var recordIDs: [CKRecord.ID]? = nil
    /// The fields to fetch; nil for all.
    @CKGuarded public var desiredKeys: [CKRecord.FieldKey]? = nil
    /// Called with 1 when a record is there.
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

    private let isForCurrentUser: Bool

    /// An operation with nothing to do yet.
    public override init() {
        isForCurrentUser = false
        super.init()
    }

    /// An operation that fetches these records.
    public convenience init(recordIDs: [CKRecord.ID]) {
        self.init()
        self.recordIDs = recordIDs
    }

    private init(forCurrentUser: Void) {
        isForCurrentUser = true
        super.init()
    }

    /// An operation that fetches the record of the user who is signed in; it runs on the public database.
    public class func fetchCurrentUserRecordOperation() -> Self {
        guard let operation = CKFetchRecordsOperation(forCurrentUser: ()) as? Self else {
            preconditionFailure("a subclass of CKFetchRecordsOperation has to make this operation itself")
        }
        return operation
    }

    override func execute() async {
        let found = Mutex<[CKRecord.ID: CKRecord]>([:])
        let errors = Mutex<[CKRecord.ID: any Error]>([:])
        let result: Result<Void, any Error>
        do throws(CKError) {
            var service = service
            var ids = recordIDs ?? []
            if isForCurrentUser {
                service.scope = .public
                ids = [try await service.userRecordID()]
            }
            try await service.fetch(ids, desiredKeys: desiredKeys) { results in
                for (id, result) in results {
                    switch result {
                    case .success(let record): found.withLock { $0[id] = record }
                    case .failure(let error): errors.withLock { $0[id] = error }
                    }
                }
                await Callbacks.run { [self] in for (id, result) in results { tell(id, result) } }
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        let (records, failures) = (found.withLock { $0 }, errors.withLock { $0 })
        await Callbacks.run { [self] in
            fetchRecordsResultBlock?(result)
            fetchRecordsCompletionBlock?(
                records,
                result.failure
                    ?? CKError.partialFailure(Dictionary(uniqueKeysWithValues: failures.map { ($0.key, $0.value) })))
        }
    }

    private func tell(_ id: CKRecord.ID, _ result: Result<CKRecord, any Error>) {
        if case .success = result { perRecordProgressBlock?(id, 1) }
        perRecordResultBlock?(id, result)
        perRecordCompletionBlock?(try? result.get(), id, result.failure)
    }
}
