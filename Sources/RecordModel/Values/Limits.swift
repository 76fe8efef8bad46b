/// The sizes and counts that requests are held to; CloudKit's published ones where it publishes any (`docs/limits.md`
/// has the source of each, and the error that a request over it gets).
package enum Limits {
    // Requests and answers.

    /// Operations in one request.
    package static let operationsMax = 200
    /// Records in one answer, of each zone where an answer is for several.
    package static let recordsPerPageMax = 200
    /// Bytes of one request's body.
    package static let requestBodyBytesMax = 4 * 1_048_576
    /// Nested arrays and objects in a JSON document.
    package static let jsonDepthMax = 32
    /// Keys in one `desiredKeys`.
    package static let desiredKeysMax = 1000

    // Records.

    /// Fields of one record, names and values, without assets.
    package static let recordSizeBytesMax = 1_048_576
    /// Characters of a record name, zone name, owner name, record type or field name.
    package static let nameLengthMax = 255
    /// Members of one list value.
    package static let listCountMax = 10_000
    /// Members of all lists in one request. A member of two bytes of JSON may be nine bytes of a command: this keeps
    /// the command of a 4 MB body below 6 MB.
    package static let listMembersPerRequestMax = 250_000
    /// Bytes that a shard remembers of one caller's requests with idempotency keys, in one database: a gigabyte, which
    /// is fifty requests of one record a second for the 24 hours that they are remembered.
    package static let rememberedBytesMax: Int64 = 1 << 30
    /// The same of all callers without a session who use one API token; of others at least as much, and at most a
    /// quarter of the database's quota.
    package static let rememberedBytesMin: Int64 = 1 << 20
    /// References with the action `DELETE_SELF` to one record.
    package static let deleteSelfReferencesMax = 750
    /// Records that one deletion in a custom zone may take along, itself included.
    package static let cascadeMax = 10_000
    /// Rows of one record in all indexes together: one for each distinct value or word, and one for each index whose
    /// field is missing.
    package static let indexRowsPerRecordMax = 20_000
    /// Files that one record names, each as often as it does: an answer has to have room for their URLs.
    package static let filesPerRecordMax = 10_000
    /// Deleted zones that a shard remembers for each database, so that syncs report them.
    package static let deletedZonesMax = 10_000
    /// Rows that one request may write and remove, those of indexes included. A single operation may always.
    package static let rowsPerRequestMax = 100_000
    /// Rows that a request writes for each token of its container's rate.
    package static let rowsPerToken = 1_000

    // Queries.

    /// Filters in one query.
    package static let filtersMax = 32
    /// Sort keys in one query.
    package static let sortsMax = 8
    /// Fields whose words are searched where a filter names none.
    package static let searchedFieldsMax = 255
    /// Members of the list in an `IN` filter, or one for all or any values of a list.
    package static let inListMax = 250

    // Zones and schema.

    /// Custom zones of one database on one shard.
    package static let zonesPerDatabaseMax = 10_000
    /// Record types of a schema.
    package static let typesMax = 500
    /// Fields of a record type, without the system's.
    package static let fieldsMax = 1000
    /// Bytes of a schema's encoding: it is logged whole with each change, by the directory and by every shard.
    package static let schemaBytesMax = 1_048_576

    // Subscriptions.

    /// Subscriptions of one user in a container's environment.
    package static let subscriptionsMax = 500
    /// Fields of a record that a notification carries.
    package static let notificationFieldsMax = 3
    /// Notifications that are kept of one user in a container's environment.
    package static let notificationsMax: Int64 = 10_000

    // The key-value sidecar: one store per container and user.
    /// Keys that have a value, in one store.
    package static let keysMax = 1024
    /// UTF-8 bytes of one key; at least one.
    package static let keyBytesMax = 64
    /// `PropertyValue.sizeBytes` of one value.
    package static let valueBytesMax = 1_048_576
    /// `PropertyValue.sizeBytes` of all values of one store together; keys do not count.
    package static let storeBytesMax = 1_048_576
}
