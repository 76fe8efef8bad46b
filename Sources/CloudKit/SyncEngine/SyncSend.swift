/// One send of an engine: changes of zones first, then batches of records, for as long as there are any.
struct SyncSend {
    private let session: SyncSession
    private let service: DatabaseService
    private let context: CKSyncEngine.SendChangesContext
    /// What failed, by the ID of the zone or record. It is not sent again in this send, even if the app has added it
    /// again: it could fail in the same way for ever.
    private(set) var errors: [AnyHashable: any Error] = [:]
    /// How many changes had been added to the state when those underway were taken from it.
    private var additions = 0

    private var state: CKSyncEngine.State { session.state }

    init(session: SyncSession, service: DatabaseService, context: CKSyncEngine.SendChangesContext) {
        self.session = session
        self.service = service
        self.context = context
    }

    mutating func run() async throws(CKError) {
        repeat {
            while try await sendZones() {}
        } while try await sendRecords()
    }

    /// Sends what goes in one request. Returns whether there was anything.
    private mutating func sendZones() async throws(CKError) -> Bool {
        await session.tellState()
        try checkCancellation()
        let scope = context.options.scope
        let pending = state.current.databaseChanges
        additions = pending.additions
        let changes = pending.list.filter { scope.contains($0) && errors[$0.zoneID] == nil }
            .prefix(CKSyncEngine.RecordZoneChangeBatch.changesMax)
        if changes.isEmpty { return false }
        var saves: [CKRecordZone] = []
        var deletes: [CKRecordZone.ID] = []
        for change in changes {
            switch change {
            case .saveZone(let zone): saves.append(zone)
            case .deleteZone(let id): deletes.append(id)
            }
        }
        let results = try await service.begun().modifyZones(saving: saves, deleting: deletes)
        try await tell(results, saves)
        return true
    }

    private mutating func tell(_ results: [ModifyZoneResult], _ sent: [CKRecordZone]) async throws(CKError) {
        let zones = Dictionary(sent.map { ($0.zoneID, $0) }) { first, _ in first }
        var (saved, deleted) = ([CKRecordZone](), [CKRecordZone.ID]())
        var failedSaves: [CKSyncEngine.Event.SentDatabaseChanges.FailedZoneSave] = []
        var failedDeletes: [CKRecordZone.ID: CKError] = [:]
        var outcome = Outcome<CKSyncEngine.PendingDatabaseChange>()
        for result in results {
            switch result {
            case .saved(let id, .success(let zone)):
                saved.append(zone)
                // The answer's zone has the default owner, whatever the one sent was called.
                outcome.ended.append(.saveZone(zones[id] ?? zone))
            case .saved(let id, .failure(let error)):
                let zone = zones[id] ?? CKRecordZone(zoneID: id)
                failedSaves.append(.init(zone: zone, error: note(error, id, .saveZone(zone), &outcome)))
            case .deleted(let id, .failure(let error)):
                failedDeletes[id] = note(error, id, .deleteZone(id), &outcome)
            case .deleted(let id, .success):
                deleted.append(id)
                outcome.ended.append(.deleteZone(id))
            }
        }
        await session.tell(
            .sentDatabaseChanges(
                CKSyncEngine.Event.SentDatabaseChanges(
                    savedZones: saved, failedZoneSaves: failedSaves, deletedZoneIDs: deleted,
                    failedZoneDeletes: failedDeletes)))
        state.update { state in
            for change in outcome.ended { state.databaseChanges.remove(change, for: change.zoneID, sentAt: additions) }
            for change in outcome.failed { state.databaseChanges.moveBack(change, for: change.zoneID) }
            for id in deleted { state.forget(id) }
        }
        if let error = outcome.whole { throw error }
    }

    /// Sends one batch of the delegate's. Returns whether there may be another one.
    private mutating func sendRecords() async throws(CKError) -> Bool {
        guard let delegate = session.delegate else { return false }
        await session.tellState()
        try checkCancellation()
        additions = state.current.recordChanges.additions
        let next = await session.asking { [session, context] in
            await delegate.nextRecordZoneChangeBatch(context, syncEngine: session.engine)
        }
        guard let batch = next else { return false }
        try requireScope(of: batch)
        let call = ModifyCall(
            saves: batch.recordsToSave.filter { errors[$0.recordID] == nil },
            deletes: batch.recordIDsToDelete.filter { errors[$0] == nil }, isAtomic: batch.atomicByZone)
        if call.saves.isEmpty, call.deletes.isEmpty { return false }
        await session.tellState()
        try await tell(try await results(of: call), call)
        return true
    }

    /// A batch that cannot be sent as it is fails with all that is in it: sent again it would fail again.
    private func results(of call: ModifyCall) async throws(CKError) -> [ModifyResult] {
        var results: [ModifyResult] = []
        do throws(CKError) {
            try await service.begun().modify(call) { results += $0 }
        } catch {
            if error.isKeptByEngine { throw error }
            results = call.saves.map { .saved($0.recordID, .failure(error)) }
            results += call.deletes.map { .deleted($0, .failure(error)) }
        }
        return results
    }

    private func requireScope(of batch: CKSyncEngine.RecordZoneChangeBatch) throws(CKError) {
        let ids = batch.recordsToSave.map(\.recordID) + batch.recordIDsToDelete
        guard let other = ids.first(where: { !context.options.scope.contains($0) }) else { return }
        throw CKError(
            .invalidArguments,
            reason: "the batch holds a change of the record \"\(other.recordName)\", which is not in the scope of "
                + "the context: take only pending changes that the scope contains")
    }

    private mutating func tell(_ results: [ModifyResult], _ call: ModifyCall) async throws(CKError) {
        let records = Dictionary(call.saves.map { ($0.recordID, $0) }) { first, _ in first }
        var (saved, deleted) = ([CKRecord](), [CKRecord.ID]())
        var failedSaves: [CKSyncEngine.Event.SentRecordZoneChanges.FailedRecordSave] = []
        var failedDeletes: [CKRecord.ID: CKError] = [:]
        var outcome = Outcome<CKSyncEngine.PendingRecordZoneChange>()
        for result in results {
            switch result {
            case .saved(let id, .success(let record)):
                saved.append(record)
                outcome.ended.append(.saveRecord(id))
            case .saved(let id, .failure(let error)):
                let error = note(error, id, .saveRecord(id), &outcome)
                if let record = records[id] { failedSaves.append(.init(record: record, error: error)) }
            case .deleted(let id, .success):
                deleted.append(id)
                outcome.ended.append(.deleteRecord(id))
            case .deleted(let id, .failure(let error)):
                failedDeletes[id] = note(error, id, .deleteRecord(id), &outcome)
            }
        }
        await session.tell(
            .sentRecordZoneChanges(
                CKSyncEngine.Event.SentRecordZoneChanges(
                    savedRecords: saved, failedRecordSaves: failedSaves, deletedRecordIDs: deleted,
                    failedRecordDeletes: failedDeletes)))
        state.update { state in
            for change in outcome.ended { state.recordChanges.remove(change, for: change.recordID, sentAt: additions) }
            for change in outcome.failed { state.recordChanges.moveBack(change, for: change.recordID) }
        }
        if let error = outcome.whole { throw error }
    }

    /// What one request came to.
    private struct Outcome<Change> {
        /// Changes that are no longer pending: they were made, or would fail again.
        var ended: [Change] = []
        /// Changes that failed. Where they are still pending, as the app has added them again or they are kept, those
        /// behind them go first.
        var failed: [Change] = []
        /// An error that says something about more than one item.
        var whole: CKError?
    }

    /// Notes the error of a zone or record.
    private mutating func note<Change>(
        _ error: any Error, _ id: AnyHashable, _ change: Change, _ outcome: inout Outcome<Change>
    ) -> CKError {
        let error = service.mapping.error(error)
        errors[id] = error
        if error.isOfWholeRequest { outcome.whole = outcome.whole ?? error }
        outcome.failed.append(change)
        if !error.isKeptByEngine { outcome.ended.append(change) }
        return error
    }
}

extension CKError {
    /// Whether an engine keeps a change that failed so, and sends it again by itself.
    var isKeptByEngine: Bool { isOfWholeRequest || code == .accountTemporarilyUnavailable || code == .zoneBusy }
}

/// Changes that are to be sent, at most one for each item, in the order in which they were added.
///
/// To add or to remove one takes the same time however many there are.
struct PendingChanges<Item: Hashable & Sendable, Change: Hashable & Sendable>: Hashable, Sendable {
    private struct Entry: Sendable {
        var place: Int
        /// When it was added last.
        var addition: Int
    }

    private var entries: [Item: Entry] = [:]
    /// The changes by their places; nil where one was removed, or moved back.
    private(set) var places: [Change?] = []
    /// How many changes were added so far.
    private(set) var additions = 0
    /// Another one after each change of the list.
    private(set) var revision = 0

    var isEmpty: Bool { entries.isEmpty }
    var list: [Change] { places.compactMap(\.self) }

    /// Adds a change. The same one keeps its place; another one of the same item takes a new place.
    mutating func add(_ change: Change, for item: Item) {
        additions += 1
        if let place = entries[item]?.place {
            if places[place] == change {
                entries[item]?.addition = additions
                return
            }
            places[place] = nil
        }
        append(change, for: item, addition: additions)
    }

    /// Removes exactly this change, if it is there.
    /// - Parameter additions: how many changes had been added when it was sent. One that was added again since then
    ///   stays: the item may have changed once more.
    mutating func remove(_ change: Change, for item: Item, sentAt additions: Int = .max) {
        guard let entry = entries[item], places[entry.place] == change, entry.addition <= additions else { return }
        places[entry.place] = nil
        entries[item] = nil
        revision += 1
        if places.count > 2 * entries.count + 16 { closeUp() }
    }

    /// Puts exactly this change behind all others, if it is there.
    mutating func moveBack(_ change: Change, for item: Item) {
        guard let entry = entries[item], places[entry.place] == change, entry.place + 1 < places.count else { return }
        places[entry.place] = nil
        append(change, for: item, addition: entry.addition)
    }

    private mutating func append(_ change: Change, for item: Item, addition: Int) {
        entries[item] = Entry(place: places.count, addition: addition)
        places.append(change)
        revision += 1
        if places.count > 2 * entries.count + 16 { closeUp() }
    }

    /// Gives up places without a change.
    private mutating func closeUp() {
        var closed = 0
        var moved = [Int](repeating: 0, count: places.count)
        for (place, change) in places.enumerated() where change != nil {
            moved[place] = closed
            closed += 1
        }
        places = list
        entries = entries.mapValues { Entry(place: moved[$0.place], addition: $0.addition) }
    }

    static func == (left: Self, right: Self) -> Bool { left.list == right.list }
    func hash(into hasher: inout Hasher) { hasher.combine(list) }
}
