import Crypto
package import RecordModel
package import Wire

/// What a token lets its bearer do.
package enum TokenKind: Hashable, Sendable {
    /// Names the container and environment that requests may address. `origins`: the web pages that may use it; empty
    /// means all. `callbackURL`: where sign-in sends the browser; nil: sign-in reports to the page that opened it.
    case api(container: String, environment: Environment, origins: [String], callbackURL: String?)
    /// Speaks for an account in one container. `expires` in milliseconds since 1970.
    case session(container: String, accountID: String, expires: Int64)
    /// A session begun by sign-in. Its tokens are signed, change with each request and are not stored.
    case signIn(container: String, accountID: String, expires: Int64)
    /// Speaks for an administrator of the cluster, whom the audit log names so.
    case administrator(name: String)
    /// A session of an administrator in the console; the name is empty for one that the nodes' own token began.
    case console(name: String, expires: Int64)
    /// Begins such a session, once.
    case consoleLink(name: String, expires: Int64)
    /// A time for which an administrator is let in as a user.
    case acting(ActingSession)

    /// Empty for administrators, who are the cluster's.
    package var container: String {
        switch self {
        case .administrator, .console, .consoleLink: ""
        case .api(let container, _, _, _): container
        case .session(let container, _, _), .signIn(let container, _, _): container
        case .acting(let session): session.container
        }
    }

    /// The account of a user's own session.
    package var accountID: String? {
        switch self {
        case .api, .administrator, .console, .consoleLink, .acting: nil
        case .session(_, let accountID, _), .signIn(_, let accountID, _): accountID
        }
    }

    /// Milliseconds since 1970; nil for never.
    package var expires: Int64? {
        switch self {
        case .api, .administrator: nil
        case .session(_, _, let expires), .signIn(_, _, let expires), .console(_, let expires),
            .consoleLink(_, let expires):
            expires
        case .acting(let session): session.expires
        }
    }

    /// Whose it is, if it is an administrator's; empty for one that the nodes' own token began.
    package var administratorName: String? {
        switch self {
        case .administrator(let name), .console(let name, _), .consoleLink(let name, _): name
        case .acting(let session): session.administrator
        case .api, .session, .signIn: nil
        }
    }
}

/// A token as it is kept: by its hash, never in clear.
package struct Token: Hashable, Sendable, WireCodable {
    /// What administrators name it by: 16 hexadecimal digits, no secret.
    package var id: String
    /// SHA-256 of the secret's UTF-8 bytes; of a session begun by sign-in, which has no secret, `hash(ofSession:)` of
    /// its id.
    package var secretHash: [UInt8]
    /// What the token is for, with the account or administrator for which it speaks.
    package var kind: TokenKind
    /// What lists show beside the id; may be empty. For a time as a user, the account's name.
    package var label: String
    /// Milliseconds since 1970.
    package var created: Int64
    /// Who made it, as the audit log names them; empty where that is not known.
    package var maker = ""
    /// When an app used it last, to a day, in milliseconds since 1970; nil where that is not known.
    package var lastUsed: Int64?

    /// Administrators with tokens of their own that a cluster has at most.
    package static let administratorsMax = 1_000

    /// API tokens of one container: they are in the memory of every node.
    package static let apiTokensMax = 1_000

    /// Sessions begun by sign-in that one account has in one container at most; where another begins, the oldest ends.
    package static let signInSessionsMax = 100

    /// Sessions in the console, and links to it, that one administrator has at most; where another begins, the oldest
    /// ends.
    package static let consoleSessionsMax = 20

    package init(id: String, secretHash: [UInt8], kind: TokenKind, label: String, created: Int64) {
        self.id = id
        self.secretHash = secretHash
        self.kind = kind
        self.label = label
        self.created = created
    }

    /// A session begun by sign-in.
    package init(sessionID: String, container: String, accountID: String, expires: Int64, label: String, created: Int64)
    {
        self.init(
            id: sessionID, secretHash: Self.hash(ofSession: sessionID),
            kind: .signIn(container: container, accountID: accountID, expires: expires), label: label, created: created)
    }

    /// What stands in the place of a secret's hash. No secret is equal to it: `DirectorySnapshot.token(withSecret:)`
    /// does not find such sessions.
    package static func hash(ofSession id: String) -> [UInt8] { hash(ofSecret: "session/" + id) }

    /// The hash under which a secret is looked up.
    package static func hash(ofSecret secret: some StringProtocol) -> [UInt8] {
        Array(SHA256.hash(data: Array(secret.utf8)))
    }

    package func encode(to writer: inout WireWriter) {
        var parts = Parts(id: id, secretHash: secretHash, label: label, created: created, container: kind.container)
        parts.accountID = kind.accountID
        (parts.maker, parts.lastUsed) = (maker, lastUsed)
        switch kind {
        case .api(_, let environment, let origins, let callbackURL):
            (parts.environment, parts.origins, parts.callbackURL) = (environment, origins, callbackURL)
        case .session: parts.expires = kind.expires
        case .signIn: (parts.expires, parts.isSignIn) = (kind.expires, true)
        case .administrator(let name): parts.administrator = name
        case .console(let name, let expires): (parts.expires, parts.console) = (expires, name)
        case .consoleLink(let name, let expires): (parts.expires, parts.consoleLink) = (expires, name)
        case .acting(let session): parts.acting = session
        }
        parts.encode(to: &writer)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        let parts = try Parts(from: &reader)
        self.init(
            id: parts.id, secretHash: parts.secretHash, kind: parts.kind, label: parts.label, created: parts.created)
        (maker, lastUsed) = (parts.maker, parts.lastUsed)
    }

    /// The binary form.
    private struct Parts: WireMessage {
        var id = ""
        var secretHash: [UInt8] = []
        var label = ""
        var created: Int64 = 0
        var container = ""
        /// Of API tokens only.
        var environment: Environment?
        var accountID: String?
        var expires: Int64?
        var origins: [String] = []
        var callbackURL: String?
        var isSignIn = false
        /// The names of administrators.
        var administrator: String?
        var console: String?
        var consoleLink: String?
        var acting: ActingSession?
        var maker = ""
        var lastUsed: Int64?

        static var blank: Self { Parts() }

        mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &id)
            try wire.field(2, &secretHash)
            try wire.field(3, &label)
            try wire.field(4, &created)
            try wire.field(5, &container)
            try wire.field(6, &environment)
            try wire.field(7, &accountID)
            try wire.field(8, &expires)
            try wire.field(9, &origins)
            try wire.field(10, &callbackURL)
            try wire.field(11, &isSignIn, unless: false)
            try wire.field(12, &administrator)
            try wire.field(13, &console)
            try wire.field(14, &consoleLink)
            try wire.field(15, &acting)
            try wire.field(16, &maker, unless: "")
            try wire.field(17, &lastUsed)
        }

        var kind: TokenKind {
            let (accountID, expires) = (accountID ?? "", expires ?? 0)
            if let acting { return .acting(acting) }
            if let administrator { return .administrator(name: administrator) }
            if let console { return .console(name: console, expires: expires) }
            if let consoleLink { return .consoleLink(name: consoleLink, expires: expires) }
            if let environment {
                return .api(container: container, environment: environment, origins: origins, callbackURL: callbackURL)
            }
            if isSignIn { return .signIn(container: container, accountID: accountID, expires: expires) }
            return .session(container: container, accountID: accountID, expires: expires)
        }
    }
}

/// The public half of a key with which a server signs its requests; it speaks for an account in one container's
/// environment.
package struct ServerKey: Hashable, Sendable, WireMessage {
    /// What requests and administrators name it by: 64 hexadecimal digits, no secret.
    package var id: String
    /// The only container whose requests the key may sign.
    package var container: String
    /// The only environment of the container in which the key is valid.
    package var environment: Environment
    /// A point of the curve P-256 in the form of ANSI X9.63, uncompressed: 65 bytes, the first one is 4.
    package var publicKey: [UInt8]
    /// The id of the account; signed requests act as its user.
    package var accountID: String
    /// What lists show beside the id; may be empty.
    package var label: String
    /// Milliseconds since 1970.
    package var created: Int64
    /// Who made it, as of `Token`.
    package var maker = ""
    /// When it was used last, as of `Token`.
    package var lastUsed: Int64?

    /// Keys of one container: they are in the memory of every node.
    package static let containerMax = 1_000

    /// Of an uncompressed point of P-256.
    package static let publicKeyBytes = 65

    package init(
        id: String, container: String, environment: Environment, publicKey: [UInt8], accountID: String, label: String,
        created: Int64
    ) {
        self.id = id
        self.container = container
        self.environment = environment
        self.publicKey = publicKey
        self.accountID = accountID
        self.label = label
        self.created = created
    }

    package static var blank: Self {
        ServerKey(id: "", container: "", environment: .development, publicKey: [], accountID: "", label: "", created: 0)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &id)
        try wire.field(2, &container)
        try wire.required(3, &environment)
        try wire.field(4, &publicKey)
        try wire.field(5, &accountID)
        try wire.field(6, &label)
        try wire.field(7, &created)
        try wire.field(8, &maker, unless: "")
        try wire.field(9, &lastUsed)
    }
}

/// That an account has a custom security role in one container's environment.
package struct RoleMember: Hashable, Sendable, WireMessage, Comparable {
    /// The container in which the account has the role.
    @Bytewise package var container: String
    /// The environment in which the account has the role.
    package var environment: Environment
    /// The role's name; a role that the schema does not have grants nothing.
    @Bytewise package var role: String
    /// The account's id, which clients never see.
    @Bytewise package var accountID: String

    package init(container: String, environment: Environment, role: String, accountID: String) {
        self.container = container
        self.environment = environment
        self.role = role
        self.accountID = accountID
    }

    package static var blank: Self { RoleMember(container: "", environment: .development, role: "", accountID: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &container)
        try wire.required(2, &environment)
        try wire.field(3, &role)
        try wire.field(4, &accountID)
    }

    /// By container, environment, role, account's id.
    package static func < (left: Self, right: Self) -> Bool {
        (left.$container, left.environment.rawValue, left.$role, left.$accountID)
            < (right.$container, right.environment.rawValue, right.$role, right.$accountID)
    }
}
