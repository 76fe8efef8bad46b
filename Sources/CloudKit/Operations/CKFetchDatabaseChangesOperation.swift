import Foundation

/// Fetches which custom zones of a database changed or went since a token.
public class CKFetchDatabaseChangesOperation: CKDatabaseOperation, @unchecked Sendable {
    /// What is known; nil for the beginning.
    @CKGuarded public var previousServerChangeToken: CKServerChangeToken? = nil
    /// The most zones of one page; 0 for the server's number.
    @CKGuarded public var resultsLimit: Int = 0
    /// Whether it goes on until all changes are there; else it ends after a page.
    @CKGuarded public var fetchAllChanges = true
    /// Called for each zone in which something changed.
    @preconcurrency @CKGuarded public var recordZoneWithIDChangedBlock: (@Sendable (CKRecordZone.ID) -> Void)? = nil
    /// Called for each zone that was deleted.
    @preconcurrency @CKGuarded public var recordZoneWithIDWasDeletedBlock: (@Sendable (CKRecordZone.ID) -> Void)? = nil
    /// Called for zones that a user's settings removed; there are no such settings here.
    @preconcurrency @CKGuarded public var recordZoneWithIDWasPurgedBlock: (@Sendable (CKRecordZone.ID) -> Void)? = nil
    /// Called for zones that went with a user's lost keys; keys are the server's here, and are not lost so.
    @preconcurrency @CKGuarded
    public var recordZoneWithIDWasDeletedDueToUserEncryptedDataResetBlock: (@Sendable (CKRecordZone.ID) -> Void)? = nil
    /// Called after each page.
    @preconcurrency @CKGuarded public var changeTokenUpdatedBlock: (@Sendable (CKServerChangeToken) -> Void)? = nil
    /// Called once, at the end.
    @preconcurrency @CKGuarded
    public var fetchDatabaseChangesResultBlock:
        (@Sendable (Result<(serverChangeToken: CKServerChangeToken, moreComing: Bool), any Error>) -> Void)? = nil
    /// Called once, at the end; the older form of `fetchDatabaseChangesResultBlock`.
    @preconcurrency @CKGuarded
    public var fetchDatabaseChangesCompletionBlock: (@Sendable (CKServerChangeToken?, Bool, (any Error)?) -> Void)? =
        nil

    /// An operation from the beginning on.
    public override init() { super.init() }

    /// An operation from a token on.
    public convenience init(previousServerChangeToken: CKServerChangeToken?) {
        self.init()
        self.previousServerChangeToken = previousServerChangeToken
    }

    override func execute() async {
        let result: Result<(serverChangeToken: CKServerChangeToken, moreComing: Bool), any Error>
        do throws(CKError) {
            let service = service
            var token = previousServerChangeToken
            var hasMore = false
            repeat {
                let page = try await service.databaseChanges(
                    since: token, limit: resultsLimit > 0 ? resultsLimit : nil)
                hasMore = page.hasMore && !(page.zones.isEmpty && page.token == token)
                token = page.token
                await Callbacks.run { [self] in tell(page) }
            } while hasMore && fetchAllChanges
            guard let token else { throw CKError.unreadable("syncToken") }
            result = .success((token, hasMore))
        } catch {
            result = .failure(error)
        }
        await Callbacks.run { [self] in
            fetchDatabaseChangesResultBlock?(result)
            let end = try? result.get()
            fetchDatabaseChangesCompletionBlock?(end?.serverChangeToken, end?.moreComing ?? false, result.failure)
        }
    }

    private func tell(_ page: DatabaseChangesPage) {
        for (id, isDeleted) in page.zones {
            if isDeleted { recordZoneWithIDWasDeletedBlock?(id) } else { recordZoneWithIDChangedBlock?(id) }
        }
        changeTokenUpdatedBlock?(page.token)
    }
}
