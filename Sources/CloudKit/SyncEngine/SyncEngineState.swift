import Foundation
import Synchronization

extension CKSyncEngine {
    /// A change of the database that is to be sent. Two of one zone are the same change.
    public enum PendingDatabaseChange: Hashable, Sendable {
        /// The zone is to be made.
        case saveZone(CKRecordZone)
        /// The zone is to be deleted, with all that is in it.
        case deleteZone(CKRecordZone.ID)

        var zoneID: CKRecordZone.ID {
            switch self {
            case .saveZone(let zone): zone.zoneID
            case .deleteZone(let id): id
            }
        }

        /// Whether both say the same of the same zone.
        public static func == (left: Self, right: Self) -> Bool {
            switch (left, right) {
            case (.saveZone, .saveZone), (.deleteZone, .deleteZone): left.zoneID == right.zoneID
            default: false
            }
        }

        /// Equal for equal changes.
        public func hash(into hasher: inout Hasher) { hasher.combine(zoneID) }
    }

    /// A change of a record that is to be sent. The record itself is asked for when it is sent.
    public enum PendingRecordZoneChange: Hashable, Sendable {
        /// The record is to be saved.
        case saveRecord(CKRecord.ID)
        /// The record is to be deleted.
        case deleteRecord(CKRecord.ID)

        var recordID: CKRecord.ID {
            switch self {
            case .saveRecord(let id), .deleteRecord(let id): id
            }
        }
    }

    /// What is to be sent, and what is known of the server. It may be read and changed from any thread.
    ///
    /// Each change is told in a `stateUpdate`, after a moment, and before the engine does anything else.
    public final class State: Sendable {
        private let content: Mutex<SyncState>
        private let onChange = Mutex<(@Sendable () -> Void)?>(nil)

        init(_ serialization: Serialization?) { content = Mutex(serialization?.content ?? SyncState()) }

        /// The changes of zones that are to be sent, in order.
        public var pendingDatabaseChanges: [PendingDatabaseChange] { content.withLock { $0.databaseChanges.list } }
        /// The changes of records that are to be sent, in order.
        public var pendingRecordZoneChanges: [PendingRecordZoneChange] { content.withLock { $0.recordChanges.list } }
        /// Zones of which the server has changes that were not fetched, for example as they were not in a fetch's
        /// scope.
        public var zoneIDsWithUnfetchedServerChanges: [CKRecordZone.ID] { content.withLock { $0.unfetchedZones } }

        /// Whether the app has changes to send that it does not list here: the delegate is then asked for a batch too.
        public var hasPendingUntrackedChanges: Bool {
            get { content.withLock { $0.hasUntrackedChanges } }
            set { change { $0.hasUntrackedChanges = newValue } }
        }

        /// Adds changes of zones. A change that is there keeps its place; its opposite is replaced.
        public func add(pendingDatabaseChanges changes: [PendingDatabaseChange]) {
            change { for change in changes { $0.databaseChanges.add(change, for: change.zoneID) } }
        }

        /// Adds changes of records. A change that is there keeps its place; its opposite is replaced.
        public func add(pendingRecordZoneChanges changes: [PendingRecordZoneChange]) {
            change { for change in changes { $0.recordChanges.add(change, for: change.recordID) } }
        }

        /// Removes changes of zones that are no longer to be sent.
        public func remove(pendingDatabaseChanges changes: [PendingDatabaseChange]) {
            change { for change in changes { $0.databaseChanges.remove(change, for: change.zoneID) } }
        }

        /// Removes changes of records that are no longer to be sent.
        public func remove(pendingRecordZoneChanges changes: [PendingRecordZoneChange]) {
            change { for change in changes { $0.recordChanges.remove(change, for: change.recordID) } }
        }

        var hasPending: Bool {
            content.withLock { $0.hasUntrackedChanges || !$0.databaseChanges.isEmpty || !$0.recordChanges.isEmpty }
        }

        var current: SyncState { content.withLock { $0 } }

        /// What is not told yet, which then counts as told; nil if all is.
        func takeUntold() -> Serialization? {
            content.withLock { content in
                guard content.isUntold else { return nil }
                content.isUntold = false
                return Serialization(content: content)
            }
        }

        /// Calls back after each change that the app makes.
        func observe(_ body: @escaping @Sendable () -> Void) { onChange.withLock { $0 = body } }

        /// Changes it for the engine.
        func update<Value>(_ body: (inout SyncState) -> Value) -> Value {
            content.withLock { content in
                let before = content.revision
                let value = body(&content)
                if content.revision != before { content.isUntold = true }
                return value
            }
        }

        /// Notes how far notifications were heard. That alone is not worth telling: an engine begins with a fetch.
        func note(notificationToken token: String?) { content.withLock { $0.notificationToken = token } }

        private func change(_ body: (inout SyncState) -> Void) {
            update(body)
            onChange.withLock { $0 }?()
        }

        /// The state in a form to be stored: what an engine begins with at the next start.
        public struct Serialization: Codable, Hashable, Sendable {
            fileprivate var content: SyncState

            fileprivate init(content: SyncState) { self.content = content }

            /// Reads it from what `encode(to:)` wrote.
            /// - Throws: where it was not written by an engine, or by one of a later version.
            public init(from decoder: any Decoder) throws {
                content = try SyncState(form: StoredSyncState(from: decoder))
            }

            /// Writes it.
            public func encode(to encoder: any Encoder) throws { try StoredSyncState(content).encode(to: encoder) }
        }
    }
}

struct SyncState: Hashable, Sendable {
    /// The user whose state it is; nil before the first.
    var user: String?
    var databaseToken: CKServerChangeToken?
    var zoneTokens: [CKRecordZone.ID: CKServerChangeToken] = [:]
    /// Which life of a zone was told of: it gets a new one when it is deleted and made again, and when it is restored.
    var zoneLives: [CKRecordZone.ID: Int64] = [:]
    /// In the order in which they became known.
    var unfetchedZones: [CKRecordZone.ID] = []
    var databaseChanges = PendingChanges<CKRecordZone.ID, CKSyncEngine.PendingDatabaseChange>()
    var recordChanges = PendingChanges<CKRecord.ID, CKSyncEngine.PendingRecordZoneChange>()
    var hasUntrackedChanges = false
    /// The place in the user's log of notifications.
    var notificationToken: String?
    /// Whether it changed since it was told last.
    var isUntold = false

    /// What tells whether a state is another one than before, without the changes that are to be sent: two of these
    /// are compared in no time however many there are, and keep no copy of them.
    struct Revision: Equatable {
        var others: SyncState
        var databaseChanges: Int
        var recordChanges: Int
    }

    var revision: Revision {
        var others = self
        (others.databaseChanges, others.recordChanges) = (PendingChanges(), PendingChanges())
        return Revision(
            others: others, databaseChanges: databaseChanges.revision, recordChanges: recordChanges.revision)
    }

    mutating func begin(with user: String?) {
        self = SyncState()
        self.user = user
    }

    /// A page of the database's changes came.
    mutating func received(_ page: DatabaseChangesPage) {
        databaseToken = page.token
        for zone in page.zones where !zone.id.isDefaultZone {
            unfetchedZones.removeAll { $0 == zone.id }
            if zone.isDeleted {
                forget(zone.id)
            } else {
                zoneLives[zone.id] = zone.life
                unfetchedZones.append(zone.id)
            }
        }
    }

    /// The zones of a page that have another life than the one that was told of.
    func earlierLives(in page: DatabaseChangesPage) -> [CKRecordZone.ID] {
        page.zones.filter { zone in
            guard let known = zoneLives[zone.id], let life = zone.life else { return false }
            return !zone.isDeleted && known != life
        }.map(\.id)
    }

    /// The zones that were told of, but for some.
    func known(except zones: Set<CKRecordZone.ID>) -> [CKRecordZone.ID] {
        Set(zoneTokens.keys).union(zoneLives.keys).subtracting(zones).sorted {
            ($0.zoneName, $0.ownerName) < ($1.zoneName, $1.ownerName)
        }
    }

    /// A zone is gone, or has begun another life.
    mutating func forget(_ zone: CKRecordZone.ID) {
        unfetchedZones.removeAll { $0 == zone }
        zoneTokens[zone] = nil
        zoneLives[zone] = nil
    }

    /// A zone was fetched to its end, or cannot be fetched.
    mutating func finished(_ zone: CKRecordZone.ID) { unfetchedZones.removeAll { $0 == zone } }
}

extension CKRecordZoneID {
    /// Whether it is the zone that every database has, which takes no part in what engines do.
    var isDefaultZone: Bool { zoneName == Self.defaultZoneName }
}

private struct StoredSyncState: Codable {
    struct Zone: Codable {
        var name: String
        var owner: String
    }
    struct Token: Codable {
        var zone: Zone
        var token: String
    }
    struct Life: Codable {
        var zone: Zone
        var life: Int64
    }
    struct ZoneChange: Codable {
        var zone: Zone
        var isDeletion: Bool
    }
    struct RecordChange: Codable {
        var record: String
        var zone: Zone
        var isDeletion: Bool
    }

    static let currentVersion = 1

    var version: Int
    var user: String?
    var databaseToken: String?
    var zoneTokens: [Token]
    /// Nil in what earlier builds wrote.
    var zoneLives: [Life]?
    var unfetchedZones: [Zone]
    var databaseChanges: [ZoneChange]
    var recordChanges: [RecordChange]
    var hasUntrackedChanges: Bool
    var notificationToken: String?

    init(_ state: SyncState) {
        version = Self.currentVersion
        user = state.user
        databaseToken = state.databaseToken?.value
        zoneTokens = state.zoneTokens.map { Token(zone: Zone($0), token: $1.value) }
            .sorted { ($0.zone.name, $0.zone.owner) < ($1.zone.name, $1.zone.owner) }
        zoneLives = state.zoneLives.map { Life(zone: Zone($0), life: $1) }
            .sorted { ($0.zone.name, $0.zone.owner) < ($1.zone.name, $1.zone.owner) }
        unfetchedZones = state.unfetchedZones.map(Zone.init)
        databaseChanges = state.databaseChanges.list.map { change in
            if case .deleteZone(let id) = change { return ZoneChange(zone: Zone(id), isDeletion: true) }
            return ZoneChange(zone: Zone(change.zoneID), isDeletion: false)
        }
        recordChanges = state.recordChanges.list.map { change in
            let id = change.recordID
            var isDeletion = false
            if case .deleteRecord = change { isDeletion = true }
            return RecordChange(record: id.recordName, zone: Zone(id.zoneID), isDeletion: isDeletion)
        }
        hasUntrackedChanges = state.hasUntrackedChanges
        notificationToken = state.notificationToken
    }
}

extension StoredSyncState.Zone {
    init(_ id: CKRecordZone.ID) { (name, owner) = (id.zoneName, id.ownerName) }

    var id: CKRecordZone.ID { CKRecordZone.ID(zoneName: name, ownerName: owner) }
}

extension SyncState {
    fileprivate init(form: StoredSyncState) throws {
        guard form.version == StoredSyncState.currentVersion else {
            throw CKError(
                .incompatibleVersion,
                reason: "the stored state of a sync engine has version \(form.version), this build knows "
                    + "\(StoredSyncState.currentVersion): use a newer build, or begin without a state")
        }
        user = form.user
        databaseToken = form.databaseToken.map { CKServerChangeToken($0) }
        for token in form.zoneTokens { zoneTokens[token.zone.id] = CKServerChangeToken(token.token) }
        for life in form.zoneLives ?? [] { zoneLives[life.zone.id] = life.life }
        unfetchedZones = form.unfetchedZones.map(\.id)
        for change in form.databaseChanges {
            let id = change.zone.id
            databaseChanges.add(change.isDeletion ? .deleteZone(id) : .saveZone(CKRecordZone(zoneID: id)), for: id)
        }
        for change in form.recordChanges {
            let id = CKRecord.ID(recordName: change.record, zoneID: change.zone.id)
            recordChanges.add(change.isDeletion ? .deleteRecord(id) : .saveRecord(id), for: id)
        }
        hasUntrackedChanges = form.hasUntrackedChanges
        notificationToken = form.notificationToken
    }
}
