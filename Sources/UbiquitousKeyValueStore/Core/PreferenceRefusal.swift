import RecordModel

/// Why a write is not in the store.
package struct PreferenceRefusal: Hashable, Sendable {
    /// The rule that it breaks; the raw value is the server's name of it.
    package enum Rule: String, Hashable, Sendable {
        case keys, storeBytes, valueBytes, keyBytes, valueMembers, valueDepth
        /// Something that is no property list.
        case type
        /// Another rule of the server's.
        case other

        /// Whether the store is too full.
        package var isQuota: Bool { self == .keys || self == .storeBytes || self == .valueBytes }
    }

    package var key: PreferenceKey
    package var rule: Rule
    /// What was wrong, and what to do.
    package var reason: String

    package init(key: PreferenceKey, rule: Rule, reason: String) {
        self.key = key
        self.rule = rule
        self.reason = reason
    }
}

/// What a copy is held to: the server's limits, so that most refusals happen at once.
package struct PreferenceLimits: Hashable, Sendable {
    package var keysMax = 1024
    package var keyBytesMax = 64
    package var valueBytesMax = 1_048_576
    package var storeBytesMax = 1_048_576
    package var valueMembersMax = 10_000
    /// Writes in one upload.
    package var writesMax = 1024
    /// Roughly how large an upload may be as JSON; a single write may be larger.
    package var uploadBytesMax = 3 * 1_048_576

    package init() {}

    /// What is wrong with a write that would turn a store of `before` into one of `after`; nil if nothing. A write that
    /// makes nothing worse passes, so that an overfull store can be emptied.
    func problem(
        _ key: PreferenceKey, _ value: PropertyValue?, before: PreferenceUsage, after: PreferenceUsage
    ) -> PreferenceRefusal? {
        let length = key.text.utf8.count
        if length == 0 || length > keyBytesMax {
            return PreferenceRefusal(
                key: key, rule: .keyBytes,
                reason: "the key '\(key.text.prefix(80))' has \(length) bytes of UTF-8; a key has 1 to \(keyBytesMax)")
        }
        guard let value else { return nil }
        if value.depth > PropertyValue.depthMax {
            return PreferenceRefusal(
                key: key, rule: .valueDepth,
                reason: "the value of '\(key.text)' is nested deeper than \(PropertyValue.depthMax); keep it as data")
        }
        if value.memberCount > valueMembersMax {
            return PreferenceRefusal(
                key: key, rule: .valueMembers,
                reason: "the value of '\(key.text)' has more than \(valueMembersMax) members; keep it as data")
        }
        if value.sizeBytes > valueBytesMax {
            return PreferenceRefusal(
                key: key, rule: .valueBytes,
                reason:
                    "the value of '\(key.text)' has \(value.sizeBytes) bytes and may have \(valueBytesMax); shorten it")
        }
        if after.keys > keysMax, after.keys > before.keys {
            return PreferenceRefusal(
                key: key, rule: .keys,
                reason: "'\(key.text)' would be key \(after.keys) of \(keysMax); remove another first")
        }
        if after.bytes > storeBytesMax, after.bytes > before.bytes {
            return PreferenceRefusal(
                key: key, rule: .storeBytes,
                reason: "with '\(key.text)' the store would hold \(after.bytes) bytes and may hold \(storeBytesMax); "
                    + "shorten or remove values first")
        }
        return nil
    }
}
