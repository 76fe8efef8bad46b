import Admission
import Directory
import RecordModel
import Service

extension AdminRequest {
    /// `GET tokens`: a page of them, oldest first.
    func tokens() async throws(RequestFailure) -> Reply {
        let filter = TokenFilter(container: url["container"], kinds: try wantedKinds())
        let after = try tokenCursor()
        let limit = try pageLimit()
        try await context.service.refreshDirectory()
        let (tokens, names, next) = try await context.service.accounts.read { reader in
            let page = try reader.tokens(filter, after: after, limit: limit)
            return (page.tokens, try reader.names(ofAccounts: page.tokens.compactMap(\.kind.accountID)), page.next)
        }
        return Reply { writer in
            writer.key("tokens")
            writer.array { writer in
                for token in tokens { writer.object { Self.write(token, names: names, to: &$0) } }
            }
            if let next { writer.member("next", "\(next.created)/\(next.id)") }
        }
    }

    /// The kinds that the parameter `kind` names, with commas between them; nil: all.
    private func wantedKinds() throws(RequestFailure) -> Set<TokenFilter.Kind>? {
        guard let text = url["kind"] else { return nil }
        let names = text.split(separator: ",", omittingEmptySubsequences: false)
        let kinds = names.compactMap { TokenFilter.Kind(rawValue: String($0)) }
        guard kinds.count == names.count else {
            throw RequestFailure(
                .badRequest,
                "kind: one of \(TokenFilter.Kind.allCases.map(\.rawValue).joined(separator: ", ")), or several with "
                    + "commas, is expected, not '\(text)'")
        }
        return Set(kinds)
    }

    /// Where the page goes on, as `next` of the last one said.
    private func tokenCursor() throws(RequestFailure) -> TokenPosition? {
        guard let text = url["after"], !text.isEmpty else { return nil }
        let parts = text.split(separator: "/", maxSplits: 1)
        guard parts.count == 2, let created = Int64(parts[0]) else {
            throw RequestFailure(.badRequest, "after: what 'next' of the last answer said is expected, not '\(text)'")
        }
        return TokenPosition(created: created, id: String(parts[1]))
    }

    /// How many entries one page of a list has: `limit`, and at most 1,000.
    func pageLimit() throws(RequestFailure) -> Int {
        guard let text = url["limit"] else { return 1_000 }
        guard let limit = Int(text), limit > 0 else {
            throw RequestFailure(.badRequest, "limit: a whole number from 1 is expected, not '\(text)'")
        }
        return min(limit, 1_000)
    }

    private static func write(_ token: Token, names: [String: String], to writer: inout JSONWriter) {
        writer.member("id", token.id)
        writer.member("label", token.label)
        writer.member("created", integer: token.created)
        writer.member("kind", token.kind.filterKind.rawValue)
        if let name = token.kind.administratorName {
            writer.member("name", name)
        } else {
            writer.member("container", token.kind.container)
        }
        if case .api(_, let environment, let origins, let callbackURL) = token.kind {
            writer.member("environment", environment.rawValue)
            writer.key("origins")
            writer.array { writer in for origin in origins { writer.string(origin) } }
            if let callbackURL { writer.member("callbackURL", callbackURL) }
        }
        if let accountID = token.kind.accountID { writer.member("user", names[accountID] ?? "") }
        if let expires = token.kind.expires { writer.member("expires", integer: expires) }
    }

    /// Makes a token; its secret is in the answer and nowhere else.
    func createToken() async throws(RequestFailure) -> Reply {
        let json = try json
        let isAdministrator = json["kind"]?.string == "administrator"
        let container = isAdministrator ? "" : try Self.containerName(try text("container"))
        let secret = try secret(json)
        let kind: TokenKind
        switch json["kind"]?.string {
        case "api":
            kind = .api(
                container: container, environment: try Self.environment(json["environment"]?.string ?? "development"),
                origins: try Self.origins(json), callbackURL: try Self.callbackURL(json))
        case "session": kind = try await session(container: container, json)
        case "administrator": kind = .administrator(name: try administratorName())
        default: throw RequestFailure(.badRequest, "kind: 'api', 'session' or 'administrator' is expected")
        }
        let token = Token(
            id: Self.randomHex(bytes: 8), secretHash: Token.hash(ofSecret: secret), kind: kind,
            label: try label(json), created: context.service.now)
        try await change(.createToken(token))
        return Reply { writer in
            writer.member("id", token.id)
            writer.member("secret", secret)
            if case .session(_, let accountID, let expires) = kind {
                writer.member(
                    "userRecordName", Account.userRecordName(accountID: accountID, container: container))
                writer.member("expires", integer: expires)
            }
        }
    }

    /// The name of an administrator to be.
    func administratorName() throws(RequestFailure) -> String {
        let name = try text("name")
        guard Administrator.isName(name) else {
            throw RequestFailure(.badRequest, "name: 1 to 64 letters, digits and any of - _ . @ are expected")
        }
        return name
    }

    /// The secret that the administrator gave, or a new random one.
    private func secret(_ json: JSONValue) throws(RequestFailure) -> String {
        guard let given = json["secret"], !given.isNull else { return Self.randomHex(bytes: 32) }
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        guard let text = given.string, (32...256).contains(text.count), text.allSatisfy(allowed.contains) else {
            throw RequestFailure(.badRequest, "secret: 32 to 256 letters, digits, hyphens and underscores are expected")
        }
        return text
    }

    private static let originsMax = 100

    /// The web pages that may use an API token.
    private static func origins(_ json: JSONValue) throws(RequestFailure) -> [String] {
        guard let given = json["origins"], !given.isNull else { return [] }
        guard let members = given.array, members.count <= originsMax else {
            throw RequestFailure(.badRequest, "origins: an array of at most \(originsMax) texts is expected")
        }
        var origins: [String] = []
        for member in members {
            guard let text = member.string else {
                throw RequestFailure(.badRequest, "origins: texts are expected, not \(member.kind)")
            }
            do throws(ServiceError) {
                let origin = try OriginRule.normalized(text)
                if !origins.contains(origin) { origins.append(origin) }
            } catch {
                throw RequestFailure(.badRequest, "origins: \(error.reason)")
            }
        }
        return origins
    }

    /// Where sign-in sends the browser: https, http of this machine, or a scheme that an app has for itself.
    private static func callbackURL(_ json: JSONValue) throws(RequestFailure) -> String? {
        guard let given = json["callbackURL"], !given.isNull else { return nil }
        guard let text = given.string, CallbackRule.allows(text) else {
            throw RequestFailure(
                .badRequest,
                "callbackURL: an https URL is expected, or http for this machine, or one with an app's own scheme, such as "
                    + "myapp://signed-in; at most 2,048 characters, escaped where they are not ASCII")
        }
        return text
    }

    private func session(container: String, _ json: JSONValue) async throws(RequestFailure) -> TokenKind {
        let name = try text("user")
        let account = try await self.account(named: name)
        var seconds: Int64 = 14 * 86_400
        if let given = json["lifetimeSeconds"], !given.isNull {
            guard case .integer(let number) = given, number > 0, number <= 366 * 86_400 else {
                throw RequestFailure(.badRequest, "lifetimeSeconds: 1 to \(366 * 86_400) is expected")
            }
            seconds = number
        }
        return .session(container: container, accountID: account.id, expires: context.service.now + seconds * 1_000)
    }

    func revokeToken() async throws(RequestFailure) -> Reply {
        let id = try parameter("id")
        try await change(.revokeToken(id: id))
        return Reply { writer in
            writer.member("id", id)
            writer.member("revoked", true)
        }
    }

    static func randomHex(bytes: Int) -> String {
        var generator = SystemRandomNumberGenerator()
        return Hex.encode((0..<bytes).map { _ in UInt8.random(in: 0 ... .max, using: &generator) })
    }
}

/// Which URLs a browser with a web auth token may be sent to.
enum CallbackRule {
    /// What runs or shows text of its own instead of going to an app.
    private static let refusedSchemes: Set<String> = [
        "about", "blob", "data", "file", "filesystem", "ftp", "javascript", "mailto", "tel", "vbscript", "view-source",
        "ws", "wss",
    ]

    static func allows(_ url: String) -> Bool {
        guard url.utf8.count <= 2_048, url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }),
            let origin = URLText.origin(of: url)
        else { return false }
        if origin.hasPrefix("https://") { return true }
        if origin.hasPrefix("http://") {
            let host = origin.dropFirst("http://".count)
            let loopback = ["localhost", "127.0.0.1", "[::1]"]
            return loopback.contains { host == $0 || host.hasPrefix("\($0):") }
        }
        return !refusedSchemes.contains(String(origin.dropLast()))
    }
}
