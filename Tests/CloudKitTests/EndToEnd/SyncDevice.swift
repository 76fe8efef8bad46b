import Synchronization

@testable import CloudKit

/// An app on one device: texts by name, in one zone.
final class Device: CKSyncEngineDelegate {
    private struct Store: Sendable {
        var texts: [String: String] = [:]
        var known: [String: CKRecord] = [:]
        var state: CKSyncEngine.State.Serialization?
        var told: [String] = []
        var errors: [String: CKError.Code] = [:]
        var failures: [CKError.Code] = []
        var fetchOptions: (@Sendable (CKSyncEngine.FetchChangesContext) -> CKSyncEngine.FetchChangesOptions)?
        var isHandling = false
        var didOverlap = false
        var isAtomic = false
        var minds: @Sendable (CKRecord.ID) -> Bool = { _ in false }
        var whenSent: @Sendable () -> Void = {}
        var whileHandling: (@Sendable (CKSyncEngine) async -> Void)?
        var makeBatch: (@Sendable (CKSyncEngine.RecordZoneChangeBatch?) -> CKSyncEngine.RecordZoneChangeBatch?)?
        var waiting: [(isOver: @Sendable (Store) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []

        mutating func take(_ record: CKRecord) {
            known[record.recordID.recordName] = record
            texts[record.recordID.recordName] = record["text"] ?? ""
        }
    }

    private let store: Mutex<Store>
    private let running = Mutex<CKSyncEngine?>(nil)
    private static let zone = CKRecordZone.ID(zoneName: "Notes")

    var engine: CKSyncEngine { running.withLock { $0 }! }
    var texts: [String: String] { store.withLock { $0.texts } }
    var told: [String] { store.withLock { $0.told } }
    var errors: [String: CKError.Code] { store.withLock { $0.errors } }
    /// Why fetches and sends ended early.
    var failures: [CKError.Code] { store.withLock { $0.failures } }
    var didOverlap: Bool { store.withLock { $0.didOverlap } }
    var isAtomic: Bool {
        get { store.withLock { $0.isAtomic } }
        set { store.withLock { $0.isAtomic = newValue } }
    }
    /// Whether a change outside of the scope is put in a batch.
    var minds: @Sendable (CKRecord.ID) -> Bool {
        get { store.withLock { $0.minds } }
        set { store.withLock { $0.minds = newValue } }
    }
    /// Called when a record was given to be sent.
    var whenSent: @Sendable () -> Void {
        get { store.withLock { $0.whenSent } }
        set { store.withLock { $0.whenSent = newValue } }
    }
    var whileHandling: (@Sendable (CKSyncEngine) async -> Void)? {
        get { store.withLock { $0.whileHandling } }
        set { store.withLock { $0.whileHandling = newValue } }
    }
    /// How what comes next is fetched; asked before each request.
    var fetchOptions: (@Sendable (CKSyncEngine.FetchChangesContext) -> CKSyncEngine.FetchChangesOptions)? {
        get { store.withLock { $0.fetchOptions } }
        set { store.withLock { $0.fetchOptions = newValue } }
    }
    /// What is sent in place of the batch of pending changes.
    var makeBatch: (@Sendable (CKSyncEngine.RecordZoneChangeBatch?) -> CKSyncEngine.RecordZoneChangeBatch?)? {
        get { store.withLock { $0.makeBatch } }
        set { store.withLock { $0.makeBatch = newValue } }
    }

    /// - Parameters:
    ///   - other: whose texts and state it begins with.
    ///   - clock: with one, the engine syncs by itself.
    init(_ database: CKDatabase, like other: Device? = nil, clock: SyncClock? = nil) {
        var first = Store()
        if let other {
            (first.texts, first.known, first.state) = other.store.withLock { ($0.texts, $0.known, $0.state) }
        }
        let state = first.state
        store = Mutex(first)
        var configuration = CKSyncEngine.Configuration(database: database, stateSerialization: state, delegate: self)
        configuration.automaticallySync = clock != nil
        let engine = CKSyncEngine(configuration, clock: clock ?? .system)
        running.withLock { $0 = engine }
    }

    func write(_ name: String, _ text: String) -> CKRecord.ID {
        store.withLock { $0.texts[name] = text }
        return CKRecord.ID(recordName: name, zoneID: Self.zone)
    }

    func save(_ name: String, _ text: String) async throws {
        engine.state.add(pendingRecordZoneChanges: [.saveRecord(write(name, text))])
        try await engine.sendChanges()
    }

    /// Has the engine tell its state.
    func storeState() async {
        let session = SyncSession(engine: engine, delegate: self)
        await session.tellState()
    }

    func waitFor(_ event: String, times: Int = 1) async {
        await waitUntil { $0.told.count(where: { $0 == event }) >= times }
    }

    func waitFor(texts: [String: String]) async { await waitUntil { $0.texts == texts } }

    private func waitUntil(_ isSo: @escaping @Sendable (Store) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isSoNow = store.withLock { store in
                if isSo(store) { return true }
                store.waiting.append((isSo, continuation))
                return false
            }
            if isSoNow { continuation.resume() }
        }
    }

    func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) async {
        let body = store.withLock { store in
            if store.isHandling { store.didOverlap = true }
            store.isHandling = true
            return store.whileHandling
        }
        await body?(syncEngine)
        let (name, zones, records) = store.withLock { Self.take(event, &$0) }
        syncEngine.state.add(pendingDatabaseChanges: zones)
        syncEngine.state.add(pendingRecordZoneChanges: records)
        let waiting = store.withLock { store in
            store.isHandling = false
            store.told.append(name)
            let now = store
            store.waiting.removeAll { $0.isOver(now) }
            return now.waiting.filter { $0.isOver(now) }
        }
        for other in waiting { other.continuation.resume() }
    }

    func nextFetchChangesOptions(
        _ context: CKSyncEngine.FetchChangesContext, syncEngine: CKSyncEngine
    ) async -> CKSyncEngine.FetchChangesOptions { fetchOptions?(context) ?? context.options }

    func nextRecordZoneChangeBatch(
        _ context: CKSyncEngine.SendChangesContext, syncEngine: CKSyncEngine
    ) async -> CKSyncEngine.RecordZoneChangeBatch? {
        let (minds, isAtomic) = (minds, isAtomic)
        let changes = syncEngine.state.pendingRecordZoneChanges
            .filter { context.options.scope.contains($0) || minds($0.recordID) }
        var batch = await CKSyncEngine.RecordZoneChangeBatch(pendingChanges: changes) { id in
            let (record, whenSent) = self.store.withLock { store -> (CKRecord?, @Sendable () -> Void) in
                guard let text = store.texts[id.recordName] else { return (nil, store.whenSent) }
                let record = store.known[id.recordName] ?? CKRecord(recordType: "Note", recordID: id)
                record["text"] = text
                return (record, store.whenSent)
            }
            if record != nil { whenSent() }
            return record
        }
        batch?.atomicByZone = isAtomic
        return makeBatch.map { $0(batch) } ?? batch
    }

    private static func take(
        _ event: CKSyncEngine.Event, _ store: inout Store
    ) -> (String, [CKSyncEngine.PendingDatabaseChange], [CKSyncEngine.PendingRecordZoneChange]) {
        switch event {
        case .stateUpdate(let event):
            store.state = event.stateSerialization
            return ("state", [], [])
        case .accountChange(let event):
            switch event.changeType {
            case .signIn: return ("signIn", [.saveZone(CKRecordZone(zoneID: zone))], [])
            case .signOut: return ("signOut", [], [])
            case .switchAccounts: return ("switchAccounts", [], [])
            }
        case .fetchedDatabaseChanges(let event):
            if event.deletions.contains(where: { $0.zoneID == zone }) {
                store.texts = store.texts.filter { store.known[$0.key]?.recordID.zoneID != zone }
            }
            return ("database +\(event.modifications.count) -\(event.deletions.count)", [], [])
        case .fetchedRecordZoneChanges(let event):
            for change in event.modifications { store.take(change.record) }
            for change in event.deletions { store.texts[change.recordID.recordName] = nil }
            return ("fetched +\(event.modifications.count) -\(event.deletions.count)", [], [])
        case .sentDatabaseChanges(let event):
            let failed = event.failedZoneSaves.count + event.failedZoneDeletes.count
            return ("zones +\(event.savedZones.count) -\(event.deletedZoneIDs.count) !\(failed)", [], [])
        case .sentRecordZoneChanges(let event):
            for record in event.savedRecords { store.known[record.recordID.recordName] = record }
            var zones: [CKSyncEngine.PendingDatabaseChange] = []
            var records: [CKSyncEngine.PendingRecordZoneChange] = []
            for failed in event.failedRecordSaves {
                let id = failed.record.recordID
                store.errors[id.recordName] = failed.error.code
                switch failed.error.code {
                case .serverRecordChanged:
                    store.known[id.recordName] = failed.error.serverRecord
                    records.append(.saveRecord(id))
                case .zoneNotFound:
                    store.known[id.recordName] = nil
                    zones.append(.saveZone(CKRecordZone(zoneID: id.zoneID)))
                    records.append(.saveRecord(id))
                default: break
                }
            }
            let count = event.failedRecordSaves.count + event.failedRecordDeletes.count
            return ("records +\(event.savedRecords.count) -\(event.deletedRecordIDs.count) !\(count)", zones, records)
        case .willFetchChanges: return ("willFetch", [], [])
        case .willFetchRecordZoneChanges: return ("willFetchZone", [], [])
        case .didFetchRecordZoneChanges(let event): return ("didFetchZone" + (event.error == nil ? "" : " !"), [], [])
        case .didFetchChanges(let event):
            store.failures += [event.error?.code].compactMap(\.self)
            return ("didFetch", [], [])
        case .willSendChanges: return ("willSend", [], [])
        case .didSendChanges(let event):
            store.failures += [event.error?.code].compactMap(\.self)
            return ("didSend", [], [])
        }
    }
}
