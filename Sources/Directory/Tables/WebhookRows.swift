import Foundation
import GRDB
package import RecordModel
import Wire

/// The rows of webhooks.
struct WebhookRows {
    let db: Database

    /// Empty below `FeatureLevel.webhooks`.
    static let table = """
        CREATE TABLE IF NOT EXISTS webhook (
            container TEXT NOT NULL, environment TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (container, environment, name)) STRICT, WITHOUT ROWID;
        """

    func apply(_ command: WebhookCommand, at level: FeatureLevel) throws -> [DirectoryChange] {
        guard level >= .webhooks else {
            throw ServiceError(
                .tryAgainLater, "webhooks need feature level \(FeatureLevel.webhooks)", retryAfterSeconds: 1)
        }
        switch command {
        case .save(let webhook): return try save(webhook)
        case .remove(let container, let environment, let name):
            guard let known = try webhook(container, environment, name) else { throw Webhook.unknown(name) }
            guard known.state == .leaving else {
                throw ServiceError(.conflict, "webhook '\(name)' is not being removed")
            }
            try db.run(
                "DELETE FROM webhook WHERE container = ? AND environment = ? AND name = ?",
                [container, environment.rawValue, name])
            try db.checkOneRow("webhook '\(name)'")
            return [.webhookRemoved(known)]
        }
    }

    private func save(_ webhook: Webhook) throws -> [DirectoryChange] {
        try ContainerRows(db: db).require(webhook.container)
        guard Webhook.isName(webhook.name), !webhook.url.isEmpty, webhook.url.utf8.count <= Webhook.urlBytesMax,
            (1...2).contains(webhook.sealedSecrets.count), webhook.recordTypes.count <= Webhook.recordTypesMax
        else { throw ServiceError(.badRequest, "a webhook needs a name, an address and one or two secrets") }
        let known = try self.webhook(webhook.container, webhook.environment, webhook.name)
        if let known {
            if webhook.revision == 0 {
                throw ServiceError(.exists, "there is a webhook '\(webhook.name)' already")
            }
            guard known.revision == webhook.revision, known.id == webhook.id, known.state != .leaving else {
                throw ServiceError(
                    .conflict, "webhook '\(webhook.name)' has changed meanwhile: look at it and try again")
            }
        } else {
            guard webhook.revision == 0 else { throw Webhook.unknown(webhook.name) }
            let count = try Int.fetchOne(
                db, sql: "SELECT COUNT(*) FROM webhook WHERE container = ? AND environment = ?",
                arguments: [webhook.container, webhook.environment.rawValue])
            guard let count, count < Webhook.countMax else {
                throw ServiceError(
                    .badRequest,
                    "the environment has \(Webhook.countMax) webhooks, which is the most there may be: delete one")
            }
        }
        var new = webhook
        new.revision += 1
        try db.run(
            "INSERT OR REPLACE INTO webhook (container, environment, name, body) VALUES (?, ?, ?, ?)",
            [new.container, new.environment.rawValue, new.name, new.body])
        return [.webhook(new)]
    }

    private func webhook(_ container: String, _ environment: Environment, _ name: String) throws -> Webhook? {
        try db.message(
            "SELECT body FROM webhook WHERE container = ? AND environment = ? AND name = ?",
            [container, environment.rawValue, name])
    }

    func removeAll(of container: String) throws -> [DirectoryChange] {
        let all: [Webhook] = try db.messages(
            "SELECT body FROM webhook WHERE container = ? ORDER BY environment, name", [container])
        try db.run("DELETE FROM webhook WHERE container = ?", [container])
        return all.map { .webhookRemoved($0) }
    }
}

extension Webhook {
    /// What is said where there is no webhook of a name, as somebody gave it.
    package static func unknown(_ name: String) -> ServiceError {
        ServiceError(
            .notFound, "no webhook '\(AuditText.id(name))': `zonekeeper webhook list` shows those that exist")
    }
}

/// The webhooks of all containers.
struct WebhookTable: Equatable, Sendable {
    /// By environment, sorted by name; never empty.
    private var all: [SchemaKey: [Webhook]] = [:]

    func webhooks(of key: SchemaKey) -> [Webhook] { all[key] ?? [] }

    /// Those that a node may have work with, in no order.
    var keys: Dictionary<SchemaKey, [Webhook]>.Keys { all.keys }

    mutating func take(_ webhook: Webhook) {
        let key = SchemaKey(container: webhook.container, environment: webhook.environment)
        var list = webhooks(of: key).filter { $0.name != webhook.name }
        list.append(webhook)
        all[key] = list.sorted { $0.name < $1.name }
    }

    mutating func remove(_ webhook: Webhook) {
        let key = SchemaKey(container: webhook.container, environment: webhook.environment)
        let list = webhooks(of: key).filter { $0.name != webhook.name }
        all[key] = list.isEmpty ? nil : list
    }
}
