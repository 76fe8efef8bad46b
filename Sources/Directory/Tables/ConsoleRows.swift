import Foundation
import GRDB
import RecordModel
import Wire

/// Who administers, with which role and password: a part of the cluster's settings.
struct Administrators {
    let db: Database

    private var all: [Administrator] { get throws { try SettingsRow(db: db).settings.administrators } }

    func save(_ administrator: Administrator, isNew: Bool) throws -> [DirectoryChange] {
        try check(administrator)
        var all = try all
        if let place = all.firstIndex(where: { $0.name == administrator.name }) {
            if isNew {
                if all[place] == administrator { return [] }
                throw exists(administrator.name)
            }
            all[place].role = administrator.role
            all[place].containers = administrator.containers
        } else {
            let hasToken = try TokenRows(db: db).ofAdministrator(administrator.name) != nil
            if isNew, hasToken { throw exists(administrator.name) }
            guard isNew || hasToken else { throw unknown(administrator.name) }
            all.append(administrator)
        }
        return try write(all)
    }

    /// Changes what is not nil; who has a token only has the role and the time of that before.
    func change(
        _ name: String, role: AdministratorRole?, containers: [String]??
    ) throws -> [DirectoryChange] {
        let known = try all.first { $0.name == name }
        let byToken = try TokenRows(db: db).ofAdministrator(name).map {
            Administrator(name: name, role: .admin, created: $0.created)
        }
        guard var administrator = known ?? byToken else { throw unknown(name) }
        if let role { administrator.role = role }
        if let containers { administrator.containers = containers }
        return try save(administrator, isNew: false)
    }

    private func check(_ administrator: Administrator) throws {
        guard Administrator.isName(administrator.name) else {
            throw ServiceError(.badRequest, "name: 1 to 64 letters, digits and any of - _ . @ are expected")
        }
        let containers = administrator.containers ?? []
        guard containers.count <= Administrator.containersMax else {
            throw ServiceError(.badRequest, "containers: at most \(Administrator.containersMax) are possible")
        }
    }

    func remove(_ name: String) throws -> [DirectoryChange] {
        var all = try all
        let count = all.count
        all.removeAll { $0.name == name }
        let tokens = TokenRows(db: db)
        let token = try tokens.ofAdministrator(name)
        guard all.count < count || token != nil else { throw unknown(name) }
        var changes = all.count < count ? try write(all) : []
        if let token { changes += try tokens.remove([token]) }
        try clearLockout(of: name)
        return try changes + ConsoleTokens(db: db).end(of: name)
    }

    /// - Parameter session: the one that goes on.
    func setPassword(
        _ password: PasswordHash?, of name: String, keeping session: String, time: Int64
    ) throws -> [DirectoryChange] {
        var all = try all
        if let place = all.firstIndex(where: { $0.name == name }) {
            all[place].password = password
        } else {
            guard try TokenRows(db: db).ofAdministrator(name) != nil else { throw unknown(name) }
            all.append(Administrator(name: name, role: .admin, password: password, created: time))
        }
        try clearLockout(of: name)
        return try write(all) + ConsoleTokens(db: db).end(of: name, except: session)
    }

    /// Makes the holder of a session without a name an administrator.
    func found(_ administrator: Administrator, session id: String) throws -> [DirectoryChange] {
        let tokens = TokenRows(db: db)
        guard let old = try tokens.token(id), case .console(name: "", let expires) = old.kind else {
            throw ServiceError(.authenticationFailed, "the session has ended, or has a name already: sign in again")
        }
        let changes = try save(administrator, isNew: true)
        var session = old
        session.kind = .console(name: administrator.name, expires: expires)
        return try changes + tokens.remove([old]) + tokens.insert(session)
    }

    func noteFailure(of name: String, time: Int64) throws -> [DirectoryChange] {
        guard try all.contains(where: { $0.name == name }) else { throw unknown(name) }
        return try AccountRows(db: db).countFailure(of: Administrator.lockoutKey(name), time: time)
    }

    /// Notes that somebody signed in: by a link, or by a password, of which the fingerprint must still be right, and
    /// which ends a lock-out.
    func noteSignIn(of name: String, password fingerprint: [UInt8]?, time: Int64) throws -> [DirectoryChange] {
        var all = try all
        let place = all.firstIndex { $0.name == name }
        if let fingerprint {
            guard let place, let password = all[place].password, password.fingerprint == fingerprint else {
                throw ServiceError(
                    .authenticationFailed, "the password was changed meanwhile: sign in with the new one")
            }
            try clearLockout(of: name)
        }
        guard let place else { return [] }
        all[place].lastSignIn = time
        return try write(all)
    }

    /// - Throws: `AUTHENTICATION_FAILED` for a name that no administrator has; the nodes' token comes without a name.
    func require(_ name: String) throws {
        if name.isEmpty { return }
        if try all.contains(where: { $0.name == name }) { return }
        if try TokenRows(db: db).ofAdministrator(name) != nil { return }
        throw ServiceError(.authenticationFailed, "the administrator was removed meanwhile")
    }

    private func clearLockout(of name: String) throws {
        _ = try AccountRows(db: db).clearLockout(of: Administrator.lockoutKey(name))
    }

    private func write(_ administrators: [Administrator]) throws -> [DirectoryChange] {
        guard administrators.count <= Token.administratorsMax else {
            throw ServiceError(
                .badRequest, "the cluster has \(Token.administratorsMax) administrators, and may have no more")
        }
        return try SettingsRow(db: db).change { settings in
            settings.administrators = administrators.sorted { $0.name < $1.name }
            return [.administrators(settings.administrators)]
        }
    }

    private func exists(_ name: String) -> ServiceError {
        ServiceError(
            .exists, "there is an administrator '\(AuditText.id(name))' already: see `zonekeeper administrator list`")
    }

    private func unknown(_ name: String) -> ServiceError {
        ServiceError(
            .notFound,
            "no administrator '\(AuditText.id(name))': `zonekeeper administrator list` shows those that exist")
    }
}

/// The tokens of the console: its links and sessions, and the times for which administrators are users.
struct ConsoleTokens {
    let db: Database

    private var tokens: TokenRows { TokenRows(db: db) }

    func makeLink(_ token: Token) throws -> [DirectoryChange] {
        guard case .consoleLink(let name, _) = token.kind else {
            throw ServiceError(.badRequest, "this is a token of another kind than a link to the console")
        }
        try Administrators(db: db).require(name)
        return try endOldest(beside: token) + tokens.insert(token)
    }

    func beginSession(
        _ session: Token, _ proof: ConsoleProof, replacing id: String
    ) throws -> [DirectoryChange] {
        guard case .console(let name, _) = session.kind else {
            throw ServiceError(.badRequest, "this is a token of another kind than a session of the console")
        }
        if try tokens.token(session.id) == session { return [] }
        let administrators = Administrators(db: db)
        var changes: [DirectoryChange] = []
        var password: [UInt8]?
        switch proof {
        case .link(let hash):
            guard let link: Token = try db.message("SELECT body FROM token WHERE secret_hash = ?", [Data(hash)]),
                case .consoleLink(name, let expires) = link.kind, session.created < expires
            else {
                throw ServiceError(
                    .authenticationFailed,
                    "the link was used already, or its minute is over: `zonekeeper console open` makes another one")
            }
            try administrators.require(name)
            changes += try tokens.remove([link])
        case .password(let fingerprint): password = fingerprint
        }
        changes += try administrators.noteSignIn(of: name, password: password, time: session.created)
        if let old = try tokens.token(id), case .console = old.kind { changes += try tokens.remove([old]) }
        return try changes + endOldest(beside: session) + tokens.insert(session)
    }

    func beginActing(_ token: Token) throws -> [DirectoryChange] {
        guard case .acting(let session) = token.kind else {
            throw ServiceError(.badRequest, "this is a token of another kind than a time as a user")
        }
        if try tokens.token(token.id) == token { return [] }
        try ContainerRows(db: db).require(session.container)
        try AccountRows(db: db).require(session.accountID)
        try Administrators(db: db).require(session.administrator)
        if !session.consoleSession.isEmpty { try requireSession(session.consoleSession) }
        let earlier = try all(of: session.administrator).filter { other in
            guard case .acting(let old) = other.kind else { return false }
            return old.schemaKey == session.schemaKey && old.consoleSession == session.consoleSession
        }
        return try tokens.remove(earlier) + tokens.insert(token)
    }

    /// Makes the token of an administrator in whose session it was asked for.
    func makeToken(_ token: Token, in session: String) throws -> [DirectoryChange] {
        guard case .administrator(let name) = token.kind, !name.isEmpty else {
            throw ServiceError(.badRequest, "this is a token of another kind than an administrator's")
        }
        try Administrators(db: db).require(name)
        try requireSession(session)
        return try tokens.create(token)
    }

    private func requireSession(_ id: String) throws {
        guard try tokens.token(id) != nil else {
            throw ServiceError(.authenticationFailed, "the session in the console ended meanwhile: sign in again")
        }
    }

    func endActing(_ token: Token) throws -> [DirectoryChange] {
        guard case .acting? = try tokens.token(token.id)?.kind else { return [] }
        return try tokens.remove([token])
    }

    /// Ends the times as a user that began in a session of the console.
    func endActing(of name: String, in session: String) throws -> [DirectoryChange] {
        try tokens.remove(
            all(of: name).filter { token in
                if case .acting(let acting) = token.kind { acting.consoleSession == session } else { false }
            })
    }

    /// Ends the links, the sessions and the times as a user of an administrator, but one.
    func end(of name: String, except id: String = "") throws -> [DirectoryChange] {
        try tokens.remove(all(of: name).filter { $0.id != id })
    }

    /// Ends the oldest of a kind, where a new one would be more than an administrator may have.
    private func endOldest(beside token: Token) throws -> [DirectoryChange] {
        let alike = try all(of: token.kind.administratorName ?? "")
            .filter { $0.kind.filterKind == token.kind.filterKind && $0.id != token.id }
            .sorted { ($0.created, $0.id) < ($1.created, $1.id) }
        return try tokens.remove(alike.dropLast(Token.consoleSessionsMax - 1))
    }

    /// Those of an administrator.
    private func all(of name: String) throws -> [Token] {
        let tokens: [Token] = try db.messages(
            "SELECT body FROM token WHERE account IS NULL AND expires IS NOT NULL ORDER BY id")
        return tokens.filter { $0.kind.administratorName == name }
    }
}
