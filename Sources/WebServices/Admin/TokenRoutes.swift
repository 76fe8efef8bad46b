import Admission
import Directory
import RecordModel
import Service

/// `/admin/1/tokens`.
struct TokenRoutes {
    let request: AdminRequest
    private var tokens: TokenAdministration { request.administration.tokens }

    /// A page of them, oldest first.
    func list() async throws(RequestFailure) -> Reply {
        var filter = TokenFilter(container: request.url["container"], kinds: try wantedKinds())
        if let user = request.url.text("user") {
            filter.accountID = try await request.administration.owner(named: user).id
        }
        let page = try await tokens.list(filter, after: try cursor(), limit: try request.url.pageLimit())
        return Reply { writer in
            writer.list("tokens", page.tokens) { Self.write($0, names: page.names, to: &$1) }
            writer.optional("next", page.next.map { "\($0.created)/\($0.id)" })
        }
    }

    /// The kinds that the parameter `kind` names, with commas between them; nil: all.
    private func wantedKinds() throws(RequestFailure) -> Set<TokenFilter.Kind>? {
        guard let text = request.url["kind"] else { return nil }
        let names = text.split(separator: ",", omittingEmptySubsequences: false)
        let kinds = names.compactMap { TokenFilter.Kind(rawValue: String($0)) }
        guard kinds.count == names.count else {
            throw .badRequest(
                "kind: one of \(TokenFilter.Kind.allCases.map(\.rawValue).joined(separator: ", ")), or several with "
                    + "commas, is expected, not '\(text)'")
        }
        return Set(kinds)
    }

    /// Where the page goes on, as `next` of the last one said.
    private func cursor() throws(RequestFailure) -> TokenPosition? {
        guard let text = request.url.text("after") else { return nil }
        let parts = text.split(separator: "/", maxSplits: 1)
        guard parts.count == 2, let created = Int64(parts[0]) else { throw RequestURL.wrongCursor(text) }
        return TokenPosition(created: created, id: String(parts[1]))
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
            writer.list("origins", origins)
            writer.optional("callbackURL", callbackURL)
        }
        writer.optional("user", token.kind.accountID.map { names[$0] ?? "" })
        writer.optional("expires", integer: token.kind.expires)
        if !token.maker.isEmpty { writer.member("maker", token.maker) }
        writer.optional("lastUsed", integer: token.lastUsed)
    }

    func change() async throws(RequestFailure) -> Reply {
        let (id, json) = (try request.url.need("id"), try request.json())
        let origins = json.given("origins") == nil ? nil : try Self.origins(json)
        let label = try json.optionalLine("label")
        guard origins != nil || label != nil else {
            throw .badRequest("nothing to change: a label, or origins, are expected")
        }
        let token = try await tokens.change(id, label: label, origins: origins)
        return Reply { Self.write(token, names: [:], to: &$0) }
    }

    /// Makes a token; its secret is in the answer and nowhere else.
    func create() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        let kind = json["kind"]?.string
        let container = kind == "administrator" ? "" : try AdminRequest.containerName(try json.text("container"))
        let secret = try Self.secret(json)
        let tokenKind: TokenKind
        switch kind {
        case "api":
            tokenKind = .api(
                container: container, environment: try json.environment(), origins: try Self.origins(json),
                callbackURL: try Self.callbackURL(json))
        case "session":
            tokenKind = try await tokens.session(
                of: try json.text("user"), in: container, seconds: try Self.lifetime(json))
        case "administrator": tokenKind = .administrator(name: try json.administratorName())
        default: throw .badRequest("kind: 'api', 'session' or 'administrator' is expected")
        }
        let made = try await tokens.create(tokenKind, secret: secret, label: try json.label())
        return Reply { writer in
            writer.member("id", made.token.id)
            writer.member("secret", made.secret)
            if case .session(_, let accountID, let expires) = tokenKind {
                writer.member("userRecordName", Account.userRecordName(accountID: accountID, container: container))
                writer.member("expires", integer: expires)
            }
        }
    }

    /// The secret that the administrator gave; nil where there is none.
    private static func secret(_ json: JSONValue) throws(RequestFailure) -> String? {
        guard let given = json.given("secret") else { return nil }
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        guard let text = given.string, (32...256).contains(text.count), text.allSatisfy(allowed.contains) else {
            throw .badRequest("secret: 32 to 256 letters, digits, hyphens and underscores are expected")
        }
        return text
    }

    private static let originsMax = 100

    /// The web pages that may use an API token.
    private static func origins(_ json: JSONValue) throws(RequestFailure) -> [String] {
        guard let given = json.given("origins") else { return [] }
        guard let members = given.array, members.count <= originsMax else {
            throw .badRequest("origins: an array of at most \(originsMax) texts is expected")
        }
        var origins: [String] = []
        for member in members {
            guard let text = member.string else {
                throw .badRequest("origins: texts are expected, not \(member.kind)")
            }
            do throws(ServiceError) {
                let origin = try OriginRule.normalized(text)
                if !origins.contains(origin) { origins.append(origin) }
            } catch {
                throw .badRequest("origins: \(error.reason)")
            }
        }
        return origins
    }

    /// Where sign-in sends the browser: https, http of this machine, or a scheme that an app has for itself.
    private static func callbackURL(_ json: JSONValue) throws(RequestFailure) -> String? {
        guard let given = json.given("callbackURL") else { return nil }
        guard let text = given.string, CallbackRule.allows(text) else {
            throw .badRequest(
                "callbackURL: an https URL is expected, or http for this machine, or one with an app's own scheme, such as "
                    + "myapp://signed-in; at most 2,048 characters, escaped where they are not ASCII")
        }
        return text
    }

    /// How long a session lasts, in seconds.
    private static func lifetime(_ json: JSONValue) throws(RequestFailure) -> Int64 {
        guard let given = json.given("lifetimeSeconds") else { return 14 * 86_400 }
        guard case .integer(let number) = given, number > 0, number <= 366 * 86_400 else {
            throw .badRequest("lifetimeSeconds: 1 to \(366 * 86_400) is expected")
        }
        return number
    }

    func revoke() async throws(RequestFailure) -> Reply {
        let id = try request.url.need("id")
        try await request.administration.change(.revokeToken(id: id))
        return .done("revoked", "id", id)
    }
}

/// `/admin/1/keys`: keys with which servers sign their requests.
struct KeyRoutes {
    let request: AdminRequest
    private var keys: KeyAdministration { request.administration.keys }

    func list() async throws(RequestFailure) -> Reply {
        let keys = try await keys.list()
        return Reply { writer in
            writer.list("keys", keys) { entry, writer in
                writer.member("id", entry.key.id)
                writer.member("container", entry.key.container)
                writer.member("environment", entry.key.environment.rawValue)
                writer.member("user", entry.user)
                writer.member("label", entry.key.label)
                writer.member("created", integer: entry.key.created)
                if !entry.key.maker.isEmpty { writer.member("maker", entry.key.maker) }
                writer.optional("lastUsed", integer: entry.key.lastUsed)
            }
        }
    }

    func create() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        let (user, pem) = (try json.text("user"), try json.text("publicKey"))
        let publicKey: [UInt8]
        do throws(ServiceError) {
            publicKey = try PublicKeyPEM.parse(pem)
        } catch {
            throw RequestFailure(error.code, "publicKey: \(error.reason)")
        }
        let key = try await keys.create(publicKey, of: user, in: try json.schemaKey(), label: try json.label())
        return Reply { writer in
            writer.member("id", key.id)
            writer.member("container", key.container)
            writer.member("environment", key.environment.rawValue)
            writer.member("user", user)
            writer.member(
                "userRecordName", Account.userRecordName(accountID: key.accountID, container: key.container))
        }
    }

    func change() async throws(RequestFailure) -> Reply {
        let id = try request.url.need("id")
        guard let label = try request.json().optionalLine("label") else {
            throw .badRequest("nothing to change: a label is expected")
        }
        try await keys.relabel(id, label)
        return .done("changed", "id", id)
    }

    func revoke() async throws(RequestFailure) -> Reply {
        let id = try request.url.need("id")
        try await request.administration.change(.revokeServerKey(id: id))
        return .done("revoked", "id", id)
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
