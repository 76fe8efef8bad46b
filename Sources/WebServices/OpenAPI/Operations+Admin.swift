import RecordModel

extension OpenAPIDocument {
    static let healthOperations: [APIOperation] = {
        func operation(_ path: String, _ summary: String, _ shape: Shape, _ failures: [Int]) -> APIOperation {
            var operation = APIOperation(.get, path, tag: "Health", summary)
            operation.answers = [APIAnswer(200, "Yes.", shape)] + APIAnswer.failures(failures)
            return operation
        }
        return [
            operation("/health/live", "Whether the process answers", .reference("Live"), []),
            operation("/health/ready", "Whether the node can serve", .reference("Ready"), [503]),
            operation("/openapi.json", "This document", .object(ObjectShape([], others: .any)), [503]),
        ]
    }()

    static let containerParameter = APIParameter("container", .query, .text, "The container.", isRequired: true)
    static let environmentParameter = APIParameter(
        "environment", .query, environmentShape, "`development` by default.")
    static let nameParameter = APIParameter("name", .query, .text, "The user's name.", isRequired: true)
    private static let groupParameter = APIParameter(
        "group", .query, .integer(minimum: 0), "The Raft group: 0 is the directory.", isRequired: true)

    static let nextParameter = APIParameter("after", .query, .text, "What `next` of the last page said.")
    private static let pageLimit = APIParameter(
        "limit", .query, .integer(minimum: 1), "1,000 by default, and at most.")

    static func flag(_ name: String, _ description: String) -> APIParameter {
        APIParameter(name, .query, .texts("true", "false"), description)
    }

    static func admin(
        _ method: APIOperation.Method, _ path: String, _ summary: String, request: Shape? = nil, answer: Shape,
        type: String = "application/json", _ parameters: [APIParameter] = []
    ) -> APIOperation {
        var operation = APIOperation(method, "/admin/1/\(path)", tag: "Administration", summary)
        operation.parameters = parameters
        operation.access = .administrator
        operation.request = request.map { APIContent.json($0) }
        operation.answers =
            [APIAnswer(200, "Done.", answer, type: type)]
            + APIAnswer.failures([400, 401, 404, 409, 413, 429, 500, 503])
        return operation
    }

    static let adminOperations: [APIOperation] = [
        admin(.get, "containers", "List containers", answer: .reference("Containers")),
        admin(
            .post, "containers", "Make a container", request: .reference("NameInput"), answer: .reference("Named")),
        admin(
            .post, "containers/keys", "Give a container a new key for encrypted fields",
            answer: .reference("RotatedKey"), [containerParameter]),
        admin(
            .get, "users", "List users by name", answer: .reference("Accounts"),
            [APIParameter("after", .query, .text, "The name that `next` of the last page said."), pageLimit]),
        admin(.post, "users", "Make a user", request: .reference("AccountInput"), answer: .reference("Account")),
        admin(
            .patch, "users", "Change a user", request: .reference("AccountChanges"), answer: .reference("Account"),
            [nameParameter]),
        admin(.delete, "users", "Delete a user", answer: .reference("Deleted"), [nameParameter]),
        admin(
            .get, "tokens", "List tokens", answer: .reference("Tokens"),
            [
                APIParameter("container", .query, .text, "Those of one container."),
                APIParameter(
                    "kind", .query, .string(example: "api,session"),
                    "`api`, `session` or `sign-in`; several with commas between them."),
                nextParameter, pageLimit,
            ]),
        admin(
            .post, "tokens", "Make an API token or a session", request: .reference("TokenInput"),
            answer: .reference("NewToken")),
        admin(
            .delete, "tokens", "Revoke a token", answer: .reference("Revoked"),
            [APIParameter("id", .query, .text, "The token's id.", isRequired: true)]),
        admin(.get, "status", "What this node is at", answer: .reference("NodeStatus")),
        admin(
            .get, "leader", "Whether this node leads the shard of a container's public data",
            answer: .reference("Leader"), [containerParameter, environmentParameter]),
        admin(
            .post, "state-hash", "Have every replica of a group hash its state", answer: .reference("StateHash"),
            [groupParameter]),
        admin(
            .get, "state-hash", "The hashes that this node's replica recorded", answer: .reference("StateHashes"),
            [groupParameter]),
        admin(
            .get, "metrics", "Counters in the Prometheus text form", answer: .text, type: "text/plain"),
    ]

    static let adminSchemaOperations: [APIOperation] = {
        let place = [containerParameter, environmentParameter]
        let text = Shape.anyOf([.reference("SchemaText"), .text])
        let dryRun = flag("dryRun", "Only show what would be changed.")
        let version = APIParameter(
            "expectedVersion", .query, .integer(minimum: 0), "The version that the schema must be at.")
        return [
            admin(.get, "schema", "The schema as text", answer: .text, type: "text/plain", place),
            admin(
                .post, "schema", "Make a schema what a text says", request: text, answer: .reference("SchemaPlan"),
                place + [
                    flag("additive", "Keep what the text leaves out."),
                    flag("allowDataLoss", "Remove types and fields with their data."), dryRun, version,
                ]),
            admin(
                .get, "schema/state", "The schema as JSON, and how far its indexes are built",
                answer: .reference("SchemaState"), place),
            admin(
                .post, "schema/validate", "Whether a text is a schema, and what it would change", request: text,
                answer: .reference("SchemaValidity"),
                [
                    APIParameter("container", .query, .text, "The container to compare with."), environmentParameter,
                    flag("additive", "Keep what the text leaves out."),
                ]),
            admin(
                .post, "schema/deploy", "Add to production what development has", answer: .reference("SchemaPlan"),
                [containerParameter, dryRun, version]),
            admin(
                .post, "schema/reset", "Empty development and give it production's schema",
                answer: .reference("SchemaReset"),
                [containerParameter, dryRun, APIParameter("confirm", .query, .text, "The container's name again.")]),
            admin(
                .post, "schema/indexes", "Add an index", request: .reference("IndexInput"),
                answer: .reference("SchemaPlan"), place + [dryRun, version]),
            admin(
                .delete, "schema/indexes", "Remove an index", answer: .reference("SchemaPlan"),
                place + [
                    APIParameter("type", .query, .text, "The record type.", isRequired: true),
                    APIParameter("field", .query, .text, "The field.", isRequired: true),
                    APIParameter(
                        "index", .query, .texts("QUERYABLE", "SORTABLE", "SEARCHABLE"), "Which.", isRequired: true),
                    dryRun, version,
                ]),
        ]
    }()
}
