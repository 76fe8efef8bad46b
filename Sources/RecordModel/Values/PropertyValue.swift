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

    /// What the value counts for, in bytes: text in UTF-8, data as it is, 8 for a number or a date, 1 for a Bool, the
    /// sum of what it holds for an array or a dictionary, whose keys count too.
    package var sizeBytes: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .data(let bytes): bytes.count
        case .int64, .double, .date: 8
        case .bool: 1
        case .array(let members): members.reduce(0) { $0 + $1.sizeBytes }
        case .dictionary(let entries): entries.reduce(0) { $0 + $1.key.utf8.count + $1.value.sizeBytes }
        }
    }

    /// How many values are in it, at any depth; the value itself is not counted. Empty members have no size, so this
    /// is what bounds them.
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
