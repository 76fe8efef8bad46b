import Directory
import RecordModel
import Service

/// Requests of `/admin/1/webhooks`.
struct WebhookRoutes: Sendable {
    let request: AdminRequest

    private func webhooks(_ key: SchemaKey) -> Webhooks { Webhooks(request.service, key) }

    func list() async throws(RequestFailure) -> Reply {
        let all = try await webhooks(try request.url.schemaKey()).list()
        return Reply { $0.list("webhooks", all) { Self.write($0, to: &$1) } }
    }

    func create() async throws(RequestFailure) -> Reply {
        let (webhooks, name) = (try named(), try request.json().text("name"))
        return Self.reply(
            try await webhooks.create(
                name, try changes(), origin: request.administration.origin, by: request.service.deadline()))
    }

    func change() async throws(RequestFailure) -> Reply {
        let (webhooks, name) = (try named(), try request.json().text("name"))
        return Self.reply(
            try await webhooks.change(
                name, try changes(), origin: request.administration.origin, by: request.service.deadline()))
    }

    /// The webhooks of the environment that the body names.
    private func named() throws(RequestFailure) -> Webhooks { webhooks(try request.json().schemaKey()) }

    func delete() async throws(RequestFailure) -> Reply {
        let (webhooks, name) = (webhooks(try request.url.schemaKey()), try request.url.need("name"))
        try await webhooks.delete(name, origin: request.administration.origin)
        return .done("deleted", "name", name)
    }

    func test() async throws(RequestFailure) -> Reply {
        let attempt = try await named().test(try request.json().text("name"))
        return Reply { Self.write(attempt, to: &$0) }
    }

    func deliveries() async throws(RequestFailure) -> Reply {
        let (webhook, progress) = try await webhooks(try request.url.schemaKey()).progress(
            of: try request.url.need("name"))
        return Reply { writer in
            writer.member("name", webhook.name)
            Self.write(webhook.state, to: &writer)
            if let delivery = progress.current {
                writer.object("current") { writer in
                    writer.member("id", delivery.id)
                    writer.member("notifications", count: delivery.count)
                    writer.member("failures", count: delivery.failures)
                    if delivery.failures > 0 {
                        writer.member("failingSince", integer: delivery.failingSince)
                        writer.member("nextAttempt", integer: delivery.notBefore)
                    }
                }
            }
            writer.list("deliveries", progress.attempts.reversed()) { Self.write($0, to: &$1) }
        }
    }

    // MARK: The body

    private func changes() throws(RequestFailure) -> Webhooks.Changes {
        var changes = Webhooks.Changes()
        let json = try request.json()
        if let url = json["url"] {
            guard let text = url.string else { throw .badRequest("url: a string is expected") }
            changes.url = text
        }
        changes.recordTypes = try names("recordTypes", json)
        changes.fields = try names("fields", json)
        changes.watchesPrivate = try json.flag("private")
        changes.isEnabled = try json.flag("enabled")
        if let secret = json["secret"] {
            guard let change = secret.string.flatMap({ Webhooks.SecretChange(rawValue: $0) }) else {
                let known = Webhooks.SecretChange.allCases.map { "'\($0.rawValue)'" }.joined(separator: " or ")
                throw .badRequest("secret: \(known) is expected")
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
            throw .badRequest("\(key): an array of names is expected")
        }
        return names
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
        writer.list("recordTypes", webhook.recordTypes)
        writer.list("fields", webhook.fields)
        writer.member("private", webhook.watchesPrivate)
        write(webhook.state, to: &writer)
        writer.member("secrets", count: webhook.sealedSecrets.count)
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
        writer.member("notifications", count: attempt.count)
        writer.member("time", integer: attempt.time)
        writer.member("milliseconds", count: attempt.milliseconds)
        if attempt.status > 0 { writer.member("status", count: attempt.status) }
        writer.member("delivered", attempt.reason.isEmpty)
        if !attempt.reason.isEmpty { writer.member("reason", attempt.reason) }
    }
}
