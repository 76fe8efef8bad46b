import RaftCore
import RecordModel

@testable import UbiquitousKeyValueStore

/// The server's rules, as plainly as they can be written: what the real one does, for many users.
struct TwinServer {
    struct Entry: Hashable {
        var value: PropertyValue?
        var version: ChangeTag
        var device: String
    }

    struct Store {
        var entries: [PreferenceKey: Entry] = [:]
        var sequence: UInt64 = 0
        var floor: UInt64 = 0
        var incarnation: UInt64 = 1
        var answers: [String: PreferenceUploadAnswer] = [:]
        /// Batches of which the server wants to hear no more, done or not.
        var forgotten: Set<String> = []
        /// Batches that were taken up, without repeats.
        var batches = 0

        var visible: [PreferenceKey: PropertyValue] { entries.compactMapValues(\.value) }
        var bytes: Int { visible.values.reduce(0) { $0 + $1.sizeBytes } }
    }

    var stores: [String: Store] = [:]
    var limits = PreferenceLimits()
    var pageMax = 1024

    mutating func set(_ batch: PreferenceBatch, user: String, device: String) -> PreferenceUploadAnswer {
        var store = stores[user] ?? Store()
        defer { stores[user] = store }
        if store.forgotten.contains(batch.id) { return .forgotten }
        if let answer = store.answers[batch.id] { return answer }
        let answer = perform(batch, device, &store)
        store.answers[batch.id] = answer
        store.batches += 1
        return answer
    }

    private func perform(_ batch: PreferenceBatch, _ device: String, _ store: inout Store) -> PreferenceUploadAnswer {
        precondition(Set(batch.writes.map(\.key)).count == batch.writes.count, "a key twice in a batch")
        for write in batch.writes where !(1...limits.keyBytesMax).contains(write.key.text.utf8.count) {
            return .refused(.keyBytes, key: write.key, reason: "key")
        }
        let hasConflict = batch.writes.contains { write in
            let entry = store.entries[write.key]
            if write.expected == PreferenceCopy.absent { return entry?.value != nil }
            return entry?.version != write.expected
        }
        if hasConflict { return .conflict }
        var after = store
        var versions: [ChangeTag?] = []
        for write in batch.writes {
            if write.value == nil, after.entries[write.key]?.value == nil {
                versions.append(nil)
                continue
            }
            after.sequence += 1
            let version = ChangeTag(incarnation: after.incarnation, sequence: after.sequence)
            after.entries[write.key] = Entry(value: write.value, version: version, device: device)
            versions.append(version)
        }
        let (keys, before) = (after.visible.count, store.visible.count)
        if keys > limits.keysMax, keys > before { return .refused(.keys, key: nil, reason: "keys") }
        if after.bytes > limits.storeBytesMax, after.bytes > store.bytes {
            return .refused(.storeBytes, key: nil, reason: "bytes")
        }
        store = after
        return .applied(versions)
    }

    /// Nil where the token cannot be followed.
    func changes(user: String, since text: String?) -> PreferencePage? {
        let store = stores[user] ?? Store()
        var (sequence, firstReadEnd): (UInt64, UInt64) = (0, store.sequence)
        if let text {
            let parts = text.split(separator: "/").map(String.init)
            precondition(parts.count == 4 && parts[0] == user, "a token of \(parts[0]) shown for \(user)")
            guard UInt64(parts[1]) == store.incarnation, let from = UInt64(parts[2]), let end = UInt64(parts[3]) else {
                return nil
            }
            (sequence, firstReadEnd) = (from, end)
        }
        let known = max(sequence, firstReadEnd)
        if known > store.sequence || known < store.floor { return nil }
        let all = store.entries.filter {
            $0.value.version.sequence > sequence
                && ($0.value.value != nil || $0.value.version.sequence > firstReadEnd)
        }.sorted { $0.value.version.sequence < $1.value.version.sequence }
        let page = all.prefix(pageMax)
        let isMore = all.count > pageMax
        let end = isMore ? page.last?.value.version.sequence ?? sequence : store.sequence
        return PreferencePage(
            changes: page.map {
                .init(key: $0.key, value: $0.value.value, version: $0.value.version, device: $0.value.device)
            }, token: "\(user)/\(store.incarnation)/\(end)/\(firstReadEnd > end ? firstReadEnd : 0)",
            isMoreComing: isMore)
    }

    /// Whether the batch was done or not, it is not taken from now on.
    mutating func forget(_ batch: PreferenceBatch, of user: String) {
        stores[user, default: Store()].forgotten.insert(batch.id)
    }

    /// Forgets all deletions so far.
    mutating func forgetTombstones(of user: String) {
        guard var store = stores[user] else { return }
        let last = store.entries.values.filter { $0.value == nil }.map(\.version.sequence).max()
        store.entries = store.entries.filter { $0.value.value != nil }
        store.floor = last ?? store.floor
        stores[user] = store
    }

    /// Goes back to an earlier state, as a restored backup does: sequences come again, in another life of the store.
    mutating func restore(_ user: String, to earlier: Store) {
        guard let store = stores[user] else { return }
        var restored = earlier
        restored.incarnation = store.incarnation + 1
        restored.answers = [:]
        stores[user] = restored
    }
}

extension SplitMix64 {
    /// True so many times in a hundred.
    mutating func percent(_ chance: Int) -> Bool { Int.random(in: 0..<100, using: &self) < chance }
}
