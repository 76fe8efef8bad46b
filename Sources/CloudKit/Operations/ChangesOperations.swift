public import Foundation

/// Fetches which custom zones of a database changed or went since a token.
open class CKFetchDatabaseChangesOperation: CKDatabaseOperation, @unchecked Sendable {
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

    /// An operation from a token on.
    public convenience init(previousServerChangeToken: CKServerChangeToken?) {
        self.init()
        self.previousServerChangeToken = previousServerChangeToken
    }

    override func execute() async {
        let work = await outcome {
            () async throws(CKError) -> (serverChangeToken: CKServerChangeToken, moreComing: Bool) in
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
            return (token, hasMore)
        }
        let result = ending(of: work)
        await Callbacks.run { [self] in
            fetchDatabaseChangesResultBlock?(result)
            let end = try? result.get()
            fetchDatabaseChangesCompletionBlock?(end?.serverChangeToken, end?.moreComing ?? false, result.failure)
        }
    }

    private func tell(_ page: DatabaseChangesPage) {
        for (id, isDeleted, _) in page.zones {
            if isDeleted { recordZoneWithIDWasDeletedBlock?(id) } else { recordZoneWithIDChangedBlock?(id) }
        }
        changeTokenUpdatedBlock?(page.token)
    }
}

/// Fetches what became of the records of custom zones since a token, page by page.
///
/// Each page is handed over before the next one is asked for, so a zone of any size takes the memory of one page. What
/// is known up to a token of `recordZoneChangeTokensUpdatedBlock` need not be fetched again.
open class CKFetchRecordZoneChangesOperation: CKDatabaseOperation, @unchecked Sendable {
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

    /// An operation for these zones; the older form of `init(recordZoneIDs:configurationsByRecordZoneID:)`.
    @available(*, deprecated, message: "use init(recordZoneIDs:configurationsByRecordZoneID:)")
    public convenience init(
        recordZoneIDs: [CKRecordZone.ID], optionsByRecordZoneID: [CKRecordZone.ID: ZoneOptions]?
    ) {
        self.init()
        self.recordZoneIDs = recordZoneIDs
        self.configurationsByRecordZoneID = optionsByRecordZoneID?.mapValues(\.configuration)
    }

    /// The older form of `configurationsByRecordZoneID`, which it reads and sets.
    @available(*, deprecated, message: "use configurationsByRecordZoneID")
    public var optionsByRecordZoneID: [CKRecordZone.ID: ZoneOptions]? {
        get { configurationsByRecordZoneID?.mapValues { ZoneOptions($0) } }
        set { configurationsByRecordZoneID = newValue?.mapValues(\.configuration) }
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
        let work = await outcome { () async throws(CKError) in
            while let calls = walk.next() {
                for (zone, page) in try await service.changes(calls) {
                    let step = walk.received(page, of: zone)
                    await Callbacks.run { [self] in tell(zone, page, step) }
                }
            }
        }
        let (unfinished, result) = (walk.unfinished, ending(of: work))
        let error = result.failure ?? CKError.partialFailure(walk.errors)
        await Callbacks.run { [self] in
            if let failure = result.failure { for zone in unfinished { end(zone, .failure(failure)) } }
            fetchRecordZoneChangesResultBlock?(result)
            fetchRecordZoneChangesCompletionBlock?(error)
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

/// The way through the changes of several zones, a page of each at a time: a value that knows no network.
struct ZoneChangesWalk {
    /// What a page meant for its zone.
    enum Step: Sendable {
        /// There is more, from this token on.
        case goesOn(CKServerChangeToken)
        /// This is where the walk ends; whether the server has more.
        case ends(CKServerChangeToken, hasMore: Bool)
        case fails(CKError)
        /// It is asked for again.
        case waits
    }

    private var calls: [ZoneChangesCall]
    private let isToTheEnd: Bool
    /// Of zones whose walk ended with one.
    private(set) var errors: [AnyHashable: any Error] = [:]

    /// Zones in one request: their pages together are what the SDK holds at a time.
    static let zonesMax = 20

    /// - Parameter isToTheEnd: whether each zone is walked to its end, or one page of each is fetched.
    init(_ calls: [ZoneChangesCall], isToTheEnd: Bool) {
        var known: Set<CKRecordZone.ID> = []
        self.calls = calls.filter { known.insert($0.zone).inserted }
        self.isToTheEnd = isToTheEnd
    }

    /// What to ask for next; nil at the end.
    func next() -> [ZoneChangesCall]? { calls.isEmpty ? nil : Array(calls.prefix(Self.zonesMax)) }

    var unfinished: [CKRecordZone.ID] { calls.map(\.zone) }

    /// A zone's page came.
    mutating func received(_ page: Result<ZoneChangesPage, CKError>, of zone: CKRecordZone.ID) -> Step {
        guard let place = calls.firstIndex(where: { $0.zone == zone }) else { return .waits }
        switch page {
        case .failure(let error):
            if let limit = calls[place].smallerLimit(after: error) {
                calls[place].limit = limit
                return .waits
            }
            return fail(at: place, error)
        case .success(let page):
            guard page.hasMore, isToTheEnd else {
                calls.remove(at: place)
                return .ends(page.token, hasMore: page.hasMore)
            }
            // A zone that says there is more and stays where it is would be walked for ever.
            guard page.token != calls[place].token || !page.changes.isEmpty else {
                return fail(at: place, .unreadable("new token, though it says that more is coming,"))
            }
            calls[place].token = page.token
            return .goesOn(page.token)
        }
    }

    private mutating func fail(at place: Int, _ error: CKError) -> Step {
        errors[calls.remove(at: place).zone] = error
        return .fails(error)
    }
}

// @unchecked: its parts lie behind locks; not final, as Apple's is not.
/// From where on a zone's changes are fetched, and how: `CKFetchRecordZoneChangesOperation.ZoneConfiguration`.
public class CKFetchRecordZoneChangesConfiguration: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
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

    /// A copy of the object.
    public func copy(with zone: NSZone? = nil) -> Any {
        CKFetchRecordZoneChangesConfiguration(
            previousServerChangeToken: previousServerChangeToken, resultsLimit: resultsLimit, desiredKeys: desiredKeys)
    }

    /// Always true.
    public class var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(previousServerChangeToken, "PreviousServerChangeToken")
        coder.encode(Int64(resultsLimit), forKey: "ResultsLimit")
        coder.write(desiredKeys, "DesiredKeys")
    }

    /// The configuration of an archive.
    public required init?(coder: NSCoder) {
        super.init()
        previousServerChangeToken = coder.object(CKServerChangeToken.self, "PreviousServerChangeToken")
        resultsLimit = coder.integer("ResultsLimit")
        desiredKeys = coder.texts("DesiredKeys")
    }
}

// @unchecked: all it has is a configuration, which is Sendable.
/// The older form of `CKFetchRecordZoneChangesOperation.ZoneConfiguration`: a class of its own with the same members.
public class CKFetchRecordZoneChangesOptions: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    /// Holds the values; an operation uses this very object.
    let configuration: CKFetchRecordZoneChangesConfiguration

    /// From the beginning, all fields.
    public override init() { configuration = CKFetchRecordZoneChangesConfiguration() }

    init(_ configuration: CKFetchRecordZoneChangesConfiguration) { self.configuration = configuration }

    /// What is known; nil for the beginning.
    public var previousServerChangeToken: CKServerChangeToken? {
        get { configuration.previousServerChangeToken }
        set { configuration.previousServerChangeToken = newValue }
    }

    /// The most records of one page; 0 for the server's number.
    public var resultsLimit: Int {
        get { configuration.resultsLimit }
        set { configuration.resultsLimit = newValue }
    }

    /// The fields to fetch; nil for all.
    public var desiredKeys: [CKRecord.FieldKey]? {
        get { configuration.desiredKeys }
        set { configuration.desiredKeys = newValue }
    }

    /// A copy of the object.
    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = CKFetchRecordZoneChangesOptions()
        copy.previousServerChangeToken = previousServerChangeToken
        copy.resultsLimit = resultsLimit
        copy.desiredKeys = desiredKeys
        return copy
    }

    /// Always true.
    public class var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) { configuration.encode(with: coder) }

    /// The options of an archive.
    public required init?(coder: NSCoder) {
        guard let configuration = CKFetchRecordZoneChangesConfiguration(coder: coder) else { return nil }
        self.configuration = configuration
    }
}

extension CKFetchRecordZoneChangesOperation {
    /// The name in Swift of the type.
    public typealias ZoneConfiguration = CKFetchRecordZoneChangesConfiguration
    /// The name in Swift of the older type.
    @available(*, deprecated, renamed: "CKFetchRecordZoneChangesOperation.ZoneConfiguration")
    public typealias ZoneOptions = CKFetchRecordZoneChangesOptions
}
