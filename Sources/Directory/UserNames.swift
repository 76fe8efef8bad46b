import Crypto
import GRDB
import RecordModel
import Synchronization
import Wire

/// Finds accounts by their user record names. A name is a hash that differs by container, so looking one up backwards
/// needs an index of the container: 16 bytes an account, made from the tables when it is first needed, and dropped
/// where there is no room.
package final class UserNames: Sendable {
    /// Part of an account's id, by part of the hash that is its name.
    private struct Entry: Comparable, Sendable {
        var name: UInt64
        var id: UInt64

        static func < (left: Entry, right: Entry) -> Bool { (left.name, left.id) < (right.name, right.id) }
    }

    /// One container's accounts, those in `additions` beyond `position` left out.
    private struct Index {
        var entries: [Entry]
        /// Made after `entries`: by name.
        var added: [UInt64: [UInt64]] = [:]
        var position: UInt64
        var lastUse: UInt64 = 0
    }

    private struct State {
        var indexes: [Bytewise: Index] = [:]
        var uses: UInt64 = 0
        /// How often the tables became others.
        var generation = 0
    }

    /// The accounts that were made last, numbered.
    private struct Additions {
        var ids: [String] = []
        var firstNumber: UInt64 = 0
        var end: UInt64 { firstNumber + UInt64(ids.count) }
    }

    /// Entries of all indexes together: 16 MB. A single index may be larger, then it is the only one.
    private static let entriesMax = 1_000_000
    /// New accounts that are remembered. An index that lies further back is made again.
    private static let additionsMax = 8_192
    /// Entries of one index that are not in its sorted part.
    private static let addedMax = 65_536

    private let state = Mutex(State())
    /// Held while an index is made, one at a time; who finds an index does not wait for it.
    private let making = Mutex(())
    /// Apart from the indexes: applying commands does not wait until one is made.
    private let additions = Mutex(Additions())

    /// Without an index.
    package init() {}

    /// An account was made.
    package func didAdd(accountID: String) {
        additions.withLock { additions in
            additions.ids.append(accountID)
            guard additions.ids.count >= 2 * Self.additionsMax else { return }
            additions.ids.removeFirst(Self.additionsMax)
            additions.firstNumber += UInt64(Self.additionsMax)
        }
    }

    /// What tells the tables of now from those that came in their place. A reader asks before its snapshot
    /// begins: an index that is made from it counts only while they are the same.
    package var generation: Int { state.withLock(\.generation) }

    /// The tables may be others.
    package func removeAll() {
        state.withLock { state in
            state.indexes = [:]
            state.generation += 1
        }
    }

    /// The ids of the accounts that may have a name, from a snapshot of the tables: nearly always at most one.
    /// - Parameter generation: of the snapshot.
    func candidates(for name: String, in container: String, generation: Int, _ db: Database) throws -> [String] {
        guard let wanted = Self.part(ofName: name) else { return [] }
        let prefixes = try known(wanted, in: container) ?? made(for: wanted, in: container, generation, db)
        return try prefixes.flatMap { prefix in
            let text = Self.text(prefix)
            return try String.fetchAll(
                db, sql: "SELECT id FROM account WHERE id >= ? AND id <= ?", arguments: [text, text + "\u{10FFFF}"])
        }
    }

    /// What an index has under a name; nil where there is no index.
    private func known(_ wanted: UInt64, in container: String) -> [UInt64]? {
        state.withLock { state in
            guard let kept = state.indexes.removeValue(forKey: Bytewise(container)) else { return nil }
            return extended(kept, container).map { keep($0, of: container, in: &state, for: wanted) }
        }
    }

    /// The same of an index that is made now, unless another caller has made it meanwhile.
    private func made(
        for wanted: UInt64, in container: String, _ generation: Int, _ db: Database
    ) throws -> [UInt64] {
        try making.withLock { _ in
            if let prefixes = known(wanted, in: container) { return prefixes }
            let index = try made(container, db)
            return state.withLock { state in
                let found = keep(index, of: container, in: &state, for: wanted)
                if state.generation != generation { state.indexes[Bytewise(container)] = nil }
                return found
            }
        }
    }

    /// Stores an index, evicts the least recently used ones, and returns what it has under a name.
    private func keep(_ index: Index, of container: String, in state: inout State, for wanted: UInt64) -> [UInt64] {
        var index = index
        state.uses += 1
        index.lastUse = state.uses
        let count = { (index: Index) in index.entries.count + index.added.count }
        while state.indexes.values.reduce(count(index), { $0 + count($1) }) > Self.entriesMax,
            let oldest = state.indexes.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            state.indexes[oldest.key] = nil
        }
        state.indexes[Bytewise(container)] = index
        return Self.found(wanted, in: index.entries) + (index.added[wanted] ?? [])
    }

    /// The index extended by newer accounts; nil if they are too many, and it must be rebuilt.
    private func extended(_ index: Index, _ container: String) -> Index? {
        let new = additions.withLock { additions -> [String]? in
            guard index.position >= additions.firstNumber else { return nil }
            return Array(additions.ids.suffix(Int(additions.end - index.position)))
        }
        guard let new, index.added.count + new.count <= Self.addedMax else { return nil }
        var index = index
        for id in new { index.added[Self.part(ofID: id, in: container), default: []].append(Self.prefix(of: id)) }
        index.position += UInt64(new.count)
        return index
    }

    /// A new index. The snapshot of the tables may lack accounts that were made a moment ago, so all that are
    /// remembered come to it once more.
    private func made(_ container: String, _ db: Database) throws -> Index {
        let first = additions.withLock(\.firstNumber)
        var entries: [Entry] = []
        let ids = try String.fetchCursor(db, sql: "SELECT id FROM account")
        while let id = try ids.next() {
            entries.append(Entry(name: Self.part(ofID: id, in: container), id: Self.prefix(of: id)))
        }
        entries.sort()
        let index = Index(entries: entries, position: first)
        return extended(index, container) ?? index
    }

    private static func found(_ name: UInt64, in entries: [Entry]) -> [UInt64] {
        entries[entries.prefixEnd { $0.name < name }...].prefix { $0.name == name }.map(\.id)
    }

    /// The first half of the 32 digits of a user record name; nil for any other text.
    private static func part(ofName name: String) -> UInt64? {
        guard name.utf8.count == 33, name.utf8.first == UInt8(ascii: "_") else { return nil }
        return UInt64(name.dropFirst().prefix(16), radix: 16)
    }

    /// The same of the name that an account has in a container.
    private static func part(ofID id: String, in container: String) -> UInt64 {
        number(Account.userRecordDigest(accountID: id, container: container))
    }

    /// The first 8 bytes of an account's id, from the left; an id that is shorter ends with zeros.
    private static func prefix(of id: String) -> UInt64 {
        let bytes = Array(id.utf8.prefix(8))
        return number(bytes + [UInt8](repeating: 0, count: 8 - bytes.count))
    }

    private static func text(_ prefix: UInt64) -> String {
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: prefix >> (56 - 8 * $0)) }
        return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }

    private static func number(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
