import RecordModel

extension OpenAPIDocument {
    static let environmentShape = Shape.texts("development", "production")

    static let adminShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "Containers", "",
            .answer([
                .need(
                    "containers",
                    .array(
                        .answer([
                            .need("name", .text), .need("created", .milliseconds),
                            .need("keys", .integer(), "How many keys of encrypted fields it has."),
                        ])))
            ])
        ),
        ("Named", "", .answer([.need("name", .text)])),
        ("NameInput", "", .request([.need("name", .text)])),
        ("RotatedKey", "", .answer([.need("container", .text), .need("key", .integer(minimum: 1))])),
        (
            "Account", "",
            .answer([
                .need("name", .text), .need("created", .milliseconds), .may("email", .text), .may("givenName", .text),
                .may("familyName", .text), .need("discoverable", .boolean), .need("hasPassword", .boolean),
                .may("identity", .reference("ExternalIdentity")),
            ])
        ),
        ("Accounts", "", .answer([.need("users", .array(.reference("Account"))), .may("next", .text)])),
        (
            "ExternalIdentity", "Who the user is at an identity provider.",
            .answer([.need("issuer", .text), .need("subject", .text)])
        ),
        (
            "AccountInput", "",
            .request(
                [.need("name", .text), .may("password", .text.orNull, "8 to 1,024 bytes of UTF-8.")] + accountMembers)
        ),
        ("AccountChanges", "What is missing stays; null and the empty text clear.", .request(accountMembers)),
        ("Deleted", "", .answer([.need("name", .text), .need("deleted", .exactly(true))])),
        (
            "Token", "A token, without its secret.",
            .answer([
                .need("id", .text), .need("label", .text), .need("created", .milliseconds),
                .need("kind", .texts("api", "session", "sign-in"), "Sessions of `sign-in` began on the page."),
                .need("container", .text), .may("environment", environmentShape, "Of API tokens."),
                .may("origins", .array(.text), "Of API tokens: web pages that may use it; empty: all."),
                .may("callbackURL", .text, "Of API tokens: where sign-in sends the browser."),
                .may("user", .text, "Of sessions."), .may("expires", .milliseconds, "Of sessions."),
            ])
        ),
        ("Tokens", "", .answer([.need("tokens", .array(.reference("Token"))), .may("next", .text)])),
        (
            "TokenInput", "",
            .request([
                .need("kind", .texts("api", "session")), .need("container", .text),
                .may("environment", environmentShape), .may("user", .text),
                .may("origins", .array(.text).orNull, "Web pages that may use an API token; missing or empty: all."),
                .may("callbackURL", .text.orNull, "Where sign-in through an API token sends the browser."),
                .may("lifetimeSeconds", .integer(minimum: 1)),
                .may("label", .text), .may("secret", .text.orNull, "A secret of your own; 32 to 256 characters."),
            ])
        ),
        (
            "NewToken", "",
            .answer([
                .need("id", .text), .need("secret", .text, "Shown here and never again."),
                .may("userRecordName", .text), .may("expires", .milliseconds),
            ])
        ),
        ("Revoked", "", .answer([.need("id", .text), .need("revoked", .exactly(true))])),
        (
            "NodeStatus", "",
            .answer([
                .need("node", .integer()), .need("pid", .integer()), .need("clusterID", .text),
                .need("ready", .boolean),
                .need("replicas", .array(.reference("ReplicaStatus"))),
            ])
        ),
        (
            "ReplicaStatus", "",
            .answer([
                .need("group", .integer()), .need("role", .text), .need("term", .integer()), .may("leader", .integer()),
                .need("commitIndex", .integer()), .need("appliedIndex", .integer()), .may("failure", .text),
            ])
        ),
        ("Leader", "", .answer([.need("leader", .boolean), .need("shard", .integer())])),
        ("StateHash", "", .answer([.need("hash", .text)])),
        (
            "StateHashes", "",
            .answer([
                .need("hashes", .array(.answer([.need("index", .integer()), .need("hash", .text)])))
            ])
        ),
        ("Live", "", .answer([.need("live", .exactly(true))])),
        ("Ready", "", .answer([.need("ready", .exactly(true))])),
    ]

    private static let accountMembers: [ShapeMember] = [
        .may("email", .text.orNull), .may("givenName", .text.orNull), .may("familyName", .text.orNull),
        .may("discoverable", .boolean),
        .may(
            "identity", .anyOf([.reference("ExternalIdentity"), .null]), "Who the user is at an identity provider."),
    ]

    static let adminSchemaShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "SchemaChange", "A change in words, and what it does besides.",
            .answer([
                .need("change", .text), .may("consequence", .text), .need("losesData", .boolean),
            ])
        ),
        (
            "SchemaPlan", "What was changed, or would be.",
            .answer(versionMembers + [.need("applied", .boolean)] + planMembers)
        ),
        (
            "SchemaReset", "",
            .answer(
                versionMembers + [
                    .need("applied", .boolean), .need("generation", .integer(), "Grows with each reset."),
                ] + planMembers)
        ),
        (
            "SchemaValidity", "A text that is a schema; with a container, also what its import would change.",
            .answer([
                .need("valid", .exactly(true)), .need("types", .integer()),
                .may("changes", .array(.reference("SchemaChange"))), .may("kept", .array(.reference("KeptChange"))),
            ])
        ),
        ("KeptChange", "What the text lacks and is kept nevertheless.", .answer([.need("change", .text)])),
        (
            "SchemaText", "A schema in a JSON object; the text may also be the body itself.",
            .request([.need("schema", .text)])
        ),
        (
            "IndexInput", "",
            .request([
                .need("type", .text), .need("field", .text),
                .need("index", .texts("QUERYABLE", "SORTABLE", "SEARCHABLE")),
            ])
        ),
        (
            "SchemaState", "",
            .answer(
                versionMembers + [
                    .need("generation", .integer()), .need("roles", .array(.text)),
                    .need("types", .array(.reference("RecordType"))),
                ])
        ),
        (
            "RecordType", "",
            .answer([
                .need("name", .text), .need("fields", .array(.reference("FieldDefinition"))),
                .need(
                    "grants",
                    .array(.answer([.need("role", .text), .need("permissions", .array(.text))]))),
            ])
        ),
        (
            "FieldDefinition", "",
            .answer([
                .need("name", .text), .need("type", .text), .need("system", .boolean),
                .need("indexes", .array(.reference("IndexState"))),
            ])
        ),
        (
            "IndexState", "An index, and how far it is built.",
            .answer([
                .need("index", .texts("QUERYABLE", "SORTABLE", "SEARCHABLE")), .need("ready", .boolean),
                .need("done", .integer()), .need("total", .integer()),
            ])
        ),
    ]

    private static let versionMembers: [ShapeMember] = [
        .need("container", .text), .need("environment", environmentShape), .need("version", .integer()),
    ]

    private static let planMembers: [ShapeMember] = [
        .need("changes", .array(.reference("SchemaChange"))),
        .need("kept", .array(.reference("KeptChange")), "What is not taken away although the wanted schema lacks it."),
    ]
}
