import Directory
import RecordModel
import Service

/// `/admin/1/console`: signing in to the console, and out of it.
struct ConsoleRoutes {
    let request: AdminRequest
    private var console: ConsoleAdministration { request.administration.console }

    /// A link that opens the console once, for the holder of the token.
    func makeLink() async throws(RequestFailure) -> Reply {
        _ = try request.body.jsonMembers()
        let link = try await console.makeLink()
        return Reply { writer in
            writer.member("url", "\(request.call.origin)/console/#link=\(link.secret)")
            writer.member("secret", link.secret)
            writer.member("expires", integer: link.expires)
        }
    }

    /// By a link, or by a name and a password.
    func signIn() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        let access =
            if let link = json["link"]?.string {
                try await console.signIn(link: link)
            } else {
                try await console.signIn(
                    name: try json.text("name"), password: try json.text("password"),
                    from: request.responder.knownBrowser(request.call))
            }
        let secret = try await request.service.requireSecret()
        var reply = reply(of: access, secret)
        if let session = access.session { reply.headers.append(ConsoleCookie(session).header(secret)) }
        if let known = console.knownBrowser(of: access) {
            reply.headers.append(KnownBrowser.header(known, cookie: KnownBrowser.administratorCookieName))
        }
        return reply
    }

    /// Who asks, and until when they may.
    func caller() async throws(RequestFailure) -> Reply {
        reply(of: try request.administration.access, try await request.service.requireSecret())
    }

    /// Sets the password of the session's administrator. Who came by a link of the nodes' token says which name is
    /// theirs from now on.
    func setPassword() async throws(RequestFailure) -> Reply {
        let (json, access) = (try request.json(), try request.administration.access)
        let secret = try await request.service.requireSecret()
        guard access.session != nil else {
            throw .badRequest("a session in the console is expected; set others' passwords with PATCH administrators")
        }
        let name = if let own = access.name { own } else { try json.administratorName() }
        return reply(of: try await console.setOwnPassword(try json.text("password"), name: name), secret)
    }

    /// A token for the command line, by which its bearer is the session's administrator.
    func makeToken() async throws(RequestFailure) -> Reply {
        let made = try await console.makeToken(label: try request.json().label())
        return Reply { writer in
            writer.member("id", made.token.id)
            writer.member("secret", made.secret)
        }
    }

    /// Revokes the token of the administrator who asks, on all nodes when it is answered.
    func revokeToken() async throws(RequestFailure) -> Reply {
        let name = try request.administration.access.name ?? ""
        guard let token = try await request.service.cluster.newestDirectory().administratorToken(of: name) else {
            throw .notFound("there is no token of yours for the command line")
        }
        try await request.administration.change(.revokeToken(id: token.id))
        return .done("revoked", "id", token.id)
    }

    /// Ends the session, on all nodes when it is answered.
    func signOut() async throws(RequestFailure) -> Reply {
        _ = try request.body.jsonMembers()
        try await console.signOut()
        var reply = Reply { $0.member("signedOut", true) }
        reply.headers.append(ConsoleCookie.removal(try await request.service.requireSecret()))
        return reply
    }

    private func reply(of access: AdministratorAccess, _ secret: ClusterSecret) -> Reply {
        let directory = request.service.directory
        let known = access.name.flatMap { directory.administrator(named: $0) }
        return Reply { writer in
            writer.key("name")
            if let name = access.name { writer.string(name) } else { writer.null() }
            writer.member("role", access.role.rawValue)
            AdministratorRoutes.write(access.containers, to: &writer)
            AdministratorRoutes.write(access.name.flatMap(directory.administratorToken(of:)), to: &writer)
            guard let session = access.session else { return }
            writer.member("csrfToken", ConsoleCookie.csrfToken(of: session, secret))
            writer.member("idleExpires", integer: session.idleExpires)
            writer.member("expires", integer: session.expires)
            writer.member("freshUntil", integer: session.freshUntil)
            writer.member("needsPassword", known?.password == nil)
        }
    }
}

/// `/admin/1/administrators`: who administers the cluster, or single containers of it.
struct AdministratorRoutes {
    let request: AdminRequest
    private var console: ConsoleAdministration { request.administration.console }

    func list() async throws(RequestFailure) -> Reply {
        let team = try await console.team()
        return Reply { $0.list("administrators", team) { write($0, to: &$1) } }
    }

    func create() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        let name = try json.administratorName()
        let changes = try Self.changes(json)
        guard let role = changes.role else { throw Self.unknownRole }
        let administrator = try await console.create(name, role, changes)
        return Reply { write(administrator, to: &$0) }
    }

    /// Changes what the body names: the role, the containers, the password. A new password ends all sessions.
    func update() async throws(RequestFailure) -> Reply {
        let (name, json) = (try request.url.need("name"), try request.json())
        guard json["role"] != nil || json["containers"] != nil || json["password"] != nil else {
            throw .badRequest("nothing to change: role, containers or password is expected in the body")
        }
        let administrator = try await console.update(name, try Self.changes(json))
        return Reply { write(administrator, to: &$0) }
    }

    /// Removes an administrator with their token, links and sessions.
    func delete() async throws(RequestFailure) -> Reply {
        let name = try request.url.need("name")
        try await console.remove(name)
        return .done("deleted", "name", name)
    }

    /// The members `role`, `containers` and `password`; what is missing stays.
    private static func changes(_ json: JSONValue) throws(RequestFailure) -> AdministratorChanges {
        var changes = AdministratorChanges()
        if let given = json["role"] {
            guard let role = given.string.flatMap(AdministratorRole.init(rawValue:)) else { throw unknownRole }
            changes.role = role
        }
        if let given = json["containers"] { changes.containers = .some(try containers(given)) }
        if let given = json["password"] {
            changes.password = given.isNull ? .removed : .set(try AccountRoutes.password(given))
        }
        return changes
    }

    private static func containers(_ json: JSONValue) throws(RequestFailure) -> [String]? {
        if json.isNull { return nil }
        let names = json.array?.compactMap(\.string)
        guard let names, names.count == json.array?.count, !names.isEmpty else {
            throw .badRequest("containers: a list of containers' names, or null for all, is expected")
        }
        var containers: Set<String> = []
        for name in names { containers.insert(try AdminRequest.containerName(name)) }
        return containers.sorted()
    }

    private static let unknownRole = RequestFailure(
        .badRequest, "role: one of \(AdministratorRole.allCases.map(\.rawValue).joined(separator: ", ")) is expected")

    private func write(_ administrator: Administrator, to writer: inout JSONWriter) {
        writer.member("name", administrator.name)
        writer.member("role", administrator.role.rawValue)
        Self.write(administrator.containers, to: &writer)
        Self.write(request.service.directory.administratorToken(of: administrator.name), to: &writer)
        writer.member("hasPassword", administrator.password != nil)
        writer.member("created", integer: administrator.created)
        writer.key("lastUsed")
        if let time = administrator.lastSignIn { writer.integer(time) } else { writer.null() }
    }

    /// Somebody's token for the command line, without its secret; nothing where they have none.
    static func write(_ token: Token?, to writer: inout JSONWriter) {
        guard let token else { return }
        writer.object("token") { writer in
            writer.member("id", token.id)
            writer.member("label", token.label)
            writer.member("created", integer: token.created)
        }
    }

    /// Where a role holds; null: everywhere.
    static func write(_ containers: [String]?, to writer: inout JSONWriter) {
        if let containers { return writer.list("containers", containers) }
        writer.key("containers")
        writer.null()
    }
}
