import Foundation
package import GRDB
import RecordModel
import Wire

/// Reads accounts, lock-outs, sessions and the histories of schemas from one snapshot of group 0's database.
///
/// They are rows only, and not in `DirectorySnapshot`, so that a node's memory does not grow with their number
/// (decision 0015). Each read uses an index; lists are read in pages.
package struct AccountReader {
    let db: Database

    /// - Parameter db: group 0's; the snapshot begins with the first question.
    package init(_ db: Database) { self.db = db }

    /// The account of a name, however its letters are composed.
    package func account(named name: String) throws -> Account? {
        try account("name", Account.comparable(name: name))
    }

    /// The account of an id, which is never given to another one.
    package func account(withID id: String) throws -> Account? { try account("id", id) }

    /// The account with an address, however its letters are written.
    package func account(withEmail email: some StringProtocol) throws -> Account? {
        try account("email", Account.comparable(email: email))
    }

    /// The account that is known to an issuer by this name.
    package func account(withIdentity identity: ExternalIdentity) throws -> Account? {
        try account("identity", Data(identity.encoded()))
    }

    /// The account with a user record name in a container. The first call for a container reads the ids of all
    /// accounts; later ones are fast.
    /// - Parameter generation: of `names`, from before the reader's first question.
    package func account(
        withUserRecordName name: String, in container: String, _ names: UserNames, generation: Int
    ) throws -> Account? {
        for id in try names.candidates(for: name, in: container, generation: generation, db) {
            if Account.userRecordName(accountID: id, container: container) == name { return try account(withID: id) }
        }
        return nil
    }

    private func account(_ column: String, _ value: some DatabaseValueConvertible) throws -> Account? {
        try db.message("SELECT body FROM account WHERE \(column) = ?", [value])
    }

    /// A page of accounts in the order of their names, by the byte.
    package func accounts(after name: String, limit: Int) throws -> [Account] {
        try db.messages("SELECT body FROM account WHERE name > ? ORDER BY name LIMIT ?", [name, limit])
    }

    /// The names of accounts by their ids, without deleted accounts.
    package func names(ofAccounts ids: some Sequence<String>) throws -> [String: String] {
        let statement = try db.cachedStatement(sql: "SELECT name FROM account WHERE id = ?")
        var names: [String: String] = [:]
        for id in ids where names[id] == nil { names[id] = try String.fetchOne(statement, arguments: [id]) }
        return names
    }

    /// The account's failed sign-ins since the last success.
    package func lockout(of accountID: String) throws -> Lockout? {
        try db.message("SELECT body FROM lockout WHERE account = ?", [accountID])
    }

    /// A token of any kind.
    package func token(withID id: String) throws -> Token? {
        try db.message("SELECT body FROM token WHERE id = ?", [id])
    }

    /// The session that a web auth token speaks for.
    package func session(_ key: SessionKey) throws -> Session? {
        let token: Token?
        switch key {
        case .signIn(let id): token = try self.token(withID: id)
        case .secret(let hash):
            token = try db.message("SELECT body FROM token WHERE secret_hash = ?", [Data(hash)])
        }
        // A session begun by sign-in is found by its id alone, another one by its secret alone.
        guard let token, SessionKey(token) == key, let accountID = token.kind.accountID else { return nil }
        return Session(token: token, accountName: try names(ofAccounts: [accountID])[accountID] ?? accountID)
    }

    /// Rows that one page of a list looks at.
    private static let tokenRowsMax = 10_000

    /// A page of tokens, oldest first.
    ///
    /// - Returns: at most `limit` tokens, and where the list continues; nil at its end. A page may have fewer, even
    ///   zero, and still continue: it reads 10,000 rows at most.
    package func tokens(
        _ filter: TokenFilter, after position: TokenPosition?, limit: Int
    ) throws -> (tokens: [Token], next: TokenPosition?) {
        var arguments: StatementArguments = [position?.created ?? .min, position?.id ?? ""]
        if let account = filter.accountID { arguments += [account] }
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT created, id, body FROM token WHERE (created, id) > (?, ?)
                \(filter.isWithoutSessions ? "AND account IS NULL" : "")
                \(filter.accountID == nil ? "" : "AND account = ?") ORDER BY created, id
                """, arguments: arguments)
        var tokens: [Token] = []
        var last = position
        var rowCount = 0
        while let row = try rows.next() {
            if rowCount == Self.tokenRowsMax { return (tokens, last) }
            let body: Data = try row.decode(atIndex: 2)
            let token = try Token(decoding: [UInt8](body))
            if filter.matches(token) {
                if tokens.count == limit { return (tokens, last) }
                tokens.append(token)
            }
            last = try TokenPosition(created: row.decode(atIndex: 0), id: row.decode(atIndex: 1))
            rowCount += 1
        }
        return (tokens, nil)
    }
}

/// Which tokens a list shall have.
package struct TokenFilter: Sendable {
    /// What administrators call the kinds of tokens.
    package enum Kind: String, CaseIterable, Sendable {
        case api, session
        case signIn = "sign-in"
        case administrator, console
        case consoleLink = "console-link"
        case acting
    }

    /// Nil: all, including tokens without a container.
    package var container: String?
    /// Nil: all.
    package var kinds: Set<Kind>?
    /// The account whose sessions these are; nil: all tokens.
    package var accountID: String?

    /// Without arguments: all tokens.
    package init(container: String? = nil, kinds: Set<Kind>? = nil, accountID: String? = nil) {
        self.container = container
        self.kinds = kinds
        self.accountID = accountID
    }

    fileprivate func matches(_ token: Token) -> Bool {
        (container.map { Bytewise(token.kind.container) == Bytewise($0) } ?? true)
            && (kinds?.contains(token.kind.filterKind) ?? true)
    }

    /// Whether sessions, of which there may be any number, are left out.
    fileprivate var isWithoutSessions: Bool { kinds?.isDisjoint(with: [.session, .signIn]) ?? false }
}

extension TokenKind {
    /// The kind without what it holds.
    package var filterKind: TokenFilter.Kind {
        switch self {
        case .api: .api
        case .session: .session
        case .signIn: .signIn
        case .administrator: .administrator
        case .console: .console
        case .consoleLink: .consoleLink
        case .acting: .acting
        }
    }
}

/// A place in the list of all tokens, which is by time of creation, then id.
package struct TokenPosition: Hashable, Sendable {
    /// Milliseconds since 1970.
    package var created: Int64
    /// The token's.
    package var id: String

    /// The place of the token of that id, made at that time.
    package init(created: Int64, id: String) {
        self.created = created
        self.id = id
    }
}
