/// One send of an engine: changes of zones first, then batches of records, for as long as there are any.
struct SyncSend {
    let session: SyncSession
    let service: DatabaseService
    let context: CKSyncEngine.SendChangesContext
    /// What failed, by the ID of the zone or record. It is not sent again in this send, even if the app has added it
    /// again: it could fail in the same way for ever.
    private(set) var errors: [AnyHashable: any Error] = [:]

    private var state: CKSyncEngine.State { session.state }

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
        let zones = Dictionary(saves.map { ($0.zoneID, $0) }) { first, _ in first }
        let outcome = note(results) { (id, isSave) -> CKSyncEngine.PendingDatabaseChange in
            isSave ? .saveZone(CKRecordZone(zoneID: id)) : .deleteZone(id)
        }
        await session.tell(
            .sentDatabaseChanges(
                .init(
                    savedZones: outcome.saved,
                    failedZoneSaves: outcome.failedSaves.map {
                        .init(zone: zones[$0.id] ?? CKRecordZone(zoneID: $0.id), error: $0.error)
                    }, deletedZoneIDs: outcome.deleted, failedZoneDeletes: outcome.failedDeletes)))
        state.update { state in
            state.databaseChanges.settle(outcome.ended, outcome.failed, sentAt: pending.additions)
            for id in outcome.deleted { state.forget(id) }
        }
        if let error = outcome.whole { throw error }
        return true
    }

    /// Sends one batch of the delegate's. Returns whether there may be another one.
    private mutating func sendRecords() async throws(CKError) -> Bool {
        guard let delegate = session.delegate else { return false }
        await session.tellState()
        try checkCancellation()
        let additions = state.current.recordChanges.additions
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
        let results = try await results(of: call)
        let records = Dictionary(call.saves.map { ($0.recordID, $0) }) { first, _ in first }
        let outcome = note(results) { (id, isSave) -> CKSyncEngine.PendingRecordZoneChange in
            isSave ? .saveRecord(id) : .deleteRecord(id)
        }
        await session.tell(
            .sentRecordZoneChanges(
                .init(
                    savedRecords: outcome.saved,
                    failedRecordSaves: outcome.failedSaves.compactMap { id, error in
                        records[id].map { .init(record: $0, error: error) }
                    }, deletedRecordIDs: outcome.deleted, failedRecordDeletes: outcome.failedDeletes)))
        state.update { $0.recordChanges.settle(outcome.ended, outcome.failed, sentAt: additions) }
        if let error = outcome.whole { throw error }
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

    /// What one request came to.
    private struct Outcome<ID: Hashable & Sendable, Item: Sendable, Change> {
        var saved: [Item] = []
        var deleted: [ID] = []
        var failedSaves: [(id: ID, error: CKError)] = []
        var failedDeletes: [ID: CKError] = [:]
        /// Changes that are no longer pending: they were made, or would fail again.
        var ended: [(ID, Change)] = []
        /// Changes that failed. Where they are still pending, as the app has added them again or they are kept, those
        /// behind them go first.
        var failed: [(ID, Change)] = []
        /// An error that says something about more than one item.
        var whole: CKError?
    }

    /// Sorts the results of a request, and notes the errors of zones or records.
    /// - Parameter change: the pending change of an item, to save or to delete it.
    private mutating func note<ID, Item, Change>(
        _ results: [ModifyOutcome<ID, Item>], _ change: (ID, Bool) -> Change
    ) -> Outcome<ID, Item, Change> {
        var outcome = Outcome<ID, Item, Change>()
        for result in results {
            switch result {
            case .saved(let id, .success(let item)):
                outcome.saved.append(item)
                outcome.ended.append((id, change(id, true)))
            case .deleted(let id, .success):
                outcome.deleted.append(id)
                outcome.ended.append((id, change(id, false)))
            case .saved(let id, .failure(let error)):
                outcome.failedSaves.append((id, note(error, id, change(id, true), &outcome)))
            case .deleted(let id, .failure(let error)):
                outcome.failedDeletes[id] = note(error, id, change(id, false), &outcome)
            }
        }
        return outcome
    }

    private mutating func note<ID, Item, Change>(
        _ error: any Error, _ id: ID, _ change: Change, _ outcome: inout Outcome<ID, Item, Change>
    ) -> CKError {
        let error = service.mapping.error(error)
        errors[id] = error
        if error.isOfWholeRequest { outcome.whole = outcome.whole ?? error }
        outcome.failed.append((id, change))
        if !error.isKeptByEngine { outcome.ended.append((id, change)) }
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

    /// Takes over what came of changes that were sent.
    /// - Parameters:
    ///   - ended: are no longer pending.
    ///   - failed: go behind all others, if they still are.
    mutating func settle(_ ended: [(Item, Change)], _ failed: [(Item, Change)], sentAt additions: Int) {
        for (item, change) in ended { remove(change, for: item, sentAt: additions) }
        for (item, change) in failed { moveBack(change, for: item) }
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
