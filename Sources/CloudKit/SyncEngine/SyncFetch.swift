/// One fetch of an engine: the database's changes, then those of each zone, page by page.
struct SyncFetch {
    let session: SyncSession
    let service: DatabaseService
    let context: CKSyncEngine.FetchChangesContext

    private var state: CKSyncEngine.State { session.state }

    func run() async throws(CKError) {
        try await fetchDatabase()
        var done: Set<CKRecordZone.ID> = []
        while let zone = await nextZone(done) {
            done.insert(zone)
            try await fetch(zone)
        }
    }

    private func fetchDatabase() async throws(CKError) {
        try await walk(from: state.current.databaseToken) { token throws(CKError) in
            try await service.begun().databaseChanges(since: token, limit: nil)
        } take: { page in
            let event = CKSyncEngine.Event.FetchedDatabaseChanges(
                modifications: page.modifications.filter { !$0.zoneID.isDefaultZone },
                deletions: page.deletions.filter { !$0.zoneID.isDefaultZone })
            if !event.modifications.isEmpty || !event.deletions.isEmpty {
                await session.tell(.fetchedDatabaseChanges(event))
            }
            state.update { $0.received(page) }
        }
    }

    /// The zone to fetch next: of those with changes that are in scope, one with priority, else the one known longest.
    private func nextZone(_ done: Set<CKRecordZone.ID>) async -> CKRecordZone.ID? {
        let zones = state.current.unfetchedZones.filter { !done.contains($0) }
        guard !zones.isEmpty, let delegate = session.delegate else { return nil }
        let options = await session.asking {
            await delegate.nextFetchChangesOptions(context, syncEngine: session.engine)
        }
        let wanted = zones.filter { context.options.scope.contains($0) && options.scope.contains($0) }
        return options.prioritizedZoneIDs.first { wanted.contains($0) } ?? wanted.first
    }

    /// - Throws: an error that says something about more than this zone.
    private func fetch(_ zone: CKRecordZone.ID) async throws(CKError) {
        await session.tell(.willFetchRecordZoneChanges(CKSyncEngine.Event.WillFetchRecordZoneChanges(zoneID: zone)))
        let failure = await session.failure { () async throws(CKError) in try await fetchRecords(of: zone) }
        // A zone that is gone is told by the next fetch of the database's changes.
        if failure == nil || failure?.code == .zoneNotFound { state.update { $0.finished(zone) } }
        await session.tell(
            .didFetchRecordZoneChanges(CKSyncEngine.Event.DidFetchRecordZoneChanges(zoneID: zone, error: failure)))
        if let failure, failure.isOfWholeRequest { throw failure }
    }

    private func fetchRecords(of zone: CKRecordZone.ID) async throws(CKError) {
        try await walk(from: state.current.zoneTokens[zone]) { token throws(CKError) in
            try await service.begun().zoneChanges(ZoneChangesCall(zone: zone, token: token))
        } take: { page throws(CKError) in
            let event = try event(page)
            if !event.modifications.isEmpty || !event.deletions.isEmpty {
                await session.tell(.fetchedRecordZoneChanges(event))
            }
            state.update { $0.zoneTokens[zone] = page.token }
        }
    }

    /// Fetches pages to the end, each from the token of the one before; from the beginning where the first is not valid
    /// any more.
    private func walk<Page: ChangesPage>(
        from first: CKServerChangeToken?,
        fetch: (CKServerChangeToken?) async throws(CKError) -> Page, take: (Page) async throws(CKError) -> Void
    ) async throws(CKError) {
        var token = first
        while true {
            await session.tellState()
            let page: Page
            do throws(CKError) {
                try checkCancellation()
                page = try await fetch(token)
            } catch {
                guard error.code == .changeTokenExpired, token != nil else { throw error }
                token = nil
                continue
            }
            guard !page.hasMore || page.token != token else {
                throw .unreadable("new token, though it says that more is coming,")
            }
            try await take(page)
            token = page.token
            if !page.hasMore { return }
        }
    }

    /// - Throws: the error of a record that cannot be read: the page is not passed by, so that nothing is missed.
    private func event(_ page: ZoneChangesPage) throws(CKError) -> CKSyncEngine.Event.FetchedRecordZoneChanges {
        var modifications: [CKDatabase.RecordZoneChange.Modification] = []
        var deletions: [CKDatabase.RecordZoneChange.Deletion] = []
        for change in page.changes {
            switch change {
            case .changed(_, .success(let record)):
                modifications.append(CKDatabase.RecordZoneChange.Modification(record: record))
            case .changed(_, .failure(let error)): throw service.mapping.error(error)
            case .deleted(let id, let type):
                deletions.append(CKDatabase.RecordZoneChange.Deletion(recordID: id, recordType: type))
            }
        }
        return CKSyncEngine.Event.FetchedRecordZoneChanges(modifications: modifications, deletions: deletions)
    }
}

/// A page of a feed of changes.
private protocol ChangesPage {
    var token: CKServerChangeToken { get }
    var hasMore: Bool { get }
}

extension DatabaseChangesPage: ChangesPage {}

extension ZoneChangesPage: ChangesPage {}
