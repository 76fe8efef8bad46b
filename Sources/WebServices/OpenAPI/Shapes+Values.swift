import RecordModel

extension OpenAPIDocument {
    static let errorShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "ErrorCode", "CloudKit's error codes; clients know these and no others.",
            .oneOfTexts(ErrorCode.allCases.map(\.rawValue))
        ),
        (
            "RequestError", "A request that failed as a whole.",
            .answer(requestErrorMembers)
        ),
        (
            "AtomicFailure", "An atomic batch of which an operation failed: nothing was saved, and `records` says why.",
            .answer(
                requestErrorMembers + [
                    .need("records", .array(.reference("RecordError")), "One for each operation, in its order."),
                    .may("syncToken", .base64),
                ])
        ),
        (
            "RecordError", "The result for a record that failed.",
            .answer(
                itemErrorMembers + [
                    .may("recordName", .text),
                    .may(
                        "serverRecord", .reference("Record"),
                        "With CONFLICT and EXISTS: the record as the server has it, if the caller may read it. Not in CloudKit."
                    ),
                ])
        ),
        (
            "ZoneError", "The result for a zone that failed.",
            .answer([.need("zoneID", .reference("ZoneID"))] + itemErrorMembers)
        ),
    ]

    private static let itemErrorMembers: [ShapeMember] = [
        .need("reason", .text, "What was wrong, where, and what to do."),
        .need("serverErrorCode", .reference("ErrorCode")),
        .may("retryAfter", .number, "Seconds, also in fractions, after which a retry may help; without it none does."),
    ]

    static let requestErrorMembers: [ShapeMember] =
        [.need("uuid", .text, "The request's own name, which the logs have too.")] + itemErrorMembers + [
            .may("redirectURL", .text, "Where to sign in, with AUTHENTICATION_REQUIRED.")
        ]

    static let valueShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "FieldInput", "A field as clients send it. Null instead of it, or as its value, clears the field.",
            .anyOf([
                .null,
                .request([
                    .need("value", .any, "As in `Field`; numbers may be texts, and true and false are 1 and 0."),
                    .may(
                        "type", .string(example: "STRING"),
                        "Without it the schema counts, and without that the value's looks."),
                    .may("isEncrypted", .boolean, "For fields that the schema has as ENCRYPTED."),
                ]),
            ])
        ),
        ("Field", "A field as the server sends it.", .anyOf(fieldShapes)),
        (
            "Location", "A place: degrees, metres, metres a second, milliseconds since 1970.",
            .answer([
                .need("latitude", .number), .need("longitude", .number), .may("horizontalAccuracy", .number),
                .may("verticalAccuracy", .number), .may("altitude", .number), .may("speed", .number),
                .may("course", .number), .may("timestamp", .milliseconds),
            ])
        ),
        (
            "Reference", "Another record.",
            .answer([
                .need("recordName", .text),
                .need("action", .texts("NONE", "DELETE_SELF", "VALIDATE")),
                .may("zoneID", .reference("ZoneID")),
            ])
        ),
        (
            "Stamp", "When, by whom and from what a record was made or changed.",
            .answer([
                .need("timestamp", .milliseconds), .need("userRecordName", .text), .need("deviceID", .text),
            ])
        ),
    ]

    /// Numbers may be asked for as texts.
    private static let scalars: [(type: String, shape: Shape)] = [
        ("STRING", .text), ("INT64", .anyOf([.integer(), .text])), ("DOUBLE", .anyOf([.number, .text])),
        ("TIMESTAMP", .anyOf([.milliseconds, .text])), ("BYTES", .base64), ("LOCATION", .reference("Location")),
        ("REFERENCE", .reference("Reference")),
    ]

    private static let fieldShapes: [Shape] =
        scalars.flatMap { type, shape -> [Shape] in
            [field(type, shape), field(type + "_LIST", .array(shape))]
        } + [
            field("UNKNOWN_LIST", .array(.any, maxItems: 0)),
            .answer([
                .need("value", .base64), .need("type", .texts("ENCRYPTED_BYTES")), .need("isEncrypted", .exactly(true)),
            ]),
        ]

    private static func field(_ type: String, _ shape: Shape) -> Shape {
        .answer([.need("value", shape), .need("type", .texts(type)), .may("isEncrypted", .exactly(true))])
    }
}
