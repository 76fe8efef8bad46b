import Foundation
import GRDB
package import RecordModel
import Wire

/// The rows of webhooks. Commands throw `ServiceError` to refuse, before they write anything, or the database's own
/// error.
enum WebhookRows {
    /// Empty below `FeatureLevel.webhooks`.
    static let table = """
        CREATE TABLE IF NOT EXISTS webhook (
            container TEXT NOT NULL, environment TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (container, environment, name)) STRICT, WITHOUT ROWID;
        """

    static func apply(
        _ command: WebhookCommand, at level: FeatureLevel, in db: Database
    ) throws -> [DirectoryChange] {
        guard level >= .webhooks else {
            throw ServiceError(
                .tryAgainLater, "webhooks need feature level \(FeatureLevel.webhooks)", retryAfterSeconds: 1)
        }
        switch command {
        case .save(let webhook): return try save(webhook, in: db)
        case .remove(let container, let environment, let name):
            guard let known = try webhook(container, environment, name, in: db) else {
                throw Webhook.unknown(name)
            }
            guard known.state == .leaving else {
                throw ServiceError(.conflict, "webhook '\(name)' is not being removed")
            }
            try db.execute(
                sql: "DELETE FROM webhook WHERE container = ? AND environment = ? AND name = ?",
                arguments: [container, environment.rawValue, name])
            try db.checkOneRow("webhook '\(name)'")
            return [.webhookRemoved(known)]
        }
    }

    private static func save(_ webhook: Webhook, in db: Database) throws -> [DirectoryChange] {
        try DirectoryTables.requireContainer(webhook.container, in: db)
        guard Webhook.isName(webhook.name), !webhook.url.isEmpty, webhook.url.utf8.count <= Webhook.urlBytesMax,
            (1...2).contains(webhook.sealedSecrets.count), webhook.recordTypes.count <= Webhook.recordTypesMax
        else { throw ServiceError(.badRequest, "a webhook needs a name, an address and one or two secrets") }
        let known = try self.webhook(webhook.container, webhook.environment, webhook.name, in: db)
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
        try db.execute(
            sql: "INSERT OR REPLACE INTO webhook (container, environment, name, body) VALUES (?, ?, ?, ?)",
            arguments: [new.container, new.environment.rawValue, new.name, Data(new.encoded())])
        return [.webhook(new)]
    }

    private static func webhook(
        _ container: String, _ environment: Environment, _ name: String, in db: Database
    ) throws -> Webhook? {
        try Data.fetchOne(
            db, sql: "SELECT body FROM webhook WHERE container = ? AND environment = ? AND name = ?",
            arguments: [container, environment.rawValue, name]
        ).map { try Webhook(decoding: [UInt8]($0)) }
    }

    static func removeAll(of container: String, in db: Database) throws -> [DirectoryChange] {
        let bodies = try Data.fetchAll(
            db, sql: "SELECT body FROM webhook WHERE container = ? ORDER BY environment, name", arguments: [container])
        try db.execute(sql: "DELETE FROM webhook WHERE container = ?", arguments: [container])
        return try bodies.map { .webhookRemoved(try Webhook(decoding: [UInt8]($0))) }
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
