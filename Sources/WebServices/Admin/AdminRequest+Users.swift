import Cluster
import Directory
import RecordModel
import Service

extension AdminRequest {
    /// `GET users`: a page of them, by name.
    func users() async throws(RequestFailure) -> Reply {
        let after = url["after"] ?? ""
        let limit = try pageLimit()
        try await context.service.refreshDirectory()
        // One more says whether the list goes on.
        let accounts = try await context.service.accounts.read { try $0.accounts(after: after, limit: limit + 1) }
        return Reply { writer in
            writer.key("users")
            writer.array { writer in
                for account in accounts.prefix(limit) { writer.object { Self.write(account, to: &$0) } }
            }
            if accounts.count > limit { writer.member("next", accounts[limit - 1].name) }
        }
    }

    private static func write(_ account: Account, to writer: inout JSONWriter) {
        writer.member("name", account.name)
        writer.member("created", integer: account.created)
        if let email = account.email { writer.member("email", email) }
        if let givenName = account.givenName { writer.member("givenName", givenName) }
        if let familyName = account.familyName { writer.member("familyName", familyName) }
        writer.member("discoverable", account.isDiscoverable)
        writer.member("hasPassword", account.password != nil)
        if let identity = account.identity {
            writer.key("identity")
            writer.object { writer in
                writer.member("issuer", identity.issuer)
                writer.member("subject", identity.subject)
            }
        }
    }

    func createUser() async throws(RequestFailure) -> Reply {
        let name = try Self.accountName(try text("name"))
        let given = try accountChanges()
        func unlessEmpty(_ text: String?) -> String? { text?.isEmpty == false ? text : nil }
        var account = Account(
            id: Self.randomHex(bytes: 16), name: name, created: context.service.now, email: unlessEmpty(given.email),
            givenName: unlessEmpty(given.givenName), familyName: unlessEmpty(given.familyName),
            isDiscoverable: given.isDiscoverable ?? false)
        if let identity = given.identity, identity != .none { account.identity = identity }
        if let password = try json["password"], !password.isNull {
            account.password = try await context.passwordHash(try Self.password(password))
        }
        try await withWholeDeadline.change(.createAccount(account))
        return Reply { Self.write(account, to: &$0) }
    }

    /// Changes what the body names; null and the empty string clear.
    func updateUser() async throws(RequestFailure) -> Reply {
        let name = try parameter("name")
        let changes = try accountChanges()
        guard !changes.isEmpty else {
            throw RequestFailure(
                .badRequest,
                "nothing to change: email, givenName, familyName, discoverable or identity is expected in the body")
        }
        try await change(.updateAccount(name: name, changes))
        let changed: Account?
        do throws(RequestFailure) {
            try await context.service.refreshDirectory()
            changed = try await context.service.accounts.account(named: name)
        } catch {
            throw RequestFailure(
                ServiceError(
                    .tryAgainLater, "the change is made, but this node cannot show it: it is behind the directory",
                    retryAfterSeconds: 1))
        }
        guard let account = changed else { throw RequestFailure(.notFound, "the user '\(name)' was deleted meanwhile") }
        return Reply { Self.write(account, to: &$0) }
    }

    func deleteUser() async throws(RequestFailure) -> Reply {
        let name = try parameter("name")
        try await change(.deleteAccount(name: name))
        return Reply { writer in
            writer.member("name", name)
            writer.member("deleted", true)
        }
    }

    /// The body's members about an account; what is missing is nil, null is the empty string.
    private func accountChanges() throws(RequestFailure) -> AccountChanges {
        let json = try json
        func member(_ key: String) throws(RequestFailure) -> String? {
            guard let value = json[key] else { return nil }
            if value.isNull { return "" }
            guard let text = value.string, text.count <= Limits.nameLengthMax, !text.contains(where: \.isNewline) else {
                throw RequestFailure(
                    .badRequest, "\(key): at most \(Limits.nameLengthMax) characters on one line are expected")
            }
            return text
        }
        var changes = AccountChanges(
            email: try member("email"), givenName: try member("givenName"), familyName: try member("familyName"))
        changes.identity = try json["identity"].map { value throws(RequestFailure) in try Self.identity(value) }
        if let email = changes.email, !email.isEmpty, !Self.isEmail(email) {
            throw RequestFailure(.badRequest, "email: an address such as ada@example.com is expected, not '\(email)'")
        }
        switch json["discoverable"] {
        case nil: break
        case .bool(let value)?: changes.isDiscoverable = value
        default: throw RequestFailure(.badRequest, "discoverable: true or false is expected")
        }
        return changes
    }

    /// Who the user is at an identity provider; null takes it away.
    private static func identity(_ json: JSONValue) throws(RequestFailure) -> ExternalIdentity {
        if json.isNull { return .none }
        guard let issuer = json["issuer"]?.string, !issuer.isEmpty, let subject = json["subject"]?.string,
            ExternalIdentity.isSubject(subject)
        else {
            throw RequestFailure(
                .badRequest,
                "identity: {\"issuer\": ..., \"subject\": ...} or null is expected; a subject is 1 to 255 ASCII characters"
            )
        }
        return ExternalIdentity(issuer: issuer, subject: subject)
    }

    /// Sets a user's password, or takes it away; ends a lock-out, and the user's sessions unless told not to.
    func setPassword() async throws(RequestFailure) -> Reply {
        let name = try parameter("name")
        let json = try json
        guard let given = json["password"] else {
            throw RequestFailure(.badRequest, "password: a text, or null to take it away, is expected")
        }
        let endsSessions: Bool
        switch json["endSessions"] {
        case nil: endsSessions = true
        case .bool(let flag)?: endsSessions = flag
        default: throw RequestFailure(.badRequest, "endSessions: true or false is expected")
        }
        _ = try await account(named: name)
        let hash = given.isNull ? nil : try await context.passwordHash(try Self.password(given))
        try await withWholeDeadline.change(.setPassword(account: name, hash, endsSessions: endsSessions))
        return Reply { writer in
            writer.member("name", name)
            writer.member("hasPassword", hash != nil)
        }
    }

    /// The request with the time for a change that it began with: hashing a password is slow by design, and is no time
    /// in which the cluster did not answer.
    private var withWholeDeadline: AdminRequest {
        var request = self
        request.deadline = context.service.node.deadline()
        return request
    }

    private static func password(_ json: JSONValue) throws(RequestFailure) -> String {
        guard let text = json.string else { throw RequestFailure(.badRequest, "password: a text is expected") }
        return text
    }

    static func unknownUser(_ name: String) -> RequestFailure {
        RequestFailure(.notFound, "no user '\(name)': create it with `zonekeeper user create \(name)`")
    }

    /// A name for an account.
    static func accountName(_ name: String) throws(RequestFailure) -> String {
        guard let line = line(name) else {
            throw RequestFailure(
                .badRequest, "name: 1 to \(Limits.nameLengthMax) characters on one line are expected")
        }
        return line
    }

    /// The text where it is one line of an allowed length; nil where it is not.
    static func line(_ text: String) -> String? {
        let isLine = !text.isEmpty && text.count <= Limits.nameLengthMax && text.utf8.count <= 4 * Limits.nameLengthMax
        return isLine && !text.unicodeScalars.contains { $0.properties.generalCategory == .control } ? text : nil
    }

    static func isEmail(_ text: String) -> Bool {
        let sides = text.split(separator: "@", omittingEmptySubsequences: false)
        return sides.count == 2 && sides.allSatisfy { !$0.isEmpty } && text.utf8.count <= 254
            && !text.contains { $0.isWhitespace || $0 == "," || $0 == "<" || $0 == ">" }
    }
}
