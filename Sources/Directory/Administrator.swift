package import RecordModel
package import Wire

/// What an administrator may do. Each role may do all that those before it may.
package enum AdministratorRole: String, CaseIterable, Comparable, Sendable, WireValue {
    /// Reads schemas, public records, usage, limits and the state of the cluster.
    case viewer
    /// Changes schemas, roles, public records and tokens in development, too.
    case developer
    /// Does everything.
    case admin

    /// By what the roles allow, in ascending order: `viewer`, `developer`, `admin`.
    package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

    private var rank: Int {
        switch self {
        case .viewer: 0
        case .developer: 1
        case .admin: 2
        }
    }
}

/// A member of the team that administers a cluster. The name is also that of the administrator's own token; a name that
/// has a token and no role here has the role `admin`.
package struct Administrator: Hashable, Sendable, WireMessage {
    /// How the audit log names them; unique.
    package var name: String
    /// What the administrator may do in `containers`.
    package var role: AdministratorRole
    /// Where the role holds, sorted; empty: nowhere, as its containers are gone; nil: in the whole cluster.
    package var containers: [String]?
    /// Nil: they cannot sign in to the console by a password.
    package var password: PasswordHash?
    /// Milliseconds since 1970.
    package var created: Int64
    /// When they signed in to the console for the last time, in milliseconds since 1970.
    package var lastSignIn: Int64?

    /// Containers that one administrator's role is held to at most.
    package static let containersMax = 100

    package init(
        name: String, role: AdministratorRole, containers: [String]? = nil, password: PasswordHash? = nil,
        created: Int64, lastSignIn: Int64? = nil
    ) {
        self.name = name
        self.role = role
        self.containers = containers
        self.password = password
        self.created = created
        self.lastSignIn = lastSignIn
    }

    /// Under which name failed sign-ins are counted, beside those of accounts, whose ids have no colon.
    package static func lockoutKey(_ name: String) -> String { "administrator:\(name)" }

    /// Whether a text may be a name: 1 to 64 letters, digits and any of `- _ . @`.
    package static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isASCIILetterOrDigit || "-_.@".utf8.contains($0) }
    }

    package static var blank: Self { Administrator(name: "", role: .viewer, created: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &name)
        try wire.required(2, &role)
        try wire.field(3, &containers, members: 4)
        try wire.field(5, &password)
        try wire.field(6, &created)
        try wire.field(7, &lastSignIn)
    }
}

/// A time for which an administrator is let in as a user of one container's environment.
///
/// It is no secret: a request names it by its id, and counts only beside the administrator's own credential. It ends by
/// itself, by an administrator, with the session of the console in which it began, and with its administrator.
package struct ActingSession: Hashable, Sendable {
    /// The administrator's name; empty for the token that every node has in a file.
    package var administrator: String
    /// The session of the console in which it began, by its id; empty where a token was shown.
    package var consoleSession: String
    /// Where it holds.
    package var container: String
    /// In which of the container's environments.
    package var environment: Environment
    /// The user's.
    package var accountID: String
    /// Why, in the administrator's words.
    package var reason: String
    /// Whether things may be changed, too.
    package var mayWrite: Bool
    /// Milliseconds since 1970.
    package var expires: Int64

    /// A time until `expires`.
    package init(
        by administrator: String, in consoleSession: String, as accountID: String, of place: SchemaKey, reason: String,
        mayWrite: Bool, expires: Int64
    ) {
        self.administrator = administrator
        self.consoleSession = consoleSession
        container = place.container
        environment = place.environment
        self.accountID = accountID
        self.reason = reason
        self.mayWrite = mayWrite
        self.expires = expires
    }

    /// Where it holds, as one value.
    package var schemaKey: SchemaKey { SchemaKey(container: container, environment: environment) }

    /// Characters of a reason.
    package static let reasonLengthMax = 500
    /// What no limit allows more than, in minutes.
    package static let minutesMax: Int64 = 15
}

extension ActingSession: WireMessage {
    package static var blank: Self {
        ActingSession(
            by: "", in: "", as: "", of: SchemaKey(container: "", environment: .development), reason: "",
            mayWrite: false, expires: 0)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &administrator)
        try wire.field(2, &consoleSession)
        try wire.required(3, &container)
        try wire.required(4, &environment)
        try wire.required(5, &accountID)
        try wire.field(6, &reason)
        try wire.field(7, &mayWrite, unless: false)
        try wire.required(8, &expires)
    }
}
