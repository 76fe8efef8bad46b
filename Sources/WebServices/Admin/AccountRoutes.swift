import Admission
import Directory
import RecordModel
import Service

/// `/admin/1/users`.
struct AccountRoutes {
    let request: AdminRequest
    private var accounts: AccountAdministration { request.administration.accounts }

    func list() async throws(RequestFailure) -> Reply {
        let page = try await accounts.list(after: request.url["after"] ?? "", limit: try request.url.pageLimit())
        return Reply { writer in
            writer.list("users", page.accounts) { user, writer in
                Self.write(user.account, to: &writer)
                writer.optional("lockedUntil", integer: user.lockedUntil)
            }
            writer.optional("next", page.moreComing ? page.accounts.last?.account.name : nil)
        }
    }

    private static func write(_ account: Account, to writer: inout JSONWriter) {
        writer.member("name", account.name)
        writer.member("created", integer: account.created)
        writer.optional("email", account.email)
        writer.optional("givenName", account.givenName)
        writer.optional("familyName", account.familyName)
        writer.member("discoverable", account.isDiscoverable)
        writer.member("hasPassword", account.password != nil)
        guard let identity = account.identity else { return }
        writer.object("identity") { writer in
            writer.member("issuer", identity.issuer)
            writer.member("subject", identity.subject)
        }
    }

    func create() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        let name = try AccountAdministration.name(try json.text("name"))
        let account = try await accounts.create(
            name, try Self.changes(json), password: try json.given("password").map(Self.password))
        return Reply { Self.write(account, to: &$0) }
    }

    /// Changes what the body names; null and the empty string clear.
    func update() async throws(RequestFailure) -> Reply {
        let name = try request.url.need("name")
        let changes = try Self.changes(try request.json())
        guard !changes.isEmpty else {
            throw .badRequest(
                "nothing to change: email, givenName, familyName, discoverable or identity is expected in the body")
        }
        let account = try await accounts.update(name, changes)
        return Reply { Self.write(account, to: &$0) }
    }

    func delete() async throws(RequestFailure) -> Reply {
        let name = try request.url.need("name")
        try await request.administration.change(.deleteAccount(name: name))
        return .done("deleted", "name", name)
    }

    /// The body's members about an account; what is missing is nil, null is the empty string.
    private static func changes(_ json: JSONValue) throws(RequestFailure) -> AccountChanges {
        func member(_ key: String) throws(RequestFailure) -> String? {
            guard let value = json[key] else { return nil }
            if value.isNull { return "" }
            guard let text = value.string, text.count <= Limits.nameLengthMax, !text.contains(where: \.isNewline) else {
                throw .badRequest("\(key): at most \(Limits.nameLengthMax) characters on one line are expected")
            }
            return text
        }
        let changes = AccountChanges(
            email: try member("email"), givenName: try member("givenName"), familyName: try member("familyName"),
            isDiscoverable: try json.flag("discoverable"),
            identity: try json["identity"].map { value throws(RequestFailure) in try identity(value) })
        if let email = changes.email, !email.isEmpty, !AccountAdministration.isEmail(email) {
            throw .badRequest("email: an address such as ada@example.com is expected, not '\(email)'")
        }
        return changes
    }

    /// Who the user is at an identity provider; null takes it away.
    private static func identity(_ json: JSONValue) throws(RequestFailure) -> ExternalIdentity {
        if json.isNull { return .none }
        guard let issuer = json["issuer"]?.string, !issuer.isEmpty, let subject = json["subject"]?.string,
            ExternalIdentity.isSubject(subject)
        else {
            throw .badRequest(
                "identity: {\"issuer\": ..., \"subject\": ...} or null is expected; a subject is 1 to 255 ASCII characters"
            )
        }
        return ExternalIdentity(issuer: issuer, subject: subject)
    }

    func unlock() async throws(RequestFailure) -> Reply {
        let name = try request.url.need("name")
        try await accounts.unlock(name)
        return .done("unlocked", "name", name)
    }

    /// Sets a user's password, or takes it away; ends a lock-out, and the user's sessions unless told not to.
    func setPassword() async throws(RequestFailure) -> Reply {
        let (name, json) = (try request.url.need("name"), try request.json())
        guard json["password"] != nil else {
            throw .badRequest("password: a text, or null to take it away, is expected")
        }
        let password = try json.given("password").map(Self.password)
        try await accounts.setPassword(password, of: name, endsSessions: try json.flag("endSessions") ?? true)
        return Reply { writer in
            writer.member("name", name)
            writer.member("hasPassword", password != nil)
        }
    }

    static func password(_ json: JSONValue) throws(RequestFailure) -> String {
        if let text = json.string { return text }
        throw .badRequest("password: a text is expected")
    }
}

/// `/admin/1/roles`: who has which of a schema's custom roles.
struct RoleRoutes {
    let request: AdminRequest
    private var accounts: AccountAdministration { request.administration.accounts }

    func list() async throws(RequestFailure) -> Reply {
        let key = try request.url.schemaKey()
        let roles = try await accounts.roles(of: key)
        return Reply { writer in
            writer.members(of: key)
            writer.list("roles", roles) { role, writer in
                writer.member("name", role.name)
                writer.list("members", role.members)
            }
        }
    }

    /// `GET roles/explain`.
    func explain() async throws(RequestFailure) -> Reply {
        let (key, user) = (try request.url.schemaKey(), request.url.text("user"))
        let (roles, rights) = try await accounts.rights(of: user, in: key)
        return Reply { writer in
            writer.members(of: key)
            writer.optional("user", user)
            writer.list("roles", roles)
            writer.list("types", rights) { rights, writer in
                writer.member("name", rights.type)
                writer.list("create", rights.create)
                writer.list("read", rights.read)
                writer.list("write", rights.write)
            }
        }
    }

    func add() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        return try await set(try json.schemaKey(), try json.text("role"), try json.text("user"), isMember: true)
    }

    func remove() async throws(RequestFailure) -> Reply {
        let url = request.url
        return try await set(try url.schemaKey(), try url.need("role"), try url.need("user"), isMember: false)
    }

    private func set(
        _ key: SchemaKey, _ role: String, _ user: String, isMember: Bool
    ) async throws(RequestFailure) -> Reply {
        try await accounts.setMember(user, of: role, in: key, isMember: isMember)
        return Reply { writer in
            writer.members(of: key)
            writer.member("role", role)
            writer.member("user", user)
            writer.member("member", isMember)
        }
    }
}

/// `/admin/1/providers` and `/admin/1/sign-up`: who may sign in besides the users with a password.
struct ProviderRoutes {
    let request: AdminRequest

    func list() async throws(RequestFailure) -> Reply {
        let providers = try await request.service.cluster.newestDirectory().providers
        return Reply { $0.list("providers", providers) { Self.write($0, to: &$1) } }
    }

    private static func write(_ provider: IdentityProvider, to writer: inout JSONWriter) {
        writer.member("name", provider.name)
        writer.member("issuer", provider.issuer)
        writer.member("clientID", provider.clientID)
        writer.member("hasSecret", !provider.sealedSecret.isEmpty)
        writer.member("allowsSignUp", provider.allowsSignUp)
    }

    /// Adds a provider, or gives the one of that name new values. A secret, and whether it may make accounts, stay as
    /// they are where they are left out.
    func set() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        let name = try json.text("name")
        guard AccountAdministration.line(name) != nil, name.count <= 64 else {
            throw .badRequest("name: 1 to 64 characters on one line are expected")
        }
        let issuer = try json.text("issuer")
        do throws(ServiceError) {
            _ = try ProviderDocument.address(ofIssuer: issuer)
        } catch {
            throw RequestFailure(error.code, "issuer: \(error.reason)")
        }
        let provider = try await request.administration.providers.set(
            name, issuer: issuer, clientID: try json.text("clientID"), try Self.secret(json),
            allowsSignUp: json["allowsSignUp"] == .null ? nil : try json.flag("allowsSignUp"))
        return Reply { Self.write(provider, to: &$0) }
    }

    private static func secret(_ json: JSONValue) throws(RequestFailure) -> SecretChange {
        guard let given = json["clientSecret"] else { return .unchanged }
        if given.isNull { return .removed }
        guard let secret = given.string, !secret.isEmpty, secret.utf8.count <= 4_096 else {
            throw .badRequest("clientSecret: a text of 1 to 4,096 bytes, or null, is expected")
        }
        return .set(secret)
    }

    func remove() async throws(RequestFailure) -> Reply {
        let name = try request.url.need("name")
        try await request.administration.change(.removeIdentityProvider(name: name))
        return .done("deleted", "name", name)
    }

    func signUp() async throws(RequestFailure) -> Reply {
        let isOpen = try await request.service.cluster.newestDirectory().isSignUpOpen
        return Reply { $0.member("open", isOpen) }
    }

    func setSignUp() async throws(RequestFailure) -> Reply {
        guard let isOpen = try request.json().flag("open") else {
            throw .badRequest("open: true or false is expected")
        }
        try await request.administration.change(.setSignUp(isOpen: isOpen))
        return Reply { $0.member("open", isOpen) }
    }
}

/// `/admin/1/act-as`: times for which administrators are let in as users.
struct ActingRoutes {
    let request: AdminRequest
    private var acting: ActingAdministration { request.administration.acting }

    func begin() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        let entry = try await acting.begin(
            as: try json.text("user"), in: try json.schemaKey(), reason: try Self.reason(json),
            mayWrite: try json.flag("write") ?? false, minutes: try Self.minutes(json))
        return Reply { Self.write(entry, to: &$0) }
    }

    private static func reason(_ json: JSONValue) throws(RequestFailure) -> String {
        let lengthMax = ActingSession.reasonLengthMax
        let given = try json.text("reason")
        guard given.count <= lengthMax, given.contains(where: { !$0.isWhitespace }),
            !given.contains(where: { $0.isNewline || $0 == "\0" })
        else { throw .badRequest("reason: 1 to \(lengthMax) characters on one line are expected") }
        return given
    }

    private static func minutes(_ json: JSONValue) throws(RequestFailure) -> Int64? {
        guard let given = json.given("minutes") else { return nil }
        guard case .integer(let number) = given, (1...ActingSession.minutesMax).contains(number) else {
            throw .badRequest("minutes: 1 to \(ActingSession.minutesMax) is expected")
        }
        return number
    }

    func list() async throws(RequestFailure) -> Reply {
        let entries = try await acting.list()
        return Reply { writer in writer.list("acting", entries) { Self.write($0, to: &$1) } }
    }

    func end() async throws(RequestFailure) -> Reply {
        let id = try request.url.need("id")
        try await acting.end(id)
        return .done("ended", "id", id)
    }

    private static func write(_ entry: ActingAdministration.Entry, to writer: inout JSONWriter) {
        writer.member("id", entry.id)
        writer.members(of: entry.session.schemaKey)
        writer.member("user", entry.user)
        writer.member("userRecordName", entry.userRecordName)
        // The token that every node has in a file names nobody.
        let administrator = entry.session.administrator
        writer.member("administrator", administrator.isEmpty ? AuditOrigin.administrator : administrator)
        writer.member("reason", entry.session.reason)
        writer.member("write", entry.session.mayWrite)
        writer.member("began", integer: entry.began)
        writer.member("expires", integer: entry.session.expires)
        writer.member("own", entry.isOwn)
    }
}
