import RecordModel

extension OpenAPIDocument {
    static let keyValueShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "PropertyValue", "A value with its type; the members of ARRAY and DICTIONARY have the same form.",
            .anyOf(typed)
        ),
        (
            "PropertyEntry", "",
            .answer([
                .need("key", .text), .need("value", .reference("PropertyValue")), .need("version", .text),
                .need("modified", .milliseconds), .may("device", .text),
            ])
        ),
        ("StoreUsage", "", .answer([.need("keys", .integer()), .need("bytes", .integer())])),
        (
            "KeyValuesGetRequest", "",
            .request([.need("keys", .array(.text, maxItems: Limits.keysMax))])
        ),
        ("KeyValuesGetResponse", "", .answer([.need("values", .array(.reference("PropertyEntry")))])),
        ("KeyValuesListRequest", "", .request([.may("after", .text.orNull, "From the page before.")])),
        (
            "KeyValuesListResponse", "",
            .answer([
                .need("values", .array(.reference("PropertyEntry"))),
                .may("after", .text, "Missing on the last page."), .need("usage", .reference("StoreUsage")),
            ])
        ),
        (
            "KeyValuesSetRequest", "All writes happen, or none.",
            .request([
                .need(
                    "writes",
                    .array(
                        .request([
                            .need("key", .text), .need("value", .any, "A value with its type, or plain; null deletes."),
                            .may("version", .text.orNull, "The version that must be there."),
                        ]))),
                .may("device", .text.orNull),
            ])
        ),
        (
            "KeyValuesSetResponse", "",
            .answer([
                .need(
                    "values",
                    .array(
                        .answer([
                            .need("key", .text), .may("version", .text), .may("deleted", .exactly(true)),
                        ]))),
                .need("usage", .reference("StoreUsage")),
            ])
        ),
        (
            "KeyValuesConflict", "Values that were written meanwhile, the first megabyte of them; nothing was changed.",
            .answer(
                requestErrorMembers + [
                    .need(
                        "conflicts",
                        .array(
                            .answer([
                                .need("key", .text), .may("version", .text), .may("value", .reference("PropertyValue")),
                            ])))
                ])
        ),
        (
            "KeyValuesChangesRequest", "",
            .request([.may("syncToken", .text.orNull), .may("resultsLimit", .integer(minimum: 1))])
        ),
        (
            "KeyValuesChangesResponse", "",
            .answer([
                .need(
                    "changes",
                    .array(
                        .answer([
                            .need("key", .text), .may("value", .reference("PropertyValue")),
                            .may("deleted", .exactly(true)), .need("version", .text), .need("modified", .milliseconds),
                            .may("device", .text),
                        ]))),
                .need("syncToken", .text), .need("moreComing", .boolean),
            ])
        ),
        (
            "KeyValuesWatchRequest", "",
            .request([
                .may("syncToken", .text.orNull, "Without one the answer comes at once."),
                .may(
                    "timeout", .integer(minimum: 0).orNull,
                    "Seconds; \(KeyValues.watchSecondsMax) by default, and at most."),
                .may("resultsLimit", .integer(minimum: 1)),
            ])
        ),
        (
            "KeyValuesUsage", "",
            .answer([
                .need("keys", .integer()), .need("bytes", .integer()),
                .need("limits", .answer(limits), "What the store is held to, by the names that errors use."),
            ])
        ),
        (
            "KeyValuesError",
            "A request that failed as a whole, with the limit that it met or what became of its token.",
            .answer(requestErrorMembers + details)
        ),
        (
            "KeyValuesStreamEnd", "The data of the last event of a stream.",
            .answer(
                [
                    .need("serverErrorCode", .reference("ErrorCode")), .need("reason", .text),
                    .may("retryAfter", .number),
                ] + details)
        ),
    ]

    private static let limits: [ShapeMember] =
        ["keys", "storeBytes", "valueBytes", "keyBytes", "valueMembers", "valueDepth", "writes"]
        .map { .need($0, .integer(minimum: 0)) }

    private static let details: [ShapeMember] = [
        .may(
            "limit", .text, "The limit that was met, such as `keys`, `storeBytes`, `valueBytes`, `keyBytes`, `watches`."
        ),
        .may("actual", .integer(), "What the request would have led to."), .may("max", .integer()),
        .may("key", .text, "The key at fault, where it is one key's fault."),
        .may("syncTokenExpired", .texts("restored", "tooOld", "ahead"), "Why the token cannot be followed."),
    ]

    private static let typed: [Shape] = [
        value("STRING", .text), value("BYTES", .base64), value("INT64", .integer()),
        value("DOUBLE", .anyOf([.number, .texts("nan", "inf", "-inf")])), value("TIMESTAMP", .milliseconds),
        value("BOOL", .boolean), value("ARRAY", .array(.reference("PropertyValue"))),
        value("DICTIONARY", .map(of: .reference("PropertyValue"))),
    ]

    private static func value(_ type: String, _ shape: Shape) -> Shape {
        .answer([.need("value", shape), .need("type", .texts(type))])
    }
}
