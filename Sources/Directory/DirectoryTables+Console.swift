import Foundation
import GRDB
import RecordModel
import Wire

// Who may use the console, and their sessions there: one function a command. Sessions and links are tokens without an
// account; administrators are part of the cluster's settings.
extension DirectoryTables {
    static func apply(_ command: ConsoleCommand, in db: Database) throws -> [DirectoryChange] {
        switch command {
        case .save(let administrator, let isNew): try save(administrator, isNew: isNew, in: db)
        case .remove(let name): try removeAdministrator(name, in: db)
        case .setPassword(let name, let password, let session, let time):
            try setPassword(password, ofAdministrator: name, keeping: session, time: time, in: db)
        case .found(let administrator, let session): try found(administrator, session: session, in: db)
        case .makeLink(let token): try makeLink(token, in: db)
        case .beginSession(let token, let proof, let replaced):
            try beginConsoleSession(token, proof, replacing: replaced, in: db)
        case .noteFailure(let name, let time): try noteFailure(ofAdministrator: name, time: time, in: db)
        }
    }

    // MARK: Administrators

    private static func save(
        _ administrator: Administrator, isNew: Bool, in db: Database
    ) throws -> [DirectoryChange] {
        try check(administrator)
        var all = try settings(in: db).administrators
        if let place = all.firstIndex(where: { $0.name == administrator.name }) {
            if isNew {
                if all[place] == administrator { return [] }
                throw exists(administrator.name)
            }
            all[place].role = administrator.role
            all[place].containers = administrator.containers
        } else {
            let hasToken = try administratorToken(administrator.name, in: db) != nil
            if isNew, hasToken { throw exists(administrator.name) }
            guard isNew || hasToken else { throw unknownAdministrator(administrator.name) }
            all.append(administrator)
        }
        return try write(all, in: db)
    }

    private static func check(_ administrator: Administrator) throws {
        guard Administrator.isName(administrator.name) else {
            throw ServiceError(.badRequest, "name: 1 to 64 letters, digits and any of - _ . @ are expected")
        }
        let containers = administrator.containers ?? []
        guard containers.count <= Administrator.containersMax else {
            throw ServiceError(.badRequest, "containers: at most \(Administrator.containersMax) are possible")
        }
    }

    private static func removeAdministrator(_ name: String, in db: Database) throws -> [DirectoryChange] {
        var all = try settings(in: db).administrators
        let count = all.count
        all.removeAll { $0.name == name }
        let token = try administratorToken(name, in: db)
        guard all.count < count || token != nil else { throw unknownAdministrator(name) }
        var changes = all.count < count ? try write(all, in: db) : []
        if let token { changes += try ConsoleTokens.remove([token], in: db) }
        _ = try clearLockout(of: Administrator.lockoutKey(name), in: db)
        return try changes + ConsoleTokens.end(of: name, in: db)
    }

    private static func setPassword(
        _ password: PasswordHash?, ofAdministrator name: String, keeping session: String, time: Int64, in db: Database
    ) throws -> [DirectoryChange] {
        var all = try settings(in: db).administrators
        if let place = all.firstIndex(where: { $0.name == name }) {
            all[place].password = password
        } else {
            guard try administratorToken(name, in: db) != nil else { throw unknownAdministrator(name) }
            all.append(Administrator(name: name, role: .admin, password: password, created: time))
        }
        _ = try clearLockout(of: Administrator.lockoutKey(name), in: db)
        return try write(all, in: db) + ConsoleTokens.end(of: name, except: session, in: db)
    }

    private static func found(
        _ administrator: Administrator, session id: String, in db: Database
    ) throws -> [DirectoryChange] {
        guard let old = try token(id, in: db), case .console(name: "", let expires) = old.kind else {
            throw ServiceError(.authenticationFailed, "the session has ended, or has a name already: sign in again")
        }
        let changes = try save(administrator, isNew: true, in: db)
        var session = old
        session.kind = .console(name: administrator.name, expires: expires)
        return try changes + ConsoleTokens.remove([old], in: db) + insert(session, in: db)
    }

    private static func noteFailure(
        ofAdministrator name: String, time: Int64, in db: Database
    ) throws -> [DirectoryChange] {
        guard try settings(in: db).administrators.contains(where: { $0.name == name }) else {
            throw unknownAdministrator(name)
        }
        return try countFailure(of: Administrator.lockoutKey(name), time: time, in: db)
    }

    private static func write(_ administrators: [Administrator], in db: Database) throws -> [DirectoryChange] {
        guard administrators.count <= Token.administratorsMax else {
            throw ServiceError(
                .badRequest, "the cluster has \(Token.administratorsMax) administrators, and may have no more")
        }
        var settings = try settings(in: db)
        settings.administrators = administrators.sorted { $0.name < $1.name }
        try write(settings, in: db)
        return [.administrators(settings.administrators)]
    }

    private static func exists(_ name: String) -> ServiceError {
        ServiceError(
            .exists, "there is an administrator '\(AuditText.id(name))' already: see `zonekeeper administrator list`")
    }

    private static func unknownAdministrator(_ name: String) -> ServiceError {
        ServiceError(
            .notFound,
            "no administrator '\(AuditText.id(name))': `zonekeeper administrator list` shows those that exist")
    }

    // MARK: Links and sessions

    private static func makeLink(_ token: Token, in db: Database) throws -> [DirectoryChange] {
        guard case .consoleLink(let name, _) = token.kind else {
            throw ServiceError(.badRequest, "this is a token of another kind than a link to the console")
        }
        try requireAdministrator(name, in: db)
        return try ConsoleTokens.endOldest(beside: token, in: db) + insert(token, in: db)
    }

    private static func beginConsoleSession(
        _ session: Token, _ proof: ConsoleProof, replacing id: String, in db: Database
    ) throws -> [DirectoryChange] {
        guard case .console(let name, _) = session.kind else {
            throw ServiceError(.badRequest, "this is a token of another kind than a session of the console")
        }
        if try token(session.id, in: db) == session { return [] }
        var all = try settings(in: db).administrators
        let place = all.firstIndex { $0.name == name }
        var changes: [DirectoryChange] = []
        switch proof {
        case .link(let hash):
            guard let link: Token = try db.message("SELECT body FROM token WHERE secret_hash = ?", [Data(hash)]),
                case .consoleLink(name, let expires) = link.kind, session.created < expires
            else {
                throw ServiceError(
                    .authenticationFailed,
                    "the link was used already, or its minute is over: `zonekeeper console open` makes another one")
            }
            try requireAdministrator(name, in: db)
            changes += try ConsoleTokens.remove([link], in: db)
        case .password(let fingerprint):
            guard let place, let password = all[place].password, password.fingerprint == fingerprint else {
                throw ServiceError(
                    .authenticationFailed, "the password was changed meanwhile: sign in with the new one")
            }
            _ = try clearLockout(of: Administrator.lockoutKey(name), in: db)
        }
        if let place {
            all[place].lastSignIn = session.created
            changes += try write(all, in: db)
        }
        if let old = try token(id, in: db), case .console = old.kind {
            changes += try ConsoleTokens.remove([old], in: db)
        }
        return try changes + ConsoleTokens.endOldest(beside: session, in: db) + insert(session, in: db)
    }

    static func token(_ id: String, in db: Database) throws -> Token? {
        try db.message("SELECT body FROM token WHERE id = ?", [id])
    }

    /// - Throws: `AUTHENTICATION_FAILED` for a name that no administrator has; the nodes' token comes without a name.
    static func requireAdministrator(_ name: String, in db: Database) throws {
        if name.isEmpty { return }
        if try settings(in: db).administrators.contains(where: { $0.name == name }) { return }
        if try administratorToken(name, in: db) != nil { return }
        throw ServiceError(.authenticationFailed, "the administrator was removed meanwhile")
    }
}

/// The tokens of the console: its links and sessions, and the times for which administrators are users.
enum ConsoleTokens {
    /// Ends the links, the sessions and the times as a user of an administrator, but one.
    static func end(of name: String, except id: String = "", in db: Database) throws -> [DirectoryChange] {
        try remove(all(of: name, in: db).filter { $0.id != id }, in: db)
    }

    /// Ends the oldest of a kind, where a new one would be more than an administrator may have.
    static func endOldest(beside token: Token, in db: Database) throws -> [DirectoryChange] {
        let alike = try all(of: token.kind.administratorName ?? "", in: db)
            .filter { $0.kind.filterKind == token.kind.filterKind && $0.id != token.id }
            .sorted { ($0.created, $0.id) < ($1.created, $1.id) }
        return try remove(alike.dropLast(Token.consoleSessionsMax - 1), in: db)
    }

    /// Those of an administrator.
    static func all(of name: String, in db: Database) throws -> [Token] {
        let tokens: [Token] = try db.messages(
            "SELECT body FROM token WHERE account IS NULL AND expires IS NOT NULL ORDER BY id")
        return tokens.filter { $0.kind.administratorName == name }
    }

    static func remove(_ tokens: some Collection<Token>, in db: Database) throws -> [DirectoryChange] {
        for token in tokens { try db.execute(sql: "DELETE FROM token WHERE id = ?", arguments: [token.id]) }
        return try SessionTotals.changes(byRemoving: Array(tokens), in: db)
    }
}
