import RecordModel
import Testing

@testable import UbiquitousKeyValueStore

/// A device in the simulation: the core, its disk, its requests under way, and an app that believes what it is told.
struct SimulatedDevice {
    struct Request: Hashable {
        enum Kind: Hashable {
            case upload(PreferenceBatch)
            case fetch(PreferenceTicket)
        }
        var account: String
        var kind: Kind
    }

    let name: String
    let limits: PreferenceLimits
    var sync: PreferenceSync
    var disk: [String: PreferenceCopy] = [:]
    var requests: [Request] = []
    var isOnline = true
    var batches = 0
    /// What the app takes the store to hold: what it wrote, and what it read when a notification named a key.
    var belief: [PreferenceKey: PropertyValue] = [:]
    var notifications: [PreferenceNotification] = []
    var now: Int64 = 0

    static let nobody = "nobody"

    init(_ name: String, limits: PreferenceLimits, account: String?) {
        self.name = name
        self.limits = limits
        sync = PreferenceSync(account: account, copy: PreferenceCopy(device: name), limits: limits)
    }

    mutating func moment() -> PreferenceMoment {
        batches += 1
        return PreferenceMoment(milliseconds: now, batchID: "\(name)-\(batches)")
    }

    /// An event other than an edit: the app hears of exactly what changed.
    mutating func handle(_ event: PreferenceEvent) {
        let before = sync.copy
        let effects = sync.handle(event, at: moment())
        check(effects, before: before, event: "\(event)")
        perform(effects)
    }

    mutating func edit(_ key: PreferenceKey, _ value: PropertyValue?, isExplicit: Bool = false) {
        let before = sync.copy
        let effects = sync.handle(.edited(key, value, isExplicit: isExplicit), at: moment())
        var known = before
        if !effects.refusals.contains(where: { $0.key == key }) {
            #expect(sync.copy.value(key) == value, "\(name) set \(key.text)")
            belief[key] = value
            known.rows[key] = sync.copy.rows[key]
        }
        // An upload that the edit began may have undone others for want of room.
        check(effects, before: known, event: "edit of \(key.text)")
        perform(effects)
    }

    mutating func changeAccount(to account: String?) {
        let before = sync.copy
        let unclaimed = sync.account == nil ? sync.copy : disk[Self.nobody]
        let isSigningIn = account != nil
        let copy = disk[account ?? Self.nobody] ?? PreferenceCopy(device: name)
        let effects = sync.accountChanged(
            to: account, copy: copy, unclaimed: isSigningIn ? [unclaimed].compactMap { $0 } : [], at: moment())
        if isSigningIn { disk[Self.nobody] = nil }
        check(effects, before: before, event: "account \(account ?? Self.nobody)")
        perform(effects)
    }

    /// The process ends and begins again from its disk.
    mutating func restart() {
        let copy = disk[sync.account ?? Self.nobody] ?? PreferenceCopy(device: name)
        let text = copy.serialized()
        let read = try? PreferenceCopy(text)
        #expect(read == copy, "\(name)'s copy does not read back")
        sync = PreferenceSync(account: sync.account, copy: read ?? copy, limits: limits)
        belief = Dictionary(uniqueKeysWithValues: sync.copy.visible.map { ($0.key, $0.value) })
        requests = []
        handle(.woken)
    }

    private mutating func perform(_ effects: PreferenceEffects) {
        if effects.persist { disk[sync.account ?? Self.nobody] = sync.copy }
        #expect(disk[sync.account ?? Self.nobody] ?? PreferenceCopy(device: name) == sync.copy, "\(name) kept a change")
        notifications += effects.notifications
        guard let account = sync.account else {
            #expect(effects.upload == nil && effects.fetch == nil)
            return
        }
        if let batch = effects.upload { requests.append(Request(account: account, kind: .upload(batch))) }
        if let ticket = effects.fetch { requests.append(Request(account: account, kind: .fetch(ticket))) }
    }

    /// Every change that the app did not make is told once, with the right reason; nothing else is.
    private mutating func check(_ effects: PreferenceEffects, before: PreferenceCopy, event: String) {
        let changed = Set(before.differences(to: sync.copy))
        var told: [PreferenceKey] = []
        var refused: Set<PreferenceKey> = []
        for notification in effects.notifications {
            #expect(notification.keys == notification.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
            let keys = notification.keys.map { PreferenceKey($0) }
            switch notification.reason {
            case .quotaViolation: refused.formUnion(keys)
            case .initialSync:
                #expect(!before.isInitialSyncDone)
                told += keys
            case .serverChange:
                #expect(before.isInitialSyncDone)
                told += keys
            case .accountChange:
                #expect(event.hasPrefix("account"))
                told += keys
            }
        }
        #expect(Set(told).count == told.count, "\(name) told a key twice: \(event)")
        #expect(Set(told).subtracting(refused).isSubset(of: changed), "\(name) told of no change: \(event)")
        #expect(changed.isSubset(of: refused.union(told)), "\(name) did not tell of \(changed): \(event)")
        for key in refused.union(told) { belief[key] = sync.copy.value(key) }
    }
}
