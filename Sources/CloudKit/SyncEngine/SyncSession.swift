/// One fetch or send of an engine.
///
/// Where the state changed it is told before the next event and the next request. It changes by what an event tells
/// only after the event: an app that ends in between gets the event again, or sends the change again, and loses
/// nothing.
struct SyncSession {
    let engine: CKSyncEngine
    /// Nil when the app has let go of it: nothing is done then.
    let delegate: (any CKSyncEngineDelegate)?

    private var state: CKSyncEngine.State { engine.state }

    // MARK: Events

    /// Which engine's delegate this task is in, and which task it is: what a delegate begins as a task of its own may
    /// wait for the engine.
    private struct Handling: Sendable {
        var engine: ObjectIdentifier
        var task: Int?
    }

    @TaskLocal private static var handling: Handling?

    private static var currentTask: Int? { withUnsafeCurrentTask { $0?.hashValue } }

    /// Whether the calling task is that in which the engine's delegate is called.
    static func isInDelegate(of engine: CKSyncEngine) -> Bool {
        guard let handling else { return false }
        return handling.engine == ObjectIdentifier(engine) && handling.task == currentTask
    }

    private func asking<Value: Sendable>(_ body: () async -> Value) async -> Value {
        let handling = Handling(engine: ObjectIdentifier(engine), task: Self.currentTask)
        return await Self.$handling.withValue(handling, operation: body)
    }

    /// Tells the state if it changed since it was told last.
    func tellState() async {
        guard let delegate, let serialization = state.takeUntold() else { return }
        await asking {
            await delegate.handleEvent(
                .stateUpdate(CKSyncEngine.Event.StateUpdate(stateSerialization: serialization)), syncEngine: engine)
        }
    }

    private func tell(_ event: CKSyncEngine.Event) async {
        guard let delegate else { return }
        await tellState()
        await asking { await delegate.handleEvent(event, syncEngine: engine) }
    }

    // MARK: The account

    /// The database as the group says, for the user who is signed in; nil if there is none.
    /// - Throws: where the server cannot be asked.
    private func service(_ group: CKOperationGroup?) async throws(CKError) -> DatabaseService? {
        guard delegate != nil else { return nil }
        guard engine.database.databaseScope != .public else {
            throw CKError(
                .invalidArguments, reason: "a sync engine takes a private or a shared database, not the public one")
        }
        var service = engine.database.configured
        if let group { service.times = CallTimes(group.defaultConfiguration).filled(from: service.times) }
        let user: CKRecord.ID?
        do throws(CKError) {
            user = try await service.userRecordID()
        } catch {
            guard error.code == .notAuthenticated else { throw error }
            user = nil
        }
        await follow(user)
        return user == nil ? nil : service
    }

    /// Begins with nothing where the user is not the one of the state.
    private func follow(_ user: CKRecord.ID?) async {
        let previous = state.current.user.map { CKRecord.ID(recordName: $0) }
        let change: CKSyncEngine.Event.AccountChange.ChangeType
        switch (previous, user) {
        case (let previous?, let user?):
            if previous == user { return }
            change = .switchAccounts(previousUser: previous, currentUser: user)
        case (nil, let user?):
            change = .signIn(currentUser: user)
        case (let previous?, nil): change = .signOut(previousUser: previous)
        case (nil, nil): return
        }
        state.update { state in
            // What the app added before the first start is the first user's.
            if previous == nil { state.user = user?.recordName } else { state.begin(with: user?.recordName) }
        }
        // The state of the new user is told after the event: the app has to learn that the data is another user's.
        guard let delegate else { return }
        let event = CKSyncEngine.Event.accountChange(CKSyncEngine.Event.AccountChange(changeType: change))
        await asking { await delegate.handleEvent(event, syncEngine: engine) }
        await tellState()
    }

    // MARK: Fetching

    /// Fetches which zones changed, and the records of those in scope.
    /// - Throws: the first error that says something about more than one zone.
    func fetch(_ context: CKSyncEngine.FetchChangesContext) async throws(CKError) {
        guard let service = try await service(context.options.operationGroup) else { return }
        await tell(.willFetchChanges(CKSyncEngine.Event.WillFetchChanges(context: context)))
        var failure: CKError?
        do throws(CKError) {
            try await fetchDatabase(service)
            try await fetchZones(service, context)
        } catch {
            failure = error
        }
        await tell(.didFetchChanges(CKSyncEngine.Event.DidFetchChanges(context: context)))
        await tellState()
        if let failure { throw failure }
    }

    private func fetchDatabase(_ service: DatabaseService) async throws(CKError) {
        var token = state.current.databaseToken
        while true {
            await tellState()
            let page: DatabaseChangesPage
            do throws(CKError) {
                try checkCancellation()
                page = try await service.begun().databaseChanges(since: token, limit: nil)
            } catch {
                guard error.code == .changeTokenExpired, token != nil else { throw error }
                token = nil
                continue
            }
            guard !page.hasMore || page.token != token else {
                throw .unreadable("new token, though it says that more is coming,")
            }
            let zones = page.zones.filter { !$0.id.isDefaultZone }
            if !zones.isEmpty {
                await tell(
                    .fetchedDatabaseChanges(
                        CKSyncEngine.Event.FetchedDatabaseChanges(
                            modifications: zones.filter { !$0.isDeleted }.map {
                                CKDatabase.DatabaseChange.Modification(zoneID: $0.id)
                            },
                            deletions: zones.filter(\.isDeleted).map {
                                CKDatabase.DatabaseChange.Deletion(zoneID: $0.id, reason: .deleted)
                            })))
            }
            state.update { $0.received(page) }
            token = page.token
            if !page.hasMore { return }
        }
    }

    private func fetchZones(
        _ service: DatabaseService, _ context: CKSyncEngine.FetchChangesContext
    ) async throws(CKError) {
        var done: Set<CKRecordZone.ID> = []
        while let zone = await nextZone(context, done) {
            done.insert(zone)
            await tell(.willFetchRecordZoneChanges(CKSyncEngine.Event.WillFetchRecordZoneChanges(zoneID: zone)))
            var failure: CKError?
            do throws(CKError) {
                try await fetch(zone, service)
            } catch {
                failure = error
            }
            // A zone that is gone is told by the next fetch of the database's changes.
            if failure == nil || failure?.code == .zoneNotFound { state.update { $0.finished(zone) } }
            await tell(
                .didFetchRecordZoneChanges(
                    CKSyncEngine.Event.DidFetchRecordZoneChanges(zoneID: zone, error: failure)))
            if let failure, failure.isOfWholeRequest { throw failure }
        }
    }

    /// The zone to fetch next: of those with changes that are in scope, one with priority, else the one known longest.
    private func nextZone(
        _ context: CKSyncEngine.FetchChangesContext, _ done: Set<CKRecordZone.ID>
    ) async -> CKRecordZone.ID? {
        let zones = state.current.unfetchedZones.filter { !done.contains($0) }
        guard !zones.isEmpty, let delegate else { return nil }
        let options = await asking { await delegate.nextFetchChangesOptions(context, syncEngine: engine) }
        let wanted = zones.filter { context.options.scope.contains($0) && options.scope.contains($0) }
        return options.prioritizedZoneIDs.first { wanted.contains($0) } ?? wanted.first
    }

    private func fetch(_ zone: CKRecordZone.ID, _ service: DatabaseService) async throws(CKError) {
        var token = state.current.zoneTokens[zone]
        while true {
            await tellState()
            let page: ZoneChangesPage
            do throws(CKError) {
                try checkCancellation()
                page = try await service.begun().zoneChanges(ZoneChangesCall(zone: zone, token: token))
            } catch {
                guard error.code == .changeTokenExpired, token != nil else { throw error }
                token = nil
                continue
            }
            guard !page.hasMore || page.token != token else {
                throw .unreadable("new token, though it says that more is coming,")
            }
            let event = try Self.event(page, service)
            if !event.modifications.isEmpty || !event.deletions.isEmpty {
                await tell(.fetchedRecordZoneChanges(event))
            }
            state.update { $0.zoneTokens[zone] = page.token }
            token = page.token
            if !page.hasMore { return }
        }
    }

    /// - Throws: the error of a record that cannot be read: the page is not passed by, so that nothing is missed.
    private static func event(
        _ page: ZoneChangesPage, _ service: DatabaseService
    ) throws(CKError) -> CKSyncEngine.Event.FetchedRecordZoneChanges {
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

    // MARK: Sending

    /// Sends pending changes of zones, then of records, until there are no more.
    /// - Throws: an error of the whole, after which everything that was not sent is still pending; `partialFailure`
    ///   with the errors of single items.
    func send(_ context: CKSyncEngine.SendChangesContext) async throws(CKError) {
        guard let service = try await service(context.options.operationGroup) else { return }
        guard state.hasPending else { return }
        await tell(.willSendChanges(CKSyncEngine.Event.WillSendChanges(context: context)))
        var sending = Sending()
        var failure: CKError?
        do throws(CKError) {
            repeat {
                try await sendZones(service, context.options.scope, &sending)
            } while try await sendRecords(service, context, &sending)
        } catch {
            failure = error
        }
        await tell(.didSendChanges(CKSyncEngine.Event.DidSendChanges(context: context)))
        await tellState()
        if let failure = failure ?? CKError.partialFailure(sending.errors) { throw failure }
    }

    /// What failed in one send. It is not sent again in the same one, even if the app has added it again: it could fail
    /// in the same way for ever.
    private struct Sending {
        var errors: [AnyHashable: any Error] = [:]
        var zones: Set<CKRecordZone.ID> = []
        var records: Set<CKRecord.ID> = []
        /// How many changes had been added to the state when those underway were taken from it.
        var additions = 0
    }

    private func sendZones(
        _ service: DatabaseService, _ scope: CKSyncEngine.SendChangesOptions.Scope, _ sending: inout Sending
    ) async throws(CKError) {
        while true {
            let failed = sending.zones
            let changes = state.pendingDatabaseChanges.filter { scope.contains($0) && !failed.contains($0.zoneID) }
                .prefix(CKSyncEngine.RecordZoneChangeBatch.changesMax)
            if changes.isEmpty { return }
            await tellState()
            try checkCancellation()
            var saves: [CKRecordZone] = []
            var deletes: [CKRecordZone.ID] = []
            sending.additions = state.current.databaseChanges.additions
            for change in changes {
                switch change {
                case .saveZone(let zone): saves.append(zone)
                case .deleteZone(let id): deletes.append(id)
                }
            }
            let results = try await service.begun().modifyZones(saving: saves, deleting: deletes)
            try await tellZones(results, saves, service, &sending)
        }
    }

    private func tellZones(
        _ results: [ModifyZoneResult], _ sent: [CKRecordZone], _ service: DatabaseService, _ sending: inout Sending
    ) async throws(CKError) {
        let zones = Dictionary(sent.map { ($0.zoneID, $0) }) { first, _ in first }
        var (saved, deleted) = ([CKRecordZone](), [CKRecordZone.ID]())
        var failedSaves: [CKSyncEngine.Event.SentDatabaseChanges.FailedZoneSave] = []
        var failedDeletes: [CKRecordZone.ID: CKError] = [:]
        var ended: [CKSyncEngine.PendingDatabaseChange] = []
        var whole: CKError?
        let additions = sending.additions
        for result in results {
            switch result {
            case .saved(let id, let result):
                let zone = zones[id] ?? CKRecordZone(zoneID: id)
                switch result {
                case .success(let zone):
                    saved.append(zone)
                    ended.append(.saveZone(zone))
                case .failure(let error):
                    let error = service.mapping.error(error)
                    failedSaves.append(.init(zone: zone, error: error))
                    if note(error, zone: id, &sending, &whole) { ended.append(.saveZone(zone)) }
                }
            case .deleted(let id, let result):
                let error: CKError? = if case .failure(let error) = result { service.mapping.error(error) } else { nil }
                // A zone that is gone already is what was wanted.
                guard let error, error.code != .zoneNotFound else {
                    deleted.append(id)
                    ended.append(.deleteZone(id))
                    continue
                }
                failedDeletes[id] = error
                if note(error, zone: id, &sending, &whole) { ended.append(.deleteZone(id)) }
            }
        }
        await tell(
            .sentDatabaseChanges(
                CKSyncEngine.Event.SentDatabaseChanges(
                    savedZones: saved, failedZoneSaves: failedSaves, deletedZoneIDs: deleted,
                    failedZoneDeletes: failedDeletes)))
        state.update { state in
            for change in ended { state.databaseChanges.remove(change, for: change.zoneID, sentAt: additions) }
            for id in deleted { state.zoneTokens[id] = nil }
        }
        if let whole { throw whole }
    }

    /// Notes the error of a zone. Returns whether the change is no longer pending: it would fail again.
    private func note(
        _ error: CKError, zone: CKRecordZone.ID, _ sending: inout Sending, _ whole: inout CKError?
    ) -> Bool {
        sending.errors[zone] = error
        sending.zones.insert(zone)
        if error.isOfWholeRequest { whole = whole ?? error }
        return !error.isRetriedByEngine
    }

    /// Sends one batch of the delegate's. Returns whether there may be another one.
    private func sendRecords(
        _ service: DatabaseService, _ context: CKSyncEngine.SendChangesContext, _ sending: inout Sending
    ) async throws(CKError) -> Bool {
        guard let delegate else { return false }
        await tellState()
        try checkCancellation()
        sending.additions = state.current.recordChanges.additions
        let next = await asking { await delegate.nextRecordZoneChangeBatch(context, syncEngine: engine) }
        guard let batch = next else { return false }
        let scope = context.options.scope
        let ids = batch.recordsToSave.map(\.recordID) + batch.recordIDsToDelete
        if let other = ids.first(where: { !scope.contains($0) }) {
            throw CKError(
                .invalidArguments,
                reason: "the batch holds a change of the record \"\(other.recordName)\", which is not in the scope of "
                    + "the context: take only pending changes that the scope contains")
        }
        let failed = sending.records
        let call = ModifyCall(
            saves: batch.recordsToSave.filter { !failed.contains($0.recordID) },
            deletes: batch.recordIDsToDelete.filter { !failed.contains($0) }, isAtomic: batch.atomicByZone)
        if call.saves.isEmpty, call.deletes.isEmpty { return false }
        await tellState()
        var results: [ModifyResult] = []
        try await service.begun().modify(call) { results += $0 }
        try await tellRecords(results, call, service, &sending)
        return true
    }

    private func tellRecords(
        _ results: [ModifyResult], _ call: ModifyCall, _ service: DatabaseService, _ sending: inout Sending
    ) async throws(CKError) {
        let records = Dictionary(call.saves.map { ($0.recordID, $0) }) { first, _ in first }
        var (saved, deleted) = ([CKRecord](), [CKRecord.ID]())
        var failedSaves: [CKSyncEngine.Event.SentRecordZoneChanges.FailedRecordSave] = []
        var failedDeletes: [CKRecord.ID: CKError] = [:]
        var ended: [CKSyncEngine.PendingRecordZoneChange] = []
        var whole: CKError?
        let additions = sending.additions
        func note(_ error: CKError, _ change: CKSyncEngine.PendingRecordZoneChange) {
            sending.errors[change.recordID] = error
            sending.records.insert(change.recordID)
            if error.isOfWholeRequest { whole = whole ?? error }
            if !error.isRetriedByEngine { ended.append(change) }
        }
        for result in results {
            switch result {
            case .saved(let id, .success(let record)):
                saved.append(record)
                ended.append(.saveRecord(id))
            case .saved(let id, .failure(let error)):
                let error = service.mapping.error(error)
                if let record = records[id] { failedSaves.append(.init(record: record, error: error)) }
                note(error, .saveRecord(id))
            case .deleted(let id, .success):
                deleted.append(id)
                ended.append(.deleteRecord(id))
            case .deleted(let id, .failure(let error)):
                let error = service.mapping.error(error)
                failedDeletes[id] = error
                note(error, .deleteRecord(id))
            }
        }
        await tell(
            .sentRecordZoneChanges(
                CKSyncEngine.Event.SentRecordZoneChanges(
                    savedRecords: saved, failedRecordSaves: failedSaves, deletedRecordIDs: deleted,
                    failedRecordDeletes: failedDeletes)))
        state.update { state in
            for change in ended { state.recordChanges.remove(change, for: change.recordID, sentAt: additions) }
        }
        if let whole { throw whole }
    }
}

extension CKError {
    /// Whether an engine keeps a change that failed so, and sends it again by itself.
    var isRetriedByEngine: Bool {
        switch code {
        case .notAuthenticated, .accountTemporarilyUnavailable, .networkFailure, .networkUnavailable,
            .requestRateLimited, .serviceUnavailable, .zoneBusy, .operationCancelled:
            true
        default: false
        }
    }
}
