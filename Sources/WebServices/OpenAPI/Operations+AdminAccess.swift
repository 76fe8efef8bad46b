import RecordModel

// Keys, roles, limits, the audit log, identity providers and sign-up.
extension OpenAPIDocument {
    private static let idParameter = APIParameter("id", .query, .text, "The key's id.", isRequired: true)
    private static let limitsContainer = APIParameter(
        "container", .query, .text, "The container; without it, the values of the whole cluster.")

    static let adminAccessOperations: [APIOperation] = [
        admin(
            .post, "users/password", "Set a user's password, or take it away", request: .reference("PasswordInput"),
            answer: .reference("PasswordState"), [nameParameter]),
        admin(.get, "keys", "List server-to-server keys", answer: .reference("ServerKeys")),
        admin(
            .post, "keys", "Make a server's public key known", request: .reference("ServerKeyInput"),
            answer: .reference("NewServerKey")),
        admin(.delete, "keys", "Revoke a key", answer: .reference("Revoked"), [idParameter]),
        admin(
            .get, "roles", "The custom roles of a schema, and who has them", answer: .reference("Roles"),
            [containerParameter, environmentParameter]),
        admin(
            .post, "roles/members", "Give a user a role", request: .reference("RoleMemberInput"),
            answer: .reference("RoleMember")),
        admin(
            .delete, "roles/members", "Take a role from a user", answer: .reference("RoleMember"),
            [
                containerParameter, environmentParameter,
                APIParameter("role", .query, .text, "The role.", isRequired: true),
                APIParameter("user", .query, .text, "The user's name.", isRequired: true),
            ]),
        admin(
            .get, "limits", "What a container, or each container, is held to", answer: .reference("Limits"),
            [limitsContainer]),
        admin(
            .patch, "limits", "Set limits; null takes a value back", request: .reference("LimitChanges"),
            answer: .reference("Limits"), [limitsContainer]),
        admin(
            .get, "limits/explain", "What a request would be held to, and which rule would refuse it now",
            answer: .reference("LimitsExplanation"),
            [
                containerParameter, environmentParameter,
                APIParameter("database", .query, .texts("public", "private"), "`public` by default."),
                APIParameter(
                    "action", .query, .string(example: "records/query"),
                    "What the request does, as in its path, or such as `kv/set`; `records/modify` by default."),
                APIParameter("user", .query, .text, "Whose data it is; needed for the private database."),
            ]),
        admin(
            .get, "usage", "What a container's databases hold, a page at a time", answer: .reference("Usage"),
            [
                containerParameter, environmentParameter,
                APIParameter("user", .query, .text, "Only this user's private database."),
                flag("zones", "Tell of each zone as well."),
                flag("verify", "Count all records anew, zone by zone, and compare; takes up to a minute a page."),
                nextParameter,
            ]),
        admin(
            .get, "audit", "An audit log, oldest records first", answer: .reference("AuditPage"),
            [
                APIParameter(
                    "log", .query, .texts("changes", "requests"),
                    "What administrators changed and who signed in; or refusals, failed sign-ins and schemas that grew by saves."
                ),
                APIParameter("after", .query, .integer(minimum: 0), "The number of the last record that is known."),
                APIParameter("limit", .query, .integer(minimum: 1), "500 by default, 1,000 at most."),
            ]),
        admin(.get, "providers", "List identity providers", answer: .reference("Providers")),
        admin(
            .post, "providers", "Add an identity provider, or give one new values",
            request: .reference("ProviderInput"), answer: .reference("Provider")),
        admin(
            .delete, "providers", "Remove an identity provider; accounts that came from it stay",
            answer: .reference("Deleted"),
            [APIParameter("name", .query, .text, "The provider's name.", isRequired: true)]),
        admin(.get, "sign-up", "Whether anybody may make an account", answer: .reference("SignUp")),
        admin(
            .patch, "sign-up", "Let anybody make an account, or nobody", request: .reference("SignUp"),
            answer: .reference("SignUp")),
    ]
}
