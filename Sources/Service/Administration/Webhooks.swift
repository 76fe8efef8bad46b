import Admission
import Cluster
package import Directory
import RaftCore
import RecordModel
import RecordStore
import Wire

/// The webhooks of a container's environment, for those who administer it.
package struct Webhooks: Sendable {
    private let service: RecordService
    private let key: SchemaKey

    package init(_ service: RecordService, _ key: SchemaKey) {
        self.service = service
        self.key = key
    }

    /// What an administrator wants to be otherwise; nil stays as it is.
    package struct Changes: Sendable {
        /// Where deliveries are sent.
        package var url: String?
        /// As `Webhook.recordTypes`.
        package var recordTypes: [String]?
        /// As `Webhook.fields`.
        package var fields: [String]?
        /// As `Webhook.watchesPrivate`.
        package var watchesPrivate: Bool?
        /// Whether it is told anything.
        package var isEnabled: Bool?
        /// What becomes of its secrets.
        package var secret: SecretChange?
        package init() {}
    }

    /// What becomes of a webhook's secrets.
    package enum SecretChange: String, Hashable, Sendable, CaseIterable {
        /// A new one comes before the present one; deliveries are signed with both.
        case rotate
        /// The former one goes.
        case dropFormer
        /// The newest one goes, such as where nobody has it.
        case dropNewest
    }

    /// A webhook as it is now, and its new secret where one was made, as administrators see it, once.
    package typealias Saved = (webhook: Webhook, secret: String?)

    /// Sorted by name.
    package func list() async throws(RequestFailure) -> [Webhook] {
        let directory = try await service.cluster.newestDirectory()
        try relay(directory.requireContainer(key.container))
        return directory.webhooks(of: key)
    }

    /// - Throws: `NOT_FOUND` where there is none of the name.
    package func webhook(named name: String) async throws(RequestFailure) -> Webhook {
        if let known = try await list().first(where: { $0.name == name }) { return known }
        throw RequestFailure(Webhook.unknown(name))
    }

    /// Makes one. What is committed after this returns is told of; where the time is over before it is in force, as
    /// while its shard has no leader, what is committed once it is.
    package func create(
        _ name: String, _ changes: Changes, origin: AuditOrigin, by deadline: Deadline
    ) async throws(RequestFailure) -> Saved {
        guard Webhook.isName(name) else {
            throw .badRequest("name: 1 to 64 letters, digits and any of - _ . are expected")
        }
        _ = try await list()
        let id = service.randomHex(bytes: 8)
        var webhook = Webhook(
            container: key.container, environment: key.environment, name: name, id: id, url: "",
            created: try service.trustedNow())
        var changes = changes
        changes.secret = .rotate
        let secret = try await apply(changes, to: &webhook)
        return (try await save(webhook, origin, by: deadline), secret)
    }

    /// Changes one. What is committed after this returns is told of by the new values, or later as for `create`.
    /// - Throws: `CONFLICT` for another secret where it has two.
    package func change(
        _ name: String, _ changes: Changes, origin: AuditOrigin, by deadline: Deadline
    ) async throws(RequestFailure) -> Saved {
        var webhook = try await webhook(named: name)
        let secret = try await apply(changes, to: &webhook)
        return (try await save(webhook, origin, by: deadline), secret)
    }

    private func check(_ url: String, for container: String) async throws(RequestFailure) {
        let address = try service.webhooks.settings.address(of: url)
        guard url.utf8.count <= Webhook.urlBytesMax else {
            throw .badRequest("url: at most \(Webhook.urlBytesMax) bytes are expected")
        }
        let transport = try service.webhooks.requireTransport()
        try await service.webhooks.ask(for: container) { () async throws(RequestFailure) in
            do throws(WebhookFailure) {
                try await transport.check(address)
            } catch {
                throw .badRequest("url: \(error.reason)")
            }
        }
    }

    /// - Returns: a new secret, where one was asked for.
    private func apply(_ changes: Changes, to webhook: inout Webhook) async throws(RequestFailure) -> String? {
        if let url = changes.url ?? (webhook.url.isEmpty ? "" : nil) {
            try await check(url, for: webhook.container)
            webhook.url = url
        }
        if let types = changes.recordTypes { webhook.recordTypes = try checked(types) }
        if let fields = changes.fields {
            guard fields.count <= Limits.notificationFieldsMax else {
                throw .badRequest("fields: at most \(Limits.notificationFieldsMax) are possible")
            }
            webhook.fields = fields
        }
        if let watchesPrivate = changes.watchesPrivate { webhook.watchesPrivate = watchesPrivate }
        guard webhook.watchesPrivate || !webhook.recordTypes.isEmpty else {
            throw .badRequest("recordTypes, private: a webhook is told of some record types, private databases or both")
        }
        if let isEnabled = changes.isEnabled {
            webhook.state = isEnabled ? .enabled : .disabled(reason: "by an administrator")
        }
        switch changes.secret {
        case .rotate?:
            guard webhook.sealedSecrets.count < 2 else {
                throw RequestFailure(
                    .conflict,
                    "webhook '\(webhook.name)' has two secrets already: drop the former one (`webhook update "
                        + "--drop-former-secret`) once the receiver knows the newest, or the newest "
                        + "(`--drop-newest-secret`) where nobody has it")
            }
            let secret = WebhookSecret(key: service.randomBytes(WebhookSecret.bytesCount))
            webhook.sealedSecrets = [try webhook.sealed(secret, in: service)] + webhook.sealedSecrets
            return secret.text
        case .dropFormer?: webhook.sealedSecrets = Array(webhook.sealedSecrets.prefix(1))
        case .dropNewest?: webhook.sealedSecrets = Array(webhook.sealedSecrets.suffix(1))
        case nil: break
        }
        return nil
    }

    /// Record types, which the schema must have.
    private func checked(_ types: [String]) throws(RequestFailure) -> [String] {
        guard types.count <= Webhook.recordTypesMax else {
            throw .badRequest("recordTypes: at most \(Webhook.recordTypesMax) are possible")
        }
        let known = Set(service.schema(key).schema.types.map(\.name))
        if let unknown = types.first(where: { !known.contains($0) }) {
            throw .badRequest("recordTypes: the schema has no record type '\(unknown)'")
        }
        return Set(types).sorted()
    }

    private func save(
        _ webhook: Webhook, _ origin: AuditOrigin, by deadline: Deadline
    ) async throws(RequestFailure) -> Webhook {
        try await service.node.require(.webhooks, for: "webhooks need", in: .directory)
        try await service.cluster.change(.webhook(.save(webhook)), origin: origin)
        var saved = webhook
        saved.revision += 1
        await awaitInForce(saved, by: deadline)
        return saved
    }

    /// Waits until the node that delivers has put a configuration into force, which only that node does: what others
    /// did could come late, after a newer one. Where the time is over it does so later; for one that is being removed
    /// never.
    private func awaitInForce(_ webhook: Webhook, by deadline: Deadline) async {
        let clock = service.node.platform.clock
        service.webhooks.follow(service)
        while !deadline.isOver(at: clock.now) {
            let reader = try? await WebhookReader.load(webhook, in: service)
            if let reader, reader.progress.revision >= webhook.revision { return }
            let known = service.directory.webhooks(of: key).first { $0.id == webhook.id }
            if known?.state == .leaving { return }
            do { try await clock.sleep(milliseconds: 20) } catch { return }
        }
    }

    /// Removes one, with what waits to be delivered. It ends at once; a moment later its name is free again.
    package func delete(_ name: String, origin: AuditOrigin) async throws(RequestFailure) {
        var webhook = try await webhook(named: name)
        if webhook.state != .leaving {
            webhook.state = .leaving
            try await service.cluster.change(.webhook(.save(webhook)), origin: origin)
        }
        try await finishRemoval(of: webhook)
    }

    /// Removes what stands for a webhook on its shard, and then the webhook. It may be done by several nodes at once.
    func finishRemoval(of webhook: Webhook) async throws(RequestFailure) {
        try await DeletedSubscribers.forget(webhook.subscriber, in: service, by: service.node.deadline())
        let command = WebhookCommand.remove(
            container: webhook.container, webhook.environment, name: webhook.name)
        let outcome = try await service.cluster.submit(DirectoryCommand.webhook(command), by: service.node.deadline())
        if case .refused(let error) = outcome, error.code != .notFound { throw RequestFailure(error) }
        await service.cluster.catchUp()
    }

    /// Sends a delivery that tells of nothing, once.
    package func test(_ name: String) async throws(RequestFailure) -> WebhookProgress.Attempt {
        let webhook = try await webhook(named: name)
        let message = WebhookMessage(
            id: "test-\(service.newID().text)", webhook: webhook, notifications: [], flag: "test")
        let transport = try service.webhooks.requireTransport()
        return try await service.webhooks.ask(for: webhook.container) { () async throws(RequestFailure) in
            try await message.send(transport, in: service)
        }
    }

    /// How far one was told, and how its last deliveries went.
    package func progress(
        of name: String
    ) async throws(RequestFailure) -> (webhook: Webhook, progress: WebhookProgress) {
        let webhook = try await webhook(named: name)
        return (webhook, try await WebhookReader.load(webhook, in: service).progress)
    }
}
