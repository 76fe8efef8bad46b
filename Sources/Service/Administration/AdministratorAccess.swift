package import Directory
package import RecordModel

/// What an operation asks of the administrator who calls it: a row of the table of permissions.
package struct AdministratorNeed: Hashable, Sendable {
    /// Where the role must hold.
    package enum Place: Hashable, Sendable {
        /// In the whole cluster.
        case cluster
        /// In the container that the request names; without one, in the whole cluster.
        case container
        /// Anywhere: the operation shows what the administrator may see, or what everybody may.
        case anywhere
    }

    /// The least role. A developer's operation asks for `admin` in production.
    package var role: AdministratorRole
    /// What the administrator's `containers` must cover, if anything.
    package var place: Place
    /// Whether somebody in the console must have signed in a short time ago.
    package var isDangerous: Bool

    package init(_ role: AdministratorRole, _ place: Place, isDangerous: Bool = false) {
        self.role = role
        self.place = place
        self.isDangerous = isDangerous
    }
}

/// An administrator who asks for something, and by what they were known.
package struct AdministratorAccess: Hashable, Sendable {
    /// Nil for the nodes' own token.
    package var name: String?
    /// The role at the time of the request; `admin` for the nodes' own token.
    package var role: AdministratorRole
    /// Where the role holds; empty: nowhere; nil: in the whole cluster.
    package var containers: [String]?
    /// Nil where a token was sent.
    package var session: ConsoleSession?

    package init(
        name: String?, role: AdministratorRole, containers: [String]? = nil, session: ConsoleSession? = nil
    ) {
        self.name = name
        self.role = role
        self.containers = containers
        self.session = session
    }

    /// As the audit log names them.
    package var actor: String { session == nil ? actors[0] : actors[1] }

    /// All that the audit log names them: by a token, and in the console.
    var actors: [String] {
        let actor = name.map { AuditOrigin.administrator(named: $0) } ?? AuditOrigin.administrator
        return [actor, "\(actor) (console)"]
    }

    /// Whether they may do everything everywhere.
    package var isClusterAdmin: Bool { role == .admin && containers == nil }

    /// Whether the role holds in a container.
    package func covers(_ container: String) -> Bool { containers?.contains(container) ?? true }

    /// - Parameter container: what the request names; nil where it names none.
    /// - Throws: `ACCESS_DENIED` where the need is not met.
    package func require(
        _ need: AdministratorNeed, container: String?, environment: Environment?, now: Int64
    ) throws(RequestFailure) {
        let least = need.role == .developer && environment == .production ? .admin : need.role
        guard role >= least else {
            throw .accessDenied(
                "this needs the role '\(least.rawValue)', and the administrator is a \(role.rawValue)",
                details: .leastRole(least))
        }
        let isCovered =
            switch need.place {
            case .cluster: containers == nil
            case .container: container.map { covers($0) } ?? (containers == nil)
            case .anywhere: true
            }
        guard isCovered else {
            let place = need.place == .container ? container.map { "container '\($0)'" } : nil
            let held = (containers ?? []).joined(separator: ", ")
            throw .accessDenied(
                "the administrator's role does not hold in \(place ?? "the whole cluster"): it is for "
                    + (held.isEmpty ? "containers that were removed" : held), details: .leastRole(least))
        }
        if need.isDangerous, let session, now >= session.freshUntil {
            throw .accessDenied(
                "this needs a sign-in of the last \(ConsoleSession.freshMilliseconds / 60_000) minutes",
                details: .freshSignIn)
        }
    }
}

/// A session of the console, as the browser's cookie names it. Times are milliseconds since 1970.
package struct ConsoleSession: Hashable, Sendable {
    /// The id of the session's token in the directory: 16 hexadecimal digits, no secret.
    package var id: String
    /// The secret that the cookie carries: 64 hexadecimal digits. The directory has its hash only.
    package var secret: String
    /// When somebody signed in.
    package var began: Int64
    /// When it ends, whatever happens.
    package var expires: Int64
    /// When it was used, as far as the cookie knows.
    package var lastUsed: Int64

    /// A session lasts for so long in all.
    package static let lifetimeMilliseconds: Int64 = 12 * 3_600_000
    /// Without a request it ends after so long.
    package static let idleMilliseconds: Int64 = 30 * 60_000
    /// For so long after a sign-in dangerous operations are possible.
    package static let freshMilliseconds: Int64 = 15 * 60_000
    /// A link to the console is good for so long.
    package static let linkMilliseconds: Int64 = 60_000

    package init(id: String, secret: String, began: Int64, expires: Int64, lastUsed: Int64) {
        self.id = id
        self.secret = secret
        self.began = began
        self.expires = expires
        self.lastUsed = lastUsed
    }

    /// When it ends if nothing more is asked for.
    package var idleExpires: Int64 { min(expires, lastUsed + Self.idleMilliseconds) }

    /// Until when dangerous operations are possible without another sign-in.
    package var freshUntil: Int64 { min(expires, began + Self.freshMilliseconds) }
}
