import RecordModel

extension OpenAPIDocument {
    private static let root = "/database/1/{container}/{environment}/{database}/"

    private static let databaseParameters: [APIParameter] = [
        APIParameter("container", .path, .string(example: "iCloud.com.example.app"), "The container."),
        APIParameter("environment", .path, environmentShape, "Which of the container's two stores."),
        APIParameter(
            "database", .path, .texts("public", "private", "shared"),
            "The shared database is not built yet; private zones have custom zones and change feeds."),
    ]

    private static let idempotencyKey = APIParameter(
        "Idempotency-Key", .header, .string(format: "uuid"),
        "A UUID of version 7. A request that is repeated with it within a day is applied once and answered as before.")

    private static let syncTokenParameter = APIParameter(
        "getCurrentSyncToken", .query, .boolean, "Adds the zone's current `syncToken` to the answer.")

    /// What any request to a database may fail with.
    static let statuses = [400, 401, 403, 404, 405, 409, 413, 421, 429, 500, 501, 503]

    private static func database(
        _ method: APIOperation.Method, _ action: String, tag: String, _ summary: String, request: APIContent?,
        answer: Shape,
        more: [APIParameter] = []
    ) -> APIOperation {
        var operation = APIOperation(method, root + action, tag: tag, summary)
        operation.parameters = databaseParameters + more
        operation.access = .clients
        operation.request = request
        operation.answers = [APIAnswer(200, "Done.", answer)] + APIAnswer.failures(statuses)
        return operation
    }

    private static func named(_ name: String, isRequired: Bool = true) -> APIContent {
        .json(.reference(name), isRequired: isRequired)
    }

    static let databaseOperations: [APIOperation] = {
        var modify = database(
            .post, "records/modify", tag: "Records", "Save and delete records of a zone",
            request: named("ModifyRecordsRequest"), answer: .reference("ModifyRecordsResponse"),
            more: [syncTokenParameter, idempotencyKey])
        modify.description =
            "Operations apply in order. In a custom zone, with `atomic`, all happen or none; elsewhere each stands alone."
        modify.answers.removeAll { $0.status == 400 }
        modify.answers.append(
            APIAnswer(
                400, "BAD_REQUEST, ATOMIC_ERROR", .anyOf([.reference("RequestError"), .reference("AtomicFailure")])))
        return [
            modify,
            database(
                .post, "records/lookup", tag: "Records", "Read records by name",
                request: named("LookupRecordsRequest"), answer: .reference("LookupRecordsResponse"),
                more: [syncTokenParameter]),
            database(
                .post, "records/query", tag: "Records", "Find records", request: named("QueryRecordsRequest"),
                answer: .reference("QueryRecordsResponse"), more: [syncTokenParameter]),
            database(
                .get, "zones/list", tag: "Zones", "List the zones", request: nil,
                answer: .reference("ZonesListResponse")),
            database(
                .post, "zones/list", tag: "Zones", "List the zones", request: .json(.any, isRequired: false),
                answer: .reference("ZonesListResponse")),
            database(
                .post, "zones/lookup", tag: "Zones", "Read zones by name", request: named("ZonesLookupRequest"),
                answer: .reference("ZonesLookupResponse")),
            database(
                .post, "zones/modify", tag: "Zones", "Make and delete zones", request: named("ZonesModifyRequest"),
                answer: .reference("ZonesModifyResponse"), more: [idempotencyKey]),
        ]
    }()

    static let changeOperations: [APIOperation] = {
        var records = database(
            .post, "records/changes", tag: "Changes", "Follow one zone", request: named("RecordChangesRequest"),
            answer: .reference("RecordChangesResponse"))
        var zones = database(
            .post, "zones/changes", tag: "Changes", "Which zones changed",
            request: named("ZonesChangesRequest", isRequired: false), answer: .reference("ZonesChangesResponse"))
        records.isDeprecated = true
        zones.isDeprecated = true
        return [
            database(
                .post, "changes/zone", tag: "Changes", "Follow zones", request: named("ZoneChangesRequest"),
                answer: .reference("ZoneChangesResponse")),
            database(
                .post, "changes/database", tag: "Changes", "Which zones changed",
                request: named("DatabaseChangesRequest", isRequired: false),
                answer: .reference("DatabaseChangesResponse")),
            records, zones,
        ]
    }()

    static let userOperations: [APIOperation] = {
        func legacy(
            _ method: APIOperation.Method, _ action: String, _ summary: String, request: APIContent?, answer: String
        ) -> APIOperation {
            var operation = database(
                method, action, tag: "Users", summary, request: request, answer: .reference(answer))
            operation.isDeprecated = true
            return operation
        }
        let none = APIContent.json(.any, isRequired: false)
        return [
            database(
                .get, "users/caller", tag: "Users", "Who the caller is", request: nil,
                answer: .reference("UsersCallerResponse")),
            database(
                .post, "users/caller", tag: "Users", "Who the caller is", request: none,
                answer: .reference("UsersCallerResponse")),
            legacy(.get, "users/current", "Who the caller is", request: nil, answer: "LegacyUser"),
            legacy(.post, "users/current", "Who the caller is", request: none, answer: "LegacyUser"),
            database(
                .get, "users/discover", tag: "Users", "Users in the caller's address book: none here", request: nil,
                answer: .reference("UsersResponse")),
            database(
                .post, "users/discover", tag: "Users", "Users who may be found", request: named("UsersDiscoverRequest"),
                answer: .reference("UsersResponse")),
            legacy(
                .post, "users/lookup/email", "Users by address", request: named("UsersLookupRequest"),
                answer: "LegacyUsersResponse"),
            legacy(
                .post, "users/lookup/id", "Users by record name", request: named("UsersLookupRequest"),
                answer: "LegacyUsersResponse"),
            legacy(
                .get, "users/lookup/contacts", "Users in the caller's address book: none here", request: nil,
                answer: "UsersResponse"),
            legacy(
                .post, "users/lookup/contacts", "Users in the caller's address book: none here", request: none,
                answer: "UsersResponse"),
        ]
    }()

    /// What CloudKit has and this version does not.
    static let laterOperations: [APIOperation] = {
        let actions: [(APIOperation.Method, String)] = [
            (.post, "records/resolve"), (.post, "records/accept"), (.post, "records/zip/prepare"),
            (.post, "assets/upload"), (.post, "assets/rereference"), (.get, "subscriptions/list"),
            (.post, "subscriptions/lookup"), (.post, "subscriptions/modify"),
        ]
        let database = actions.map { method, action in
            var operation = APIOperation(method, root + action, tag: "Later", "Not built yet")
            operation.parameters = databaseParameters
            operation.access = .clients
            operation.answers = APIAnswer.failures([400, 401, 403, 404, 405, 413, 421, 429, 500, 501, 503])
            return operation
        }
        let device = ["create", "register"].map { action in
            var operation = APIOperation(
                .post, "/device/1/{container}/{environment}/tokens/\(action)", tag: "Later", "Not built yet")
            operation.parameters = Array(databaseParameters.prefix(2))
            operation.answers = APIAnswer.failures([501, 503])
            return operation
        }
        return database + device
    }()
}
