import RecordModel

extension OpenAPIDocument {
    static let recordShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "Record", "A record as the server sends it.",
            .answer([
                .need("recordName", .text), .need("recordType", .text),
                .need("fields", .map(of: .reference("Field"))),
                .need("pluginFields", .answer([]), "Always empty."),
                .need("recordChangeTag", .text, "The record's version."),
                .need("created", .reference("Stamp")), .need("modified", .reference("Stamp")),
                .need("deleted", .exactly(false)),
                .may("parent", .answer([.need("recordName", .text)])),
                .may("zoneID", .reference("ZoneID"), "In results from more than one zone."),
            ])
        ),
        (
            "Tombstone",
            "What is left of a deleted record; in change feeds with a change tag and a record type of null.",
            .answer([
                .need("recordName", .text), .need("deleted", .exactly(true)),
                .may("recordType", .null), .may("recordChangeTag", .text),
            ])
        ),
        (
            "RecordInput",
            "A record as clients send it. What the server made of it before may come along, and is ignored.",
            .request([
                .may(
                    "recordName", .text,
                    "1 to 255 printable ASCII characters; the server makes one for a create without."),
                .may("recordType", .text, "Needed where the operation may create."),
                .may("recordChangeTag", .text, "Needed by update, replace and delete."),
                .may("fields", .map(of: .reference("FieldInput")).orNull),
                .may("parent", .request([.need("recordName", .text)]).orNull, "Null takes the record from its parent."),
            ])
        ),
        (
            "RecordOperation", "",
            .request([
                .need(
                    "operationType",
                    .texts("create", "update", "forceUpdate", "replace", "forceReplace", "delete", "forceDelete")),
                .need("record", .reference("RecordInput")),
                .may("desiredKeys", .array(.text).orNull), .may("numbersAsStrings", .boolean),
            ])
        ),
        (
            "ModifyRecordsRequest", "",
            .request(
                [
                    .need(
                        "operations", .array(.reference("RecordOperation"), maxItems: Limits.operationsMax),
                        "In this order; one for a record."),
                    .may("atomic", .boolean, "True by default; it counts in custom zones only."),
                ] + readingMembers)
        ),
        (
            "ModifyRecordsResponse", "",
            .answer([
                .need(
                    "records",
                    .array(.anyOf([.reference("Record"), .reference("Tombstone"), .reference("RecordError")])),
                    "One for each operation, in its order."),
                .may("syncToken", .base64, "With the parameter getCurrentSyncToken."),
            ])
        ),
        (
            "LookupRecordsRequest", "",
            .request(
                [
                    .need(
                        "records",
                        .array(
                            .request([.need("recordName", .text), .may("desiredKeys", .array(.text).orNull)]),
                            maxItems: Limits.recordsPerPageMax))
                ] + readingMembers)
        ),
        (
            "LookupRecordsResponse", "",
            .answer([
                .need(
                    "records", .array(.anyOf([.reference("Record"), .reference("RecordError")])),
                    "One for each name, in its order."),
                .may("syncToken", .base64, "With the parameter getCurrentSyncToken."),
            ])
        ),
    ]

    /// What requests for records have in common.
    static let readingMembers: [ShapeMember] = [
        .may("zoneID", .reference("ZoneIDInput"), "The default zone, where it is missing."),
        .may("desiredKeys", .array(.text, maxItems: Limits.desiredKeysMax).orNull, "Null is every field, empty none."),
        .may("numbersAsStrings", .boolean, "Whether INT64, DOUBLE and TIMESTAMP values come as texts."),
    ]

    static let limitMember = ShapeMember.may(
        "resultsLimit", .integer(minimum: 1), "At most and by default \(Limits.recordsPerPageMax); more is capped.")

    static let queryShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "QueryRecordsRequest", "",
            .request(
                [
                    .need("query", .reference("Query")),
                    .may("zoneWide", .boolean, "Every zone of a private database; ignored where a zone is named."),
                    limitMember,
                    .may(
                        "continuationMarker", .text.orNull,
                        "From the page before; the rest of the request must be the same."),
                    .may("explain", .boolean, "Whether the answer says how the query was run. Not in CloudKit."),
                ] + readingMembers)
        ),
        (
            "Query", "Records of a type for which all filters hold.",
            .request([
                .need("recordType", .text),
                .may("filterBy", .array(.reference("Filter"), maxItems: Limits.filtersMax)),
                .may("sortBy", .array(.reference("Sort"), maxItems: Limits.sortsMax)),
            ])
        ),
        (
            "Filter", "Either `fieldName` or `systemFieldName`; none, for the words of all searchable fields.",
            .request([
                .need("comparator", .oneOfTexts(Comparator.allCases.map(\.rawValue))),
                .may("fieldName", .text), .may("systemFieldName", systemFields),
                .need("fieldValue", .reference("FieldInput")),
                .may("distance", .number, "Metres; NEAR needs it."),
            ])
        ),
        (
            "Sort", "",
            .request([
                .may("fieldName", .text), .may("systemFieldName", systemFields), .may("ascending", .boolean),
                .may("relativeLocation", .any, "Sort by the distance from this place."),
            ])
        ),
        (
            "QueryRecordsResponse", "",
            .answer([
                .need("records", .array(.reference("Record"), maxItems: Limits.recordsPerPageMax)),
                .may("continuationMarker", .base64, "Missing on the last page."),
                .may("syncToken", .base64, "With the parameter getCurrentSyncToken."),
                .may("explanation", .reference("Explanation")),
            ])
        ),
        (
            "Explanation", "How a query was run, for people; its members may change.",
            .object(ObjectShape([], others: .any))
        ),
    ]

    private static let systemFields = Shape.texts(
        "recordName", "share", "parent", "createdUserRecordName", "createdTimestamp", "modifiedTimestamp",
        "modifiedUserRecordName")
}
