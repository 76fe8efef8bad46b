/// By what a web auth token names its session.
package enum SessionKey: Hashable, Sendable {
    /// The id of a session begun by sign-in, from a token that the cluster signed.
    case signIn(id: String)
    /// SHA-256 of the secret of a session that an administrator made.
    case secret(hash: [UInt8])

    /// Nil for a token that is no session.
    init?(_ token: Token) {
        switch token.kind {
        case .signIn: self = .signIn(id: token.id)
        case .session: self = .secret(hash: token.secretHash)
        case .api, .administrator, .console, .consoleLink, .acting: return nil
        }
    }
}

/// A session as requests need it. Nothing of it changes while it lasts.
package struct Session: Hashable, Sendable {
    /// Of one of the two kinds that are sessions.
    package let token: Token
    /// For the audit log.
    package let accountName: String
    /// The user's record name in the token's container; made once, as each request needs it.
    package let userRecordName: String

    package init(token: Token, accountName: String) {
        guard let accountID = token.kind.accountID else { preconditionFailure("token \(token.id) is no session") }
        self.token = token
        self.accountName = accountName
        userRecordName = Account.userRecordName(accountID: accountID, container: token.kind.container)
    }
}

/// The sessions that were used last on this node. A value.
///
/// A session that is not in it is read from the tables, and kept unless it ended between the beginning of the reading
/// and its end: what was read is then older than what the cache was told. So it never has a session that this node
/// knows to be over.
package struct SessionCache: Sendable {
    /// What a reading that began must show at its end.
    package struct Ticket: Hashable, Sendable {
        fileprivate var number: UInt64
    }

    private let halfMax: Int
    /// What was used since `recent` was last full, and what was used in the time before.
    private var recent: [SessionKey: Session] = [:]
    private var earlier: [SessionKey: Session] = [:]
    private var readings: [SessionKey: Set<Ticket>] = [:]
    private var ticketCount: UInt64 = 0

    /// - Parameter countMax: sessions at most; at least 2. The half that was used last is never forgotten.
    package init(countMax: Int) {
        precondition(countMax >= 2, "a cache of \(countMax) sessions")
        halfMax = countMax / 2
    }

    /// Sessions that are kept.
    package var count: Int { recent.count + earlier.count }

    /// The session, if it is kept; it counts as used.
    package mutating func session(_ key: SessionKey) -> Session? {
        if let session = recent[key] { return session }
        guard let session = earlier[key] else { return nil }
        keep(session, key)
        return session
    }

    /// A session is about to be read; `ended(_:_:_:)` must follow.
    package mutating func began(_ key: SessionKey) -> Ticket {
        ticketCount += 1
        let ticket = Ticket(number: ticketCount)
        readings[key, default: []].insert(ticket)
        return ticket
    }

    /// What was read; nil where there is no such session, or reading failed.
    package mutating func ended(_ key: SessionKey, _ ticket: Ticket, _ session: Session?) {
        guard readings[key]?.remove(ticket) != nil else { return }
        if readings[key]?.isEmpty == true { readings[key] = nil }
        if let session { keep(session, key) }
    }

    /// A session is over.
    package mutating func remove(_ token: Token) {
        guard let key = SessionKey(token) else { return }
        recent[key] = nil
        earlier[key] = nil
        readings[key] = nil
    }

    /// Any session may be over.
    package mutating func removeAll() {
        recent = [:]
        earlier = [:]
        readings = [:]
    }

    private mutating func keep(_ session: Session, _ key: SessionKey) {
        earlier[key] = nil
        if recent.count >= halfMax, recent[key] == nil {
            earlier = recent
            recent = [:]
        }
        recent[key] = session
    }
}
