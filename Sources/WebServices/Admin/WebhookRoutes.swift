import Directory
import RecordModel
import Service

/// Requests of `/admin/1/webhooks`.
struct WebhookRoutes: Sendable {
    let request: AdminRequest

    private func webhooks(_ key: SchemaKey) -> Webhooks { Webhooks(request.context.service, key) }

    private func bodyKey() throws(RequestFailure) -> SchemaKey {
        SchemaKey(
            container: try AdminRequest.containerName(try request.text("container")),
            environment: try AdminRequest.environment(try request.json["environment"]?.string ?? "development"))
    }

    func list() async throws(RequestFailure) -> Reply {
        let all = try await webhooks(try request.schemaKey()).list()
        return Reply { writer in
            writer.key("webhooks")
            writer.array { writer in for webhook in all { writer.object { Self.write(webhook, to: &$0) } } }
        }
    }

    func create() async throws(RequestFailure) -> Reply {
        let saved = try await webhooks(try bodyKey()).create(
            try request.text("name"), try changes(), origin: request.origin, by: request.deadline)
        return Self.reply(saved)
    }

    func change() async throws(RequestFailure) -> Reply {
        let saved = try await webhooks(try bodyKey()).change(
            try request.text("name"), try changes(), origin: request.origin, by: request.deadline)
        return Self.reply(saved)
    }

    func delete() async throws(RequestFailure) -> Reply {
        let name = try request.parameter("name")
        try await webhooks(try request.schemaKey()).delete(name, origin: request.origin, by: request.deadline)
        return Reply { writer in
            writer.member("name", name)
            writer.member("deleted", true)
        }
    }

    func test() async throws(RequestFailure) -> Reply {
        let attempt = try await webhooks(try bodyKey()).test(try request.text("name"))
        return Reply { Self.write(attempt, to: &$0) }
    }

    func deliveries() async throws(RequestFailure) -> Reply {
        let (webhook, progress) = try await webhooks(try request.schemaKey()).progress(
            of: try request.parameter("name"), by: request.deadline)
        return Reply { writer in
            writer.member("name", webhook.name)
            Self.write(webhook.state, to: &writer)
            if let delivery = progress.current {
                writer.key("current")
                writer.object { writer in
                    writer.member("id", delivery.id)
                    writer.member("notifications", integer: Int64(clamping: delivery.count))
                    writer.member("failures", integer: Int64(clamping: delivery.failures))
                    if delivery.failures > 0 {
                        writer.member("failingSince", integer: delivery.failingSince)
                        writer.member("nextAttempt", integer: delivery.notBefore)
                    }
                }
            }
            writer.key("deliveries")
            writer.array { writer in
                for attempt in progress.attempts.reversed() { writer.object { Self.write(attempt, to: &$0) } }
            }
        }
    }

    // MARK: The body

    private func changes() throws(RequestFailure) -> Webhooks.Changes {
        var changes = Webhooks.Changes()
        let json = try request.json
        if let url = json["url"] {
            guard let text = url.string else { throw RequestFailure(.badRequest, "url: a string is expected") }
            changes.url = text
        }
        changes.recordTypes = try names("recordTypes", json)
        changes.fields = try names("fields", json)
        changes.watchesPrivate = try flag("private", json)
        changes.isEnabled = try flag("enabled", json)
        if let secret = json["secret"] {
            guard let change = secret.string.flatMap({ Webhooks.SecretChange(rawValue: $0) }) else {
                let known = Webhooks.SecretChange.allCases.map { "'\($0.rawValue)'" }.joined(separator: " or ")
                throw RequestFailure(.badRequest, "secret: \(known) is expected")
            }
            changes.secret = change
        }
        return changes
    }

    private func names(_ key: String, _ json: JSONValue) throws(RequestFailure) -> [String]? {
        guard let given = json[key] else { return nil }
        let names = given.array?.compactMap(\.string)
        guard let names, names.count == given.array?.count,
            names.allSatisfy({ !$0.isEmpty && $0.count <= Limits.nameLengthMax })
        else {
            throw RequestFailure(.badRequest, "\(key): an array of names is expected")
        }
        return names
    }

    private func flag(_ key: String, _ json: JSONValue) throws(RequestFailure) -> Bool? {
        switch json[key] {
        case nil: return nil
        case .bool(let flag)?: return flag
        default: throw RequestFailure(.badRequest, "\(key): true or false is expected")
        }
    }

    // MARK: The answer

    private static func reply(_ saved: Webhooks.Saved) -> Reply {
        Reply { writer in
            write(saved.webhook, to: &writer)
            if let secret = saved.secret { writer.member("secret", secret) }
        }
    }

    private static func write(_ webhook: Webhook, to writer: inout JSONWriter) {
        writer.member("name", webhook.name)
        writer.member("url", webhook.url)
        for (key, names) in [("recordTypes", webhook.recordTypes), ("fields", webhook.fields)] {
            writer.key(key)
            writer.array { writer in for name in names { writer.string(name) } }
        }
        writer.member("private", webhook.watchesPrivate)
        write(webhook.state, to: &writer)
        writer.member("secrets", integer: Int64(webhook.sealedSecrets.count))
        writer.member("created", integer: webhook.created)
    }

    private static func write(_ state: Webhook.State, to writer: inout JSONWriter) {
        switch state {
        case .enabled: writer.member("state", "enabled")
        case .disabled(let reason):
            writer.member("state", "disabled")
            writer.member("reason", reason)
        case .leaving: writer.member("state", "leaving")
        }
    }

    private static func write(_ attempt: WebhookProgress.Attempt, to writer: inout JSONWriter) {
        writer.member("id", attempt.id)
        writer.member("notifications", integer: Int64(clamping: attempt.count))
        writer.member("time", integer: attempt.time)
        writer.member("milliseconds", integer: Int64(clamping: attempt.milliseconds))
        if attempt.status > 0 { writer.member("status", integer: Int64(clamping: attempt.status)) }
        writer.member("delivered", attempt.reason.isEmpty)
        if !attempt.reason.isEmpty { writer.member("reason", attempt.reason) }
    }
}
