public import Foundation

/// Fetches what became of the records of custom zones since a token, page by page.
///
/// Each page is handed over before the next one is asked for, so a zone of any size takes the memory of one page. What
/// is known up to a token of `recordZoneChangeTokensUpdatedBlock` need not be fetched again.
public class CKFetchRecordZoneChangesOperation: CKDatabaseOperation, @unchecked Sendable {
    /// The zones to look at.
    @CKGuarded public var recordZoneIDs: [CKRecordZone.ID]? = nil
    /// From where on, and how, for each zone.
    @CKGuarded public var configurationsByRecordZoneID: [CKRecordZone.ID: ZoneConfiguration]? = nil
    /// Whether it goes on until all changes are there; else it ends after a page of each zone.
    @CKGuarded public var fetchAllChanges = true
    /// Called for each record that was saved.
    @preconcurrency @CKGuarded
    public var recordWasChangedBlock: (@Sendable (CKRecord.ID, Result<CKRecord, any Error>) -> Void)? = nil
    /// Called for each record that was deleted. The server keeps no type of it: it is empty.
    @preconcurrency @CKGuarded
    public var recordWithIDWasDeletedBlock: (@Sendable (CKRecord.ID, CKRecord.RecordType) -> Void)? = nil
    /// Called after each page but a zone's last.
    @preconcurrency @CKGuarded
    public var recordZoneChangeTokensUpdatedBlock: (@Sendable (CKRecordZone.ID, CKServerChangeToken?, Data?) -> Void)? =
        nil
    /// Called once for each zone.
    @preconcurrency @CKGuarded
    public var recordZoneFetchResultBlock:
        (
            @Sendable (
                CKRecordZone.ID,
                Result<
                    (serverChangeToken: CKServerChangeToken, clientChangeTokenData: Data?, moreComing: Bool), any Error
                >
            ) -> Void
        )? = nil
    /// Called once, at the end. Zones that failed are no failure of the operation.
    @preconcurrency @CKGuarded
    public var fetchRecordZoneChangesResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called for each record that was saved; the older form of `recordWasChangedBlock`.
    @preconcurrency @CKGuarded public var recordChangedBlock: (@Sendable (CKRecord) -> Void)? = nil
    /// Called once for each zone; the older form of `recordZoneFetchResultBlock`.
    @preconcurrency @CKGuarded
    public var recordZoneFetchCompletionBlock:
        (@Sendable (CKRecordZone.ID, CKServerChangeToken?, Data?, Bool, (any Error)?) -> Void)? = nil
    /// Called once, at the end, with `partialFailure` where zones failed; the older form of
    /// `fetchRecordZoneChangesResultBlock`.
    @preconcurrency @CKGuarded
    public var fetchRecordZoneChangesCompletionBlock: (@Sendable ((any Error)?) -> Void)? = nil

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation for these zones.
    public convenience init(
        recordZoneIDs: [CKRecordZone.ID]? = nil,
        configurationsByRecordZoneID: [CKRecordZone.ID: ZoneConfiguration]? = nil
    ) {
        self.init()
        self.recordZoneIDs = recordZoneIDs
        self.configurationsByRecordZoneID = configurationsByRecordZoneID
    }

    /// From where on a zone's changes are fetched, and how.
    // @unchecked: its parts lie behind locks; not final, as Apple's is not.
    public class ZoneConfiguration: NSObject, NSCopying, @unchecked Sendable {
        /// What is known; nil for the beginning.
        @CKGuarded public var previousServerChangeToken: CKServerChangeToken? = nil
        /// The most records of one page; 0 for the server's number.
        @CKGuarded public var resultsLimit: Int = 0
        /// The fields to fetch; nil for all.
        @CKGuarded public var desiredKeys: [CKRecord.FieldKey]? = nil

        /// From the beginning, all fields.
        public override init() { super.init() }

        /// From a token on.
        public convenience init(
            previousServerChangeToken: CKServerChangeToken? = nil, resultsLimit: Int? = nil,
            desiredKeys: [CKRecord.FieldKey]? = nil
        ) {
            self.init()
            self.previousServerChangeToken = previousServerChangeToken
            self.resultsLimit = resultsLimit ?? 0
            self.desiredKeys = desiredKeys
        }

        public func copy(with zone: NSZone? = nil) -> Any {
            ZoneConfiguration(
                previousServerChangeToken: previousServerChangeToken, resultsLimit: resultsLimit,
                desiredKeys: desiredKeys)
        }
    }

    /// The older name.
    public typealias ZoneOptions = ZoneConfiguration

    /// The older name of `configurationsByRecordZoneID`.
    public var optionsByRecordZoneID: [CKRecordZone.ID: ZoneConfiguration]? {
        get { configurationsByRecordZoneID }
        set { configurationsByRecordZoneID = newValue }
    }

    override func execute() async {
        let configurations = configurationsByRecordZoneID ?? [:]
        let zones = recordZoneIDs ?? configurations.keys.sorted { $0.zoneName < $1.zoneName }
        var walk = ZoneChangesWalk(
            zones.map { zone in
                let configuration = configurations[zone]
                return ZoneChangesCall(
                    zone: zone, token: configuration?.previousServerChangeToken,
                    limit: configuration.flatMap { $0.resultsLimit > 0 ? $0.resultsLimit : nil },
                    desiredKeys: configuration?.desiredKeys)
            }, isToTheEnd: fetchAllChanges)
        let service = service
        var failure: CKError?
        do throws(CKError) {
            while let calls = walk.next() {
                for (zone, page) in try await service.changes(calls) {
                    let step = walk.received(page, of: zone)
                    await Callbacks.run { [self] in tell(zone, page, step) }
                }
            }
        } catch {
            failure = error
        }
        let (errors, unfinished) = (walk.errors, walk.unfinished)
        await Callbacks.run { [self, failure] in
            if let failure { for zone in unfinished { end(zone, .failure(failure)) } }
            fetchRecordZoneChangesResultBlock?(failure.map { .failure($0) } ?? .success(()))
            let partial = Dictionary(errors.map { (AnyHashable($0), $1 as any Error) }) { first, _ in first }
            fetchRecordZoneChangesCompletionBlock?(failure ?? CKError.partialFailure(partial))
        }
    }

    private func tell(
        _ zone: CKRecordZone.ID, _ page: Result<ZoneChangesPage, CKError>, _ step: ZoneChangesWalk.Step
    ) {
        if case .success(let page) = page {
            for change in page.changes {
                switch change {
                case .changed(let id, let result):
                    recordWasChangedBlock?(id, result)
                    if case .success(let record) = result { recordChangedBlock?(record) }
                case .deleted(let id, let type): recordWithIDWasDeletedBlock?(id, type)
                }
            }
        }
        switch step {
        case .goesOn(let token): recordZoneChangeTokensUpdatedBlock?(zone, token, nil)
        case .ends(let token, let hasMore): end(zone, .success((token, nil, hasMore)))
        case .fails(let error): end(zone, .failure(error))
        case .waits: break
        }
    }

    private func end(
        _ zone: CKRecordZone.ID,
        _ result: Result<
            (serverChangeToken: CKServerChangeToken, clientChangeTokenData: Data?, moreComing: Bool), any Error
        >
    ) {
        recordZoneFetchResultBlock?(zone, result)
        let end = try? result.get()
        recordZoneFetchCompletionBlock?(zone, end?.serverChangeToken, nil, end?.moreComing ?? false, result.failure)
    }
}
