import Foundation
import GRDB
import RecordModel
import Wire

// Sessions that begin by signing in.
extension DirectoryTables {
    /// Begins a session where what it rests on still holds, and ends the oldest ones of the account in the container
    /// where there would be more than `Token.signInSessionsMax`.
    static func beginSession(
        _ token: Token, _ basis: SignInBasis, in db: Database
    ) throws -> [DirectoryChange] {
        guard case .signIn(let container, let accountID, _) = token.kind else {
            throw ServiceError(.badRequest, "signing in begins a session; this is a token of another kind")
        }
        try requireContainer(container, in: db)
        guard let account = try AccountReader(db).account(withID: accountID) else {
            throw ServiceError(
                .notFound, "the user does not exist any more: `zonekeeper user list` shows those that do")
        }
        try require(basis.proof, of: account, in: db)
        try requireAPIToken(basis.apiTokenID, for: container, in: db)
        let changes = try createToken(token, in: db)
        return try changes + endOldest(beside: token, of: accountID, in: container, in: db)
            + clearLockout(of: accountID, in: db)
    }

    private static func require(_ proof: SignInBasis.Proof, of account: Account, in db: Database) throws {
        switch proof {
        case .password(let fingerprint):
            guard let password = account.password, password.fingerprint == fingerprint else {
                throw ServiceError(
                    .authenticationFailed, "the password was changed meanwhile: sign in with the new one")
            }
        case .identity(let identity, let name):
            let body = try Data.fetchOne(db, sql: "SELECT body FROM provider WHERE name = ?", arguments: [name])
            let provider = try body.map { try IdentityProvider(decoding: [UInt8]($0)) }
            guard provider?.$issuer == identity.$issuer else {
                throw ServiceError(
                    .authenticationFailed,
                    "the identity provider '\(name)' was removed or changed meanwhile: sign in again")
            }
            guard account.identity == identity else {
                throw ServiceError(
                    .authenticationFailed, "the identity was taken from the user meanwhile: sign in again")
            }
        }
    }

    private static func requireAPIToken(_ id: String, for container: String, in db: Database) throws {
        let body = try Data.fetchOne(db, sql: "SELECT body FROM token WHERE id = ?", arguments: [id])
        if let body, case .api(let own, _, _, _) = try Token(decoding: [UInt8](body)).kind,
            Bytewise(own) == Bytewise(container)
        {
            return
        }
        throw ServiceError(.authenticationFailed, "the app's API token was revoked meanwhile")
    }

    /// The session that begins is never the one that ends, whatever the clocks of the nodes say.
    private static func endOldest(
        beside token: Token, of accountID: String, in container: String, in db: Database
    ) throws -> [DirectoryChange] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT id, body FROM token WHERE account = ? AND sign_in = ? AND id <> ?
                ORDER BY created DESC, id DESC LIMIT -1 OFFSET ?
                """, arguments: [accountID, container, token.id, Token.signInSessionsMax - 1])
        let ended = try rows.map { row in
            let (id, body): (String, Data) = (row[0], row[1])
            try db.execute(sql: "DELETE FROM token WHERE id = ?", arguments: [id])
            try db.checkOneRow("the end of session \(id)")
            return try Token(decoding: [UInt8](body))
        }
        return try SessionTotals.changes(byRemoving: ended, in: db)
    }
}
