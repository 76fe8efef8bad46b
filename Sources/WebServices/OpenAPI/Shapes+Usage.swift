import RecordModel

extension OpenAPIDocument {
    private static let amounts: [ShapeMember] = [.need("bytes", .integer()), .need("records", .integer())]
    private static let recount = ShapeMember.may(
        "recount", .answer(amounts + [.need("isEqual", .boolean, "Whether each counter in it is right.")]),
        "Where it was asked for: what the records come to, of what this page tells of.")
    private static let warning = ShapeMember.may("warning", .text, "What comes near its limit.")

    static let usageShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "Usage", "A page of what a container's databases hold.",
            .answer([
                .need("container", .text), .need("environment", environmentShape),
                .need("databases", .array(.reference("DatabaseUsage"))),
                .may("next", .text, "Where the next page goes on (`after`); missing on the last one."),
                .need(
                    "transfer",
                    .answer([
                        .need("month", .integer(), "Year and month, such as 202611."), .need("bytes", .integer()),
                        .need("limitBytes", .integer(minimum: 0)), warning,
                    ]), "What requests for public data have carried this month."),
            ])
        ),
        (
            "DatabaseUsage",
            "A database over all shards. One with many zones goes on in the next page, with other zones.",
            .answer(
                [
                    .need("environment", environmentShape), .need("scope", .texts("public", "private", "shared")),
                    .may("user", .text, "The account's name; missing where it is gone."),
                    .may("userRecordName", .text),
                ] + amounts + [
                    .need("allottedBytes", .integer(), "What shards may hold without asking for more."),
                    .need("limitBytes", .integer(minimum: 0)), .need("limitRecords", .integer(minimum: 0)), warning,
                    .need(
                        "zones", .array(.answer([.need("name", .text)] + amounts + [recount])),
                        "By name; empty where they were not asked for."),
                    recount,
                ])
        ),
        (
            "LimitsExplanation", "What a request would be held to.",
            .answer([
                .need(
                    "rules",
                    .array(
                        .answer([
                            .need("name", .text), .need("limit", .integer(minimum: 0)), .may("used", .integer()),
                            .may("remaining", .integer(minimum: 0)),
                            .may("resetSeconds", .number, "Until there is more."),
                            .need("fires", .boolean, "Whether it would refuse the request now."),
                            .need("reason", .text),
                        ]))), .need("verdict", .text),
            ])
        ),
    ]
}
