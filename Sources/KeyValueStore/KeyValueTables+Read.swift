import Foundation
package import GRDB
import RecordModel

extension KeyValueTables {
    /// Pages of `list` and `changes` hold at most this many keys. Where their values are to be bounded too, a page ends
    /// before the first one that the caller's `takes` refuses; it must take the first of a page.
    package static let pageMax = 1024

    /// What a store holds; nothing if nothing was ever set.
    package static func usage(of store: StoreKey, in db: Database) throws -> KeyValueUsage {
        try StoreRow.find(store, in: db).usage
    }

    /// The values of these keys, in byte order of the keys; keys without a value are left out.
    /// - Parameter takes: ends the answer before the first entry that it refuses.
    package static func get(
        _ keys: [String], of store: StoreKey, in db: Database, takes: (KeyValueEntry) -> Bool = { _ in true }
    ) throws -> [KeyValueEntry] {
        guard let id = try StoreRow.find(store, in: db).id else { return [] }
        let statement = try db.cachedStatement(
            sql: """
                SELECT key, incarnation, sequence, modified, device, value FROM kv_pair
                WHERE store = ? AND key = ? AND value IS NOT NULL
                """)
        var entries: [KeyValueEntry] = []
        var last: Data?
        for key in keys.map(blob).sorted(by: { $0.lexicographicallyPrecedes($1) }) where key != last {
            last = key
            guard let row = try Row.fetchOne(statement, arguments: [id, key]) else { continue }
            guard let entry = KeyValueEntry(try change(row)) else { continue }
            if !takes(entry) { break }
            entries.append(entry)
        }
        return entries
    }

    /// A page of a store's keys, in byte order.
    /// - Parameters:
    ///   - after: the `next` of the page before; nil begins.
    ///   - limit: at least one.
    package static func list(
        _ store: StoreKey, after: String? = nil, limit: Int = pageMax, in db: Database,
        takes: (KeyValueEntry) -> Bool = { _ in true }
    ) throws -> KeyValueList {
        let count = min(max(limit, 1), pageMax)
        guard let id = try StoreRow.find(store, in: db).id else { return KeyValueList(entries: [], next: nil) }
        let statement = try db.cachedStatement(
            sql: """
                SELECT key, incarnation, sequence, modified, device, value FROM kv_pair
                WHERE store = ? AND key > ? AND value IS NOT NULL ORDER BY key LIMIT ?
                """)
        var entries: [KeyValueEntry] = []
        let rows = try Row.fetchCursor(statement, arguments: [id, blob(after ?? ""), count + 1])
        while let row = try rows.next() {
            guard let entry = KeyValueEntry(try change(row)) else { continue }
            if entries.count == count || !takes(entry) {
                return KeyValueList(entries: entries, next: entries.last?.key)
            }
            entries.append(entry)
        }
        return KeyValueList(entries: entries, next: nil)
    }

    /// What changed in a store after a token.
    ///
    /// Following the tokens to the end gives every key's last state, whatever is written meanwhile. Nil begins: it
    /// gives the keys that have a value, and no deletions.
    /// - Parameter limit: changes on a page, at least one.
    package static func changes(
        of store: StoreKey, since text: String?, limit: Int = pageMax, in db: Database,
        takes: (KeyValueChange) -> Bool = { _ in true }
    ) throws -> KeyValueFeed {
        let row = try StoreRow.find(store, in: db)
        var token = KeyValueToken(incarnation: row.incarnation, sequence: 0, firstReadEnd: row.sequence)
        if let text {
            guard let given = KeyValueToken(text, for: store) else { return .invalidToken }
            token = given
        }
        if token.incarnation != row.incarnation { return .expired(.restored) }
        if token.deletionsKnownTo > row.sequence { return .expired(.ahead) }
        if token.deletionsKnownTo < row.floor { return .expired(.tooOld) }
        guard let id = row.id else {
            return .page(KeyValuePage(changes: [], token: token.text(for: store), isMoreComing: false))
        }
        let count = min(max(limit, 1), pageMax)
        let statement = try db.cachedStatement(
            sql: """
                SELECT key, incarnation, sequence, modified, device, value FROM kv_pair
                WHERE store = ? AND sequence > ? AND (value IS NOT NULL OR sequence > ?) ORDER BY sequence LIMIT ?
                """)
        let rows = try Row.fetchCursor(
            statement,
            arguments: [
                id, Int64(bitPattern: token.sequence), Int64(bitPattern: token.firstReadEnd), count + 1,
            ])
        var changes: [KeyValueChange] = []
        while let row = try rows.next() {
            let change = try change(row)
            if changes.count == count || !takes(change) {
                return .page(KeyValuePage(changes: changes, token: token.text(for: store), isMoreComing: true))
            }
            token.sequence = change.version.sequence
            changes.append(change)
        }
        // Sequences may end in ones that were written again or forgotten; the token need not look at them twice.
        token.sequence = row.sequence
        return .page(KeyValuePage(changes: changes, token: token.text(for: store), isMoreComing: false))
    }

    /// A row of `key, incarnation, sequence, modified, device, value`.
    private static func change(_ row: Row) throws -> KeyValueChange {
        KeyValueChange(
            key: try text(row[0]), value: try (row[5] as Data?).map(propertyValue),
            version: ChangeTag(incarnation: UInt64(bitPattern: row[1]), sequence: UInt64(bitPattern: row[2])),
            modified: row[3], device: try (row[4] as Data?).map(text))
    }
}

extension KeyValueEntry {
    /// The entry that a change made; nil for a deletion.
    init?(_ change: KeyValueChange) {
        guard let value = change.value else { return nil }
        self.init(
            key: change.key, value: value, version: change.version, modified: change.modified, device: change.device)
    }
}
