/// The sizes and counts that requests are held to; CloudKit's published ones where it publishes any (`docs/limits.md`).
package enum Limits {
    /// Operations in one request, and records in one response.
    package static let operationsMax = 200
    package static let recordsPerPageMax = 200
    /// Fields of one record, names and values, without assets.
    package static let recordSizeBytesMax = 1_048_576
    /// Characters of a record name, zone name, record type or field name.
    package static let nameLengthMax = 255
    /// Bytes of one request's body.
    package static let requestBodyBytesMax = 4 * 1_048_576
    /// Members of one list value.
    package static let listCountMax = 10_000
    /// Filters in one query, and sort keys.
    package static let filtersMax = 32
    package static let sortsMax = 8
    /// Members of an `IN` filter.
    package static let inListMax = 250
    /// Nested arrays and objects in a JSON document.
    package static let jsonDepthMax = 32

    // The key-value sidecar: one store per container and user.
    package static let keysMax = 1024
    package static let keyBytesMax = 64
    package static let valueBytesMax = 1_048_576
    package static let storeBytesMax = 1_048_576
}
