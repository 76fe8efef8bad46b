import Foundation
import GRDB
import Wire

/// What snapshots know of sessions: how many users containers have, which are accounts with a session there, of either
/// kind, and when the first session expires. It is read at the start, and kept by what apply says of each change.
struct SessionTotals {
    let db: Database

    /// Whether the account has a session of either kind in the container.
    private func hasSession(_ accountID: String, in container: String) throws -> Bool {
        if try hasSignedIn(accountID, in: container) { return true }
        let bodies = try Data.fetchCursor(
            db, sql: "SELECT body FROM token WHERE account = ? AND sign_in IS NULL", arguments: [accountID])
        while let body = try bodies.next() {
            if try Token(decoding: [UInt8](body)).kind.container == container { return true }
        }
        return false
    }

    private func hasSignedIn(_ accountID: String, in container: String) throws -> Bool {
        try db.has("SELECT 1 FROM token WHERE account = ? AND sign_in = ? LIMIT 1", [accountID, container])
    }

    /// What a session that is about to be written changes of its container's count of users.
    func changes(byAdding token: Token) throws -> [DirectoryChange] {
        guard let accountID = token.kind.accountID, try !hasSession(accountID, in: token.kind.container)
        else { return [] }
        return [.userCount(container: token.kind.container, by: 1)]
    }

    /// That tokens were removed, and what that changes of the totals.
    func changes(byRemoving tokens: [Token]) throws -> [DirectoryChange] {
        if tokens.isEmpty { return [] }
        var changes = tokens.map { DirectoryChange.tokenRemoved($0) }
        var seen: Set<[String]> = []
        for token in tokens {
            guard let accountID = token.kind.accountID, seen.insert([accountID, token.kind.container]).inserted,
                try !hasSession(accountID, in: token.kind.container)
            else { continue }
            changes.append(.userCount(container: token.kind.container, by: -1))
        }
        return try changes + [firstExpiry]
    }

    /// Uses the index, so that expired sessions are found without a scan.
    var firstExpiry: DirectoryChange {
        get throws {
            .firstExpiry(try Int64.fetchOne(db, sql: "SELECT MIN(expires) FROM token WHERE expires IS NOT NULL"))
        }
    }

    /// How many accounts have a session in each container: a walk over an index, and over the sessions that
    /// administrators made.
    var userCounts: [String: Int] {
        get throws {
            var counts: [String: Int] = [:]
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT sign_in, COUNT(*) FROM (
                        SELECT DISTINCT account, sign_in FROM token WHERE account IS NOT NULL AND sign_in IS NOT NULL)
                    GROUP BY sign_in
                    """)
            while let row = try rows.next() { try counts[row.decode(atIndex: 0)] = row.decode(atIndex: 1) }
            var seen: Set<[String]> = []
            let bodies = try Data.fetchCursor(
                db, sql: "SELECT body FROM token WHERE account IS NOT NULL AND sign_in IS NULL")
            while let body = try bodies.next() {
                let kind = try Token(decoding: [UInt8](body)).kind
                guard let accountID = kind.accountID, seen.insert([accountID, kind.container]).inserted else {
                    continue
                }
                if try !hasSignedIn(accountID, in: kind.container) { counts[kind.container, default: 0] += 1 }
            }
            return counts
        }
    }
}
