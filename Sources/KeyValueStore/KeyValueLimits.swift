import RecordModel

/// What one store is held to.
package struct KeyValueLimits: Hashable, Sendable {
    /// Keys that have a value.
    package var keysMax = Limits.keysMax
    /// UTF-8 bytes of a key; at least one.
    package var keyBytesMax = Limits.keyBytesMax
    /// `PropertyValue.sizeBytes` of one value.
    package var valueBytesMax = Limits.valueBytesMax
    /// `PropertyValue.sizeBytes` of all values together; keys do not count.
    package var storeBytesMax = Limits.storeBytesMax
    /// Values inside one array or dictionary, at any depth. Not CloudKit's: it bounds the JSON of one value.
    package var valueMembersMax = Limits.listCountMax
    /// Writes in one batch: enough to delete every key and to set as many others.
    package var writesMax = 2 * Limits.keysMax
    /// Bytes of the stored values that a conflict repeats. The conflicts that come after are left out, never the first.
    package var conflictBytesMax = 1_048_576
    /// Deletions that a store remembers; at one more the older half is forgotten and the feed's floor rises.
    package var tombstonesMax = 4096
    /// How long the answer to an idempotency key is kept.
    package var idempotencyMilliseconds: Int64 = 24 * 3_600_000
    /// How long a deletion is remembered: 90 days, as of records.
    package var tombstoneMilliseconds: Int64 = 90 * 86_400_000
    /// How many rows past their time a command forgets, of deletions and of answers each; more than it makes on average,
    /// so that none stays for long.
    package var forgottenMax = 4

    package init() {}

    /// The ones in force. They are part of the state machine: replicas that apply one log must have the same.
    package static let standard = KeyValueLimits()
}
