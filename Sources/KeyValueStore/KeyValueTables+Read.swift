import Foundation
package import GRDB
package import RecordModel
import Wire

extension KeyValueTables {
    /// Pages of `list` and `changes` hold at most this many keys. To bound their values too, a page ends before the
    /// first key that the caller's `takes` refuses; it must accept the first of a page.
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

    /// Whether a text is a token of a store, as `changes` gives them.
    package static func isToken(_ text: String, of store: StoreKey) -> Bool { KeyValueToken(text, for: store) != nil }

    /// A row of `key, incarnation, sequence, modified, device, value`.
    private static func change(_ row: Row) throws -> KeyValueChange {
        try KeyValueChange(
            key: text(row.decode(atIndex: 0)), value: row.decode(Data?.self, atIndex: 5).map(propertyValue),
            version: ChangeTag(row, at: 1), modified: row.decode(atIndex: 3),
            device: row.decode(Data?.self, atIndex: 4).map(text))
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

/// A key with its value.
package struct KeyValueEntry: Hashable, Sendable {
    /// The key.
    package var key: String
    /// The value.
    package var value: PropertyValue
    /// The version of the value.
    package var version: ChangeTag
    /// When it was set, in milliseconds since 1970; never before an earlier change of the store, unless a node's clock
    /// was more than a minute ahead then.
    package var modified: Int64
    /// The device that set it, if it said so.
    package var device: String?
}

/// A key that changed after a token: set to a value, or deleted.
package struct KeyValueChange: Hashable, Sendable {
    /// The key.
    package var key: String
    /// Nil if the key was deleted.
    package var value: PropertyValue?
    /// The version of the value.
    package var version: ChangeTag
    /// As in `KeyValueEntry`.
    package var modified: Int64
    /// The device that made the change, if it said so.
    package var device: String?
}

/// Entries in byte order of their keys.
package struct KeyValueList: Hashable, Sendable {
    /// The entries of the page, in byte order of their keys.
    package var entries: [KeyValueEntry]
    /// The key to go on after; nil if this was the last page.
    package var next: String?
}

/// What `KeyValueTables.changes` answers.
package enum KeyValueFeed: Hashable, Sendable {
    case page(KeyValuePage)
    /// The token cannot be followed: read the store from the beginning, and delete what it no longer has.
    case expired(KeyValueTokenExpiry)
    /// The text is not a token of this store, which is the client's mistake.
    case invalidToken
}

/// A part of a store's change feed.
package struct KeyValuePage: Hashable, Sendable {
    /// In the order of the changes; a key occurs once, as it is now. One batch may lie on two pages.
    package var changes: [KeyValueChange]
    /// Where to go on, now or whenever.
    package var token: String
    /// Whether there is more already.
    package var isMoreComing: Bool
}

/// Why a token cannot be followed.
package enum KeyValueTokenExpiry: String, Hashable, Sendable, CaseIterable, CustomStringConvertible, WireValue {
    /// The store was restored from a backup, and what the token saw may have been undone.
    case restored
    /// Deletions after the token are forgotten, or it is an unsealed token of an earlier build, which is no longer
    /// accepted.
    case tooOld
    /// The token is from a future that this store does not have.
    case ahead

    /// The text for logs.
    package var description: String {
        switch self {
        case .restored: "the store was restored from a backup since this token was given"
        case .tooOld:
            "deletions since this token was given are no longer remembered, or it is of a version that did not seal tokens"
        case .ahead: "the token is ahead of the store, which has lost changes since it was given"
        }
    }
}

/// A position in a store's change feed; clients see it as opaque text.
///
/// A checksum over it and the store's name tells another store's token, and damaged ones, from this store's.
struct KeyValueToken: Hashable {
    var incarnation: UInt64
    /// Every change up to here was seen.
    var sequence: UInt64
    /// While a device reads the store for the first time: the store's sequence when it began. Deletions up to here
    /// concern keys that it has never seen, so it neither gets them nor misses those that are forgotten.
    var firstReadEnd: UInt64 = 0

    /// Deletions up to here are known, or do not matter.
    var deletionsKnownTo: UInt64 { max(sequence, firstReadEnd) }

    func text(for store: StoreKey) -> String {
        var writer = WireWriter()
        writer.varint(incarnation)
        writer.varint(sequence)
        writer.varint(firstReadEnd > sequence ? firstReadEnd : 0)
        writer.fixed64(Self.checksum(writer.bytes, store: store))
        return Base64.encode(writer.bytes)
    }

    init(incarnation: UInt64, sequence: UInt64, firstReadEnd: UInt64 = 0) {
        self.incarnation = incarnation
        self.sequence = sequence
        self.firstReadEnd = firstReadEnd
    }

    /// Nil if the text is not a token that was given for this store.
    init?(_ text: String, for store: StoreKey) {
        guard text.utf8.count <= 64, let bytes = Base64.decode(text), bytes.count > 8 else { return nil }
        var reader = WireReader(bytes.dropLast(8))
        var tail = WireReader(bytes.suffix(8))
        guard let incarnation = try? reader.varint(), let sequence = try? reader.varint(),
            let firstReadEnd = try? reader.varint(), reader.isAtEnd, let checksum = try? tail.fixed64(),
            checksum == Self.checksum(bytes.dropLast(8), store: store)
        else { return nil }
        self.init(incarnation: incarnation, sequence: sequence, firstReadEnd: firstReadEnd)
    }

    private static func checksum(_ bytes: some Collection<UInt8>, store: StoreKey) -> UInt64 {
        fnv1a(store.encoded() + bytes)
    }
}
