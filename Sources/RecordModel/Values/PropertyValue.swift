/// A value of a key: what a property list can hold.
///
/// Invariant: the entries of a dictionary ascend by key in byte order and no key occurs twice; `init(sorting:)` makes
/// them so and decoding refuses anything else, so equal dictionaries have equal bytes.
package enum PropertyValue: Hashable, Sendable {
    case string(String)
    case data([UInt8])
    case int64(Int64)
    case double(Double)
    /// Milliseconds since 1970-01-01 UTC; may be negative.
    case date(Int64)
    case bool(Bool)
    case array([PropertyValue])
    case dictionary([Entry])

    /// One member of a dictionary.
    package struct Entry: Hashable, Sendable {
        package var key: String
        package var value: PropertyValue
        package init(key: String, value: PropertyValue) {
            self.key = key
            self.value = value
        }
    }

    /// How deep arrays and dictionaries may be nested, the outermost counted. Each takes two levels of JSON, of which
    /// a document may have `Limits.jsonDepthMax`, envelope included.
    package static let depthMax = 12

    /// A dictionary of these entries in any order; nil if a key occurs twice.
    package init?(sorting entries: [Entry]) {
        let sorted = entries.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        for (one, next) in zip(sorted, sorted.dropFirst()) where one.key.utf8.elementsEqual(next.key.utf8) {
            return nil
        }
        self = .dictionary(sorted)
    }

    /// The least that a member of an array or dictionary counts for, in bytes, and the least for a dictionary's key.
    package static let memberBytesMin = 8

    /// What the value counts for, in bytes: text in UTF-8, data as it is, 8 for a number or a date, 1 for a Bool, the
    /// sum of what it holds for an array or a dictionary.
    ///
    /// Each member and each key inside a value counts at least `memberBytesMin`. An array or dictionary that is a
    /// member counts that much beside what it holds. So nothing inside a value is free: the limit of a store's bytes
    /// also limits how many members the store has.
    package var sizeBytes: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .data(let bytes): bytes.count
        case .int64, .double, .date: 8
        case .bool: 1
        case .array(let members): members.reduce(0) { $0 + $1.memberBytes }
        case .dictionary(let entries):
            entries.reduce(0) { $0 + max(Self.memberBytesMin, $1.key.utf8.count) + $1.value.memberBytes }
        }
    }

    /// What the value counts for as a member of another.
    private var memberBytes: Int {
        switch self {
        case .array, .dictionary: Self.memberBytesMin + sizeBytes
        case .string, .data, .int64, .double, .date, .bool: max(Self.memberBytesMin, sizeBytes)
        }
    }

    /// How many values are in it, at any depth; the value itself is not counted.
    package var memberCount: Int {
        switch self {
        case .string, .data, .int64, .double, .date, .bool: 0
        case .array(let members): members.reduce(members.count) { $0 + $1.memberCount }
        case .dictionary(let entries): entries.reduce(entries.count) { $0 + $1.value.memberCount }
        }
    }

    /// How many arrays and dictionaries enclose its innermost value, itself counted.
    package var depth: Int {
        switch self {
        case .string, .data, .int64, .double, .date, .bool: 0
        case .array(let members): 1 + (members.map(\.depth).max() ?? 0)
        case .dictionary(let entries): 1 + (entries.map(\.value.depth).max() ?? 0)
        }
    }
}
