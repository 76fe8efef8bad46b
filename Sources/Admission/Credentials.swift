package import Authorization
package import Directory
package import RecordModel

/// What a request says of who sent it.
package struct Credentials: Sendable {
    /// The `ckAPIToken`, as the client sent it; nil where it is missing.
    package var apiToken: String?
    /// The `ckWebAuthToken`, as the client sent it; nil where it is missing.
    package var webAuthToken: String?
    /// Where the request is signed by a server-to-server key.
    package var signed: SignedRequest?
    /// The page that sends it, where a browser says so.
    package var origin: String?
    /// The administrator who sends it, as the audit log names them; their token was found to be good.
    package var administrator: String?

    /// Takes `undefined`, `null` and the empty string for no token, as some clients send them.
    package init(apiToken: String?, webAuthToken: String?, signed: SignedRequest? = nil, origin: String? = nil) {
        self.apiToken = Self.present(apiToken)
        self.webAuthToken = Self.present(webAuthToken)
        self.signed = signed
        self.origin = origin
    }

    private static func present(_ token: String?) -> String? {
        guard let token, !token.isEmpty, token != "undefined", token != "null" else { return nil }
        return token
    }
}

/// A request signed by a server-to-server key: the signature and the signed parts.
package struct SignedRequest: Sendable {
    /// Well-formed, but not verified: `Admission.admit` does that.
    package var signature: RequestSignature
    /// The request target as it came, with the query.
    package var target: String
    /// The bytes as received; the signature covers their SHA-256.
    package var body: [UInt8]

    package init(signature: RequestSignature, target: String, body: [UInt8]) {
        self.signature = signature
        self.target = target
        self.body = body
    }
}

/// What a request wants to reach.
package struct Target: Hashable, Sendable {
    /// The container's name, compared by its bytes.
    @Bytewise package var container: String
    /// The environment that API tokens and server keys must be for.
    package var environment: Environment
    /// Whether a user is needed: everything but reading and writing public data.
    package var needsUser: Bool

    /// What tokens and keys must be for.
    var schemaKey: SchemaKey { SchemaKey(container: container, environment: environment) }

    package init(container: String, environment: Environment, needsUser: Bool) {
        self.container = container
        self.environment = environment
        self.needsUser = needsUser
    }
}

/// Who sends a request, and by what it was known.
package struct Admitted: Sendable {
    /// The user and roles by which permissions are judged.
    package var caller: Caller
    /// Nil for keys and the administrator.
    package var apiToken: Token?
    /// Nil for anonymous callers and the administrator.
    package var accountID: String?
    /// The account's name, for the audit log; nil for keys.
    package var accountName: String?
    /// Set for a web auth token of a sign-in, which must be replaced.
    package var session: SessionUse?
    /// The server-to-server key.
    package var keyID: String?
    /// The administrator, as the audit log names them: beside an account, they act as its user.
    package var administrator: String?

    /// Whether an administrator acts as the user: then encrypted values stay sealed.
    package var isActing: Bool { administrator != nil && accountID != nil }

    package init(
        caller: Caller, apiToken: Token? = nil, accountID: String? = nil, session: SessionUse? = nil,
        keyID: String? = nil
    ) {
        self.caller = caller
        self.apiToken = apiToken
        self.accountID = accountID
        self.session = session
        self.keyID = keyID
    }
}

/// A web auth token of a sign-in, as it was presented. Times are milliseconds since 1970.
package struct SessionUse: Hashable, Sendable {
    /// The id of the session's token in the directory.
    package var sessionID: String
    /// The issue time that the cluster signed into the token; the session's next token has a greater one.
    package var issued: Int64
    /// When the session ends.
    package var expires: Int64
}

/// The administrator's secret, of which only the hash is kept in memory.
package struct AdministratorToken: Sendable {
    private let hash: [UInt8]

    package init(secret: String) { hash = Token.hash(ofSecret: secret) }

    /// Compares hashes without stopping at the first difference.
    package func matches(_ secret: some StringProtocol) -> Bool {
        let other = Token.hash(ofSecret: secret)
        var difference: UInt8 = 0
        for (left, right) in zip(hash, other) { difference |= left ^ right }
        return difference == 0
    }
}

/// The session that a web auth token names, and what the directory says of it.
package struct PresentedSession: Sendable {
    /// By what the directory finds it.
    package let key: SessionKey
    /// When the token was issued, where the cluster signed it; in milliseconds since 1970.
    private let issued: Int64?
    /// Nil: there is no such session (any longer).
    package var known: Session?

    /// - Parameter signer: opens the tokens of sign-ins; nil where the node has no key for them.
    package init(webAuthToken: String, signer: SessionSigner?) {
        let opened = signer?.open(webAuthToken)
        key = opened.map { SessionKey.signIn(id: $0.sessionID) } ?? .secret(hash: Token.hash(ofSecret: webAuthToken))
        issued = opened?.issued
    }

    /// Whether this cluster signed the token: it is one of a sign-in, however long ago that ended.
    package var isOfSignIn: Bool { issued != nil }

    /// The session and its account in a container, and how its token is replaced; nil if it stays.
    /// - Throws: `AUTHENTICATION_REQUIRED` where the session is unknown there, over or expired.
    func use(
        in container: String, now: Int64
    ) throws(ServiceError) -> (Session, accountID: String, use: SessionUse?) {
        guard let known, let accountID = known.token.kind.accountID, let expires = known.token.kind.expires,
            Bytewise(known.token.kind.container) == Bytewise(container)
        else {
            throw ServiceError(
                .authenticationRequired,
                "request needs authorization: the ckWebAuthToken is not known for this container, or was revoked")
        }
        guard now < expires else {
            throw ServiceError(
                .authenticationRequired, "request needs authorization: the ckWebAuthToken has expired")
        }
        return (known, accountID, issued.map { SessionUse(sessionID: known.token.id, issued: $0, expires: expires) })
    }
}
