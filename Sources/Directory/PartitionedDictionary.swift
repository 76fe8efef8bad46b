/// A dictionary in parts, for tables that grow long and change often: a change of a copy copies one part of 256, not
/// everything.
package struct PartitionedDictionary<Key: Hashable & Sendable, Value: Hashable & Sendable>: Equatable, Sendable {
    private static var partCount: Int { 256 }

    private var parts = [[Key: Value]](repeating: [:], count: partCount)
    package private(set) var count = 0

    init() {}

    /// A part's own dictionary hashes with another seed, so that keys of one part do not collide in it.
    private static func part(of key: Key) -> Int { key.hashValue & (partCount - 1) }

    package internal(set) subscript(key: Key) -> Value? {
        get { parts[Self.part(of: key)][key] }
        set {
            let part = Self.part(of: key)
            let old = parts[part].count
            parts[part][key] = newValue
            count += parts[part].count - old
        }
    }

    package var isEmpty: Bool { count == 0 }
    /// In no order; put together at each look.
    package var keys: [Key] { parts.flatMap(\.keys) }
    /// In no order; put together at each look.
    package var values: [Value] { parts.flatMap(\.values) }

    /// All of it in one dictionary; copies everything.
    var joined: [Key: Value] {
        var result: [Key: Value] = [:]
        result.reserveCapacity(count)
        for part in parts { result.merge(part) { _, new in new } }
        return result
    }
}
