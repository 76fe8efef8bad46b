/// One fetch of an engine: the database's changes, then those of each zone, page by page.
struct SyncFetch {
    let session: SyncSession
    let service: DatabaseService
    let context: CKSyncEngine.FetchChangesContext
    /// Why zones could not be fetched to their end, by their ID.
    private(set) var errors: [AnyHashable: any Error] = [:]

    private var state: CKSyncEngine.State { session.state }

    mutating func run() async throws(CKError) {
        try await fetchDatabase()
        var done: Set<CKRecordZone.ID> = []
        while let (zone, options) = await nextZone(done) {
            done.insert(zone)
            try await fetch(zone, options)
        }
    }

    /// What the delegate wants of the next request.
    private func options() async -> CKSyncEngine.FetchChangesOptions {
        guard let delegate = session.delegate else { return context.options }
        return await session.asking { [session, context] in
            await delegate.nextFetchChangesOptions(context, syncEngine: session.engine)
        }
    }

    /// The database for a request, as the options' group says.
    private func service(_ options: CKSyncEngine.FetchChangesOptions) -> DatabaseService {
        service.grouped(options.operationGroup).begun()
    }

    /// Fetches which zones changed. One that was deleted and made again, or restored to an earlier time, is told as
    /// deleted first: what it held may be gone.
    private func fetchDatabase() async throws(CKError) {
        let first = state.current.databaseToken
        // The zones that there are, once the feed is read from its beginning again. A missing one was deleted before.
        var listed: Set<CKRecordZone.ID>?
        try await walk(from: first) { token throws(CKError) in
            try await service(await options()).databaseChanges(since: token, limit: nil)
        } restart: {
            listed = []
        } take: { page in
            var page = page
            var gone = state.current.earlierLives(in: page)
            listed?.formUnion(page.zones.map(\.id))
            if let listed, !page.hasMore {
                gone += state.current.known(except: listed)
            } else if listed != nil {
                // A fetch that ends here begins again.
                page.token = first ?? page.token
            }
            await tell([], gone.map { CKDatabase.DatabaseChange.Deletion(zoneID: $0, reason: .deleted) })
            await tell(
                page.modifications.filter { !$0.zoneID.isDefaultZone },
                page.deletions.filter { !$0.zoneID.isDefaultZone })
            state.update { state in
                for zone in gone { state.forget(zone) }
                state.received(page)
            }
        }
    }

    private func tell(
        _ modifications: [CKDatabase.DatabaseChange.Modification], _ deletions: [CKDatabase.DatabaseChange.Deletion]
    ) async {
        if modifications.isEmpty, deletions.isEmpty { return }
        await session.tell(.fetchedDatabaseChanges(.init(modifications: modifications, deletions: deletions)))
    }

    /// The zone to fetch next, and what the delegate wants of the first request: of the zones with changes that are in
    /// scope, one with priority, else the one known longest.
    private func nextZone(
        _ done: Set<CKRecordZone.ID>
    ) async -> (CKRecordZone.ID, CKSyncEngine.FetchChangesOptions)? {
        let zones = state.current.unfetchedZones.filter { !done.contains($0) }
        guard !zones.isEmpty, session.delegate != nil else { return nil }
        let options = await options()
        let wanted = zones.filter { isInScope($0, options) }
        return (options.prioritizedZoneIDs.first { wanted.contains($0) } ?? wanted.first).map { ($0, options) }
    }

    private func isInScope(_ zone: CKRecordZone.ID, _ options: CKSyncEngine.FetchChangesOptions) -> Bool {
        context.options.scope.contains(zone) && options.scope.contains(zone)
    }

    /// - Throws: an error that says something about more than this zone.
    private mutating func fetch(
        _ zone: CKRecordZone.ID, _ options: CKSyncEngine.FetchChangesOptions
    ) async throws(CKError) {
        await session.tell(.willFetchRecordZoneChanges(.init(zoneID: zone)))
        var isWhole = true
        let failure = await session.failure { [self] () async throws(CKError) in
            isWhole = try await fetchRecords(of: zone, options)
        }
        if let failure, failure.code != .zoneNotFound {
            errors[zone] = failure
        } else if isWhole {
            // A zone that is gone is told by the next fetch of the database's changes.
            state.update { $0.finished(zone) }
        }
        await session.tell(.didFetchRecordZoneChanges(.init(zoneID: zone, error: failure)))
        if let failure, failure.isOfWholeRequest { throw failure }
    }

    /// - Parameter first: what the delegate wants of the first request.
    /// - Returns: false where the delegate left the zone out before its end.
    private func fetchRecords(
        of zone: CKRecordZone.ID, _ first: CKSyncEngine.FetchChangesOptions
    ) async throws(CKError) -> Bool {
        var next: CKSyncEngine.FetchChangesOptions? = first
        return try await walk(from: state.current.zoneTokens[zone]) { token throws(CKError) -> ZoneChangesPage? in
            let options = if let first = next { first } else { await self.options() }
            next = nil
            guard isInScope(zone, options) else { return nil }
            return try await service(options).zoneChanges(ZoneChangesCall(zone: zone, token: token))
        } take: { page throws(CKError) in
            let event = try await event(page)
            if !event.modifications.isEmpty || !event.deletions.isEmpty {
                await session.tell(.fetchedRecordZoneChanges(event))
            }
            state.update { $0.zoneTokens[zone] = page.token }
        }
    }

    /// Fetches pages to the end, each from the token of the one before; from the beginning where the first is not valid
    /// any more.
    /// - Returns: false where `fetch` ended it, by nil.
    @discardableResult
    private func walk<Page: ChangesPage>(
        from first: CKServerChangeToken?,
        fetch: (CKServerChangeToken?) async throws(CKError) -> Page?, restart: () -> Void = {},
        take: (Page) async throws(CKError) -> Void
    ) async throws(CKError) -> Bool {
        var token = first
        while true {
            await session.tellState()
            let page: Page
            do throws(CKError) {
                try checkCancellation()
                guard let next = try await fetch(token) else { return false }
                page = next
            } catch {
                guard error.code == .changeTokenExpired, token != nil else { throw error }
                token = nil
                restart()
                continue
            }
            guard !page.hasMore || page.token != token else {
                throw .unreadable("new token, though it says that more is coming,")
            }
            try await take(page)
            token = page.token
            if !page.hasMore { return true }
        }
    }

    /// - Throws: the error of a record that cannot be read: the page is not passed by, so that nothing is missed.
    private func event(
        _ page: ZoneChangesPage
    ) async throws(CKError) -> CKSyncEngine.Event.FetchedRecordZoneChanges {
        var modifications: [CKDatabase.RecordZoneChange.Modification] = []
        var deletions: [CKDatabase.RecordZoneChange.Deletion] = []
        for change in page.changes {
            switch change {
            case .changed(_, .success(let record)):
                modifications.append(CKDatabase.RecordZoneChange.Modification(record: record))
            case .changed(let id, .failure(let error)):
                guard let record = try await record(id, after: service.mapping.error(error)) else { continue }
                modifications.append(CKDatabase.RecordZoneChange.Modification(record: record))
            case .deleted(let id, let type):
                deletions.append(CKDatabase.RecordZoneChange.Deletion(recordID: id, recordType: type))
            }
        }
        return CKSyncEngine.Event.FetchedRecordZoneChanges(modifications: modifications, deletions: deletions)
    }

    /// A record without its files, where one of them is lost for good: it must not hold up the zone. Nil where the
    /// record is gone by now, which the feed tells later.
    private func record(_ id: CKRecord.ID, after error: CKError) async throws(CKError) -> CKRecord? {
        guard error.code == .assetNotAvailable || error.code == .unknownItem else { throw error }
        var service = service
        service.times.fetchesFiles = false
        do throws(CKError) {
            return try await service.begun().lookedUp(id, desiredKeys: nil)
        } catch {
            if error.code == .unknownItem { return nil }
            throw error
        }
    }
}

private protocol ChangesPage {
    var token: CKServerChangeToken { get }
    var hasMore: Bool { get }
}

extension DatabaseChangesPage: ChangesPage {}

extension ZoneChangesPage: ChangesPage {}
