import RecordModel

extension OpenAPIDocument {
    private static func keyValues(
        _ method: APIOperation.Method, _ action: String, _ summary: String, request: APIContent?, answer: Shape
    ) -> APIOperation {
        var operation = APIOperation(
            method, "/kv/1/{container}/{environment}/\(action)", tag: "Preferences", summary)
        operation.parameters = [
            APIParameter("container", .path, .text, "The container."),
            APIParameter("environment", .path, environmentShape, "Which of the container's two stores."),
        ]
        operation.access = .clients
        operation.request = request
        // Limits are named in errors.
        let failures = APIAnswer.failures([400, 401, 403, 404, 405, 413, 421, 429, 500, 503]).map { answer in
            var answer = answer
            if [400, 405, 413, 503].contains(answer.status) { answer.shape = .reference("KeyValuesError") }
            return answer
        }
        operation.answers = [APIAnswer(200, "Done.", answer)] + failures
        return operation
    }

    private static func post(_ action: String, _ summary: String, _ name: String) -> APIOperation {
        keyValues(
            .post, action, summary,
            request: .json(.reference("KeyValues\(name)Request"), isRequired: name == "Get" || name == "Set"),
            answer: .reference("KeyValues\(name)Response"))
    }

    static let keyValueOperations: [APIOperation] = {
        var set = post("set", "Write and delete preferences", "Set")
        set.parameters.append(APIParameter("Idempotency-Key", .header, .string(format: "uuid"), "A UUID of version 7."))
        set.answers.append(APIAnswer(409, "CONFLICT", .reference("KeyValuesConflict")))
        let usage = Shape.reference("KeyValuesUsage")
        return [
            post("get", "Read preferences", "Get"), post("list", "Read all preferences", "List"), set,
            post("changes", "Follow preferences", "Changes"), longPoll, stream,
            keyValues(.get, "usage", "What the store holds and may hold", request: nil, answer: usage),
            keyValues(
                .post, "usage", "What the store holds and may hold", request: .json(.any, isRequired: false),
                answer: usage),
        ]
    }()

    private static let longPoll: APIOperation = {
        var operation = keyValues(
            .post, "watch", "Wait for preferences to change",
            request: .json(.reference("KeyValuesWatchRequest"), isRequired: false),
            answer: .reference("KeyValuesChangesResponse"))
        operation.description =
            "Answers as `changes` does as soon as something lies after the token, and with an empty page after the time-out."
        return operation
    }()

    private static let stream: APIOperation = {
        var operation = keyValues(.get, "watch", "Be told of changes of preferences", request: nil, answer: .text)
        operation.description =
            "Server-sent events: `changes` (its data is a `KeyValuesChangesResponse`, its id the token), `expired` (the token cannot be followed: begin without one) and `end` (why the node ends the stream; the data of both is a `KeyValuesStreamEnd`). Comments come every 15 seconds."
        operation.parameters += [
            APIParameter("syncToken", .query, .text, "Where to go on; without one everything comes first."),
            APIParameter("Last-Event-ID", .header, .text, "The same, of a browser that comes again; counts more."),
            APIParameter("resultsLimit", .query, .integer(minimum: 1), "Changes of one event."),
        ]
        operation.answers = operation.answers.map { answer in
            answer.status == 200 ? APIAnswer(200, "Events.", .text, type: "text/event-stream") : answer
        }
        return operation
    }()
}
