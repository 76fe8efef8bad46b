import RecordModel

extension OpenAPIDocument {
    private static let placeMembers: [ShapeMember] = [
        .need("container", .text), .need("environment", environmentShape),
    ]
    private static let limitNames = ContainerLimit.allCases.map(\.rawValue)

    static let adminAccessShapes: [(name: String, description: String, shape: Shape)] =
        [
            (
                "PasswordInput", "",
                .request([
                    .need("password", .text.orNull, "8 to 1,024 bytes of UTF-8; null takes it away."),
                    .may("endSessions", .boolean, "Whether the user's sessions end; true by default."),
                ])
            ),
            ("PasswordState", "", .answer([.need("name", .text), .need("hasPassword", .boolean)])),
            (
                "ServerKeys", "",
                .answer([
                    .need(
                        "keys",
                        .array(
                            .answer(
                                [.need("id", .text)] + placeMembers + [
                                    .need("user", .text, "Whom it speaks for."), .need("label", .text),
                                    .need("created", .milliseconds),
                                ])))
                ])
            ),
            (
                "ServerKeyInput", "",
                .request([
                    .need("container", .text), .may("environment", environmentShape),
                    .need("publicKey", .text, "A public key of the curve P-256, as PEM."), .need("user", .text),
                    .may("label", .text),
                ])
            ),
            (
                "NewServerKey", "",
                .answer(
                    [.need("id", .text, "What requests are signed under: 64 hexadecimal digits.")] + placeMembers + [
                        .need("user", .text), .need("userRecordName", .text),
                    ])
            ),
            (
                "Roles", "",
                .answer(
                    placeMembers + [
                        .need(
                            "roles",
                            .array(
                                .answer([
                                    .need("name", .text), .need("members", .array(.text), "Names of users."),
                                ])))
                    ])
            ),
            (
                "RoleMemberInput", "",
                .request([
                    .need("container", .text), .may("environment", environmentShape), .need("role", .text),
                    .need("user", .text),
                ])
            ),
            (
                "RoleMember", "",
                .answer(placeMembers + [.need("role", .text), .need("user", .text), .need("member", .boolean)])
            ),
            (
                "Limits", "What was set, and what follows from it for a container's users.",
                .answer([
                    .may("container", .text), .may("users", .integer(minimum: 0)),
                    .need(
                        "limits",
                        .array(
                            .answer([
                                .need("name", .oneOfTexts(limitNames)),
                                .need("value", .integer(minimum: 0), "\(ContainerLimit.unlimited) is unlimited."),
                                .need("source", .texts("default", "cluster", "container")),
                                .need("unit", .oneOfTexts(ContainerLimit.Unit.allCases.map(\.rawValue))),
                            ]))),
                    .need(
                        "effective", .map(of: .integer(minimum: 0)),
                        "With the container's users; empty without a container."),
                ])
            ),
            (
                "LimitChanges", "Limits by name; null takes a value back.",
                .object(
                    ObjectShape(
                        ContainerLimit.allCases.map { limit in
                            .may(
                                limit.rawValue,
                                .integer(minimum: limit.range.lowerBound, maximum: limit.range.upperBound).orNull,
                                limit.unit.rawValue)
                        }, others: .none))
            ),
        ] + usageShapes + auditShapes + providerShapes

    private static let auditShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "AuditPage", "",
            .answer([
                .need("records", .array(.reference("AuditRecord"), maxItems: 1_000)), .need("moreComing", .boolean),
                .need("firstSequence", .integer(minimum: 0), "The number that the first record must have."),
                .need("firstPreviousHash", .text, "The hash that the first record must follow."),
            ])
        ),
        (
            "AuditRecord", "One link of the chain.",
            .answer([
                .need("sequence", .integer(minimum: 1)), .need("time", .milliseconds),
                .need("actor", .text, "Such as `administrator` or `user ada`."), .need("action", .text),
                .need("subject", .text), .need("outcome", .text, "`done`, or why it was refused."),
                .need("requestID", .text), .need("address", .text),
                .need("count", .integer(minimum: 1), "How many alike it stands for."),
                .need("previousHash", .text), .need("hash", .text, "SHA-256, hexadecimal."),
            ])
        ),
    ]

    private static let providerShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "Provider", "An OpenID Connect issuer whose users may sign in.",
            .answer([
                .need("name", .text), .need("issuer", .text), .need("clientID", .text),
                .need("hasSecret", .boolean), .need("allowsSignUp", .boolean),
            ])
        ),
        ("Providers", "", .answer([.need("providers", .array(.reference("Provider")))])),
        (
            "ProviderInput", "",
            .request([
                .need("name", .text, "What the sign-in page calls it."),
                .need("issuer", .text, "Its https address, as its identity tokens have it."),
                .need("clientID", .text),
                .may(
                    "clientSecret", .text.orNull,
                    "Kept sealed, never shown. Missing: as before; null: a public client."),
                .may(
                    "allowsSignUp", .boolean,
                    "Whether its users get an account at their first sign-in. Missing: as before."),
            ])
        ),
        ("SignUp", "", .answer([.need("open", .boolean)])),
    ]
}
