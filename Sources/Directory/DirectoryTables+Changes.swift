import Foundation
import GRDB
import RecordModel
import Wire

// One function a command. Each throws `ServiceError` to refuse, before it writes anything, or the database's own error.
extension DirectoryTables {
    static func installMap(_ map: ClusterMap, in db: Database) throws -> DirectoryChange? {
        if let body = try Data.fetchOne(db, sql: "SELECT body FROM map") {
            let installed = try ClusterMap(decoding: [UInt8](body))
            if installed == map { return nil }
            guard map.epoch > installed.epoch else {
                throw ServiceError(
                    .conflict, "the cluster's map has epoch \(installed.epoch), the offered one \(map.epoch)")
            }
        }
        try db.execute(
            sql: "INSERT OR REPLACE INTO map (id, body) VALUES (1, ?)", arguments: [Data(map.encoded())])
        return .map(map)
    }

    static func createContainer(_ name: String, time: Int64, in db: Database) throws -> DirectoryChange? {
        if try containerExists(name, in: db) {
            throw ServiceError(.exists, "container '\(name)' exists already")
        }
        try db.execute(sql: "INSERT INTO container (name, created) VALUES (?, ?)", arguments: [name, time])
        return .container(name: name, created: time)
    }

    static func setSchema(
        _ key: SchemaKey, expectedVersion: UInt64, _ schema: Schema, in db: Database
    ) throws -> (version: UInt64, change: DirectoryChange?) {
        try requireContainer(key.container, in: db)
        let version = try Int64.fetchOne(
            db, sql: "SELECT version FROM schema WHERE container = ? AND environment = ?",
            arguments: [key.container, key.environment.rawValue])
        guard UInt64(version ?? 0) == expectedVersion else {
            throw ServiceError(
                .conflict,
                "the schema of '\(key.container)' (\(key.environment.rawValue)) has changed meanwhile: it is at version "
                    + "\(version ?? 0), the change was made for version \(expectedVersion); look at it and try again")
        }
        let new = VersionedSchema(version: expectedVersion + 1, schema: schema)
        try db.execute(
            sql: "INSERT OR REPLACE INTO schema (container, environment, version, body) VALUES (?, ?, ?, ?)",
            arguments: [key.container, key.environment.rawValue, Int64(new.version), Data(schema.encoded())])
        return (new.version, .schema(key, new))
    }

    static func createAccount(_ account: Account, in db: Database) throws -> DirectoryChange? {
        if try Int.fetchOne(
            db, sql: "SELECT 1 FROM account WHERE name = ? OR id = ?", arguments: [account.name, account.id]) != nil
        {
            throw ServiceError(.exists, "user '\(account.name)' exists already")
        }
        try db.execute(
            sql: "INSERT INTO account (id, name, body) VALUES (?, ?, ?)",
            arguments: [account.id, account.name, Data(account.encoded())])
        return .account(account)
    }

    static func deleteAccount(named name: String, in db: Database) throws -> DirectoryChange? {
        guard let body = try Data.fetchOne(db, sql: "SELECT body FROM account WHERE name = ?", arguments: [name]) else {
            throw ServiceError(.notFound, "no user '\(name)': `zonekeeper user list` shows those that exist")
        }
        let account = try Account(decoding: [UInt8](body))
        try db.execute(sql: "DELETE FROM token WHERE account = ?", arguments: [account.id])
        try db.execute(sql: "DELETE FROM account WHERE id = ?", arguments: [account.id])
        return .accountRemoved(account)
    }

    static func createToken(_ token: Token, in db: Database) throws -> DirectoryChange? {
        var accountID: String?
        switch token.kind {
        case .api(let container, _): try requireContainer(container, in: db)
        case .session(let container, let id, _):
            try requireContainer(container, in: db)
            guard try Int.fetchOne(db, sql: "SELECT 1 FROM account WHERE id = ?", arguments: [id]) != nil else {
                throw ServiceError(.notFound, "the session's user does not exist any more")
            }
            accountID = id
        }
        if try Int.fetchOne(
            db, sql: "SELECT 1 FROM token WHERE id = ? OR secret_hash = ?",
            arguments: [token.id, Data(token.secretHash)]) != nil
        {
            throw ServiceError(.exists, "a token with this id or secret exists already")
        }
        try db.execute(
            sql: "INSERT INTO token (id, account, secret_hash, body) VALUES (?, ?, ?, ?)",
            arguments: [token.id, accountID, Data(token.secretHash), Data(token.encoded())])
        return .token(token)
    }

    static func revokeToken(_ id: String, in db: Database) throws -> DirectoryChange? {
        guard let body = try Data.fetchOne(db, sql: "SELECT body FROM token WHERE id = ?", arguments: [id]) else {
            throw ServiceError(.notFound, "no token '\(id)': `zonekeeper token list` shows those that exist")
        }
        try db.execute(sql: "DELETE FROM token WHERE id = ?", arguments: [id])
        return .tokenRemoved(try Token(decoding: [UInt8](body)))
    }

    private static func containerExists(_ name: String, in db: Database) throws -> Bool {
        try Int.fetchOne(db, sql: "SELECT 1 FROM container WHERE name = ?", arguments: [name]) != nil
    }

    private static func requireContainer(_ name: String, in db: Database) throws {
        guard try containerExists(name, in: db) else {
            throw ServiceError(
                .notFound, "no container '\(name)': create it with `zonekeeper container create \(name)`")
        }
    }
}
