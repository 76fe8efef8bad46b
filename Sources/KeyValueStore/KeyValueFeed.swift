package import RecordModel

/// A key with its value.
package struct KeyValueEntry: Hashable, Sendable {
    package var key: String
    package var value: PropertyValue
    package var version: ChangeTag
    /// When it was set, in milliseconds since 1970; never before an earlier change of the store, unless a node's clock
    /// was more than a minute ahead then.
    package var modified: Int64
    /// The device that set it, if it said so.
    package var device: String?
}

/// A key that changed after a token: set to a value, or deleted.
package struct KeyValueChange: Hashable, Sendable {
    package var key: String
    /// Nil if the key was deleted.
    package var value: PropertyValue?
    package var version: ChangeTag
    /// As in `KeyValueEntry`.
    package var modified: Int64
    /// The device that made the change, if it said so.
    package var device: String?
}

/// Entries in byte order of their keys.
package struct KeyValueList: Hashable, Sendable {
    package var entries: [KeyValueEntry]
    /// The key to go on after; nil if this was the last page.
    package var next: String?
}

/// What `KeyValueTables.changes` answers.
package enum KeyValueFeed: Hashable, Sendable {
    case page(KeyValuePage)
    /// The token cannot be followed: read the store from the beginning, and delete what it no longer has.
    case expired(KeyValueTokenExpiry)
    /// The text is no token of this store, which is the client's mistake.
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
package enum KeyValueTokenExpiry: String, Hashable, Sendable, CaseIterable, CustomStringConvertible {
    /// The store was restored from a backup, and what the token saw may have been undone.
    case restored
    /// Deletions after the token are no longer remembered.
    case tooOld
    /// The token is from a future that this store does not have.
    case ahead

    package var description: String {
        switch self {
        case .restored: "the store was restored from a backup since this token was given"
        case .tooOld: "deletions since this token was given are no longer remembered"
        case .ahead: "the token is ahead of the store, which has lost changes since it was given"
        }
    }
}
