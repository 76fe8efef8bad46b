import Directory
import RecordModel

extension AdminRequest {
    func tokens() async throws(RequestFailure) -> Reply {
        let directory = try await directory()
        let names = Dictionary(uniqueKeysWithValues: directory.accountsByName.values.map { ($0.id, $0.name) })
        let tokens = directory.tokensByHash.values.sorted { ($0.created, $0.id) < ($1.created, $1.id) }
        return Reply { writer in
            writer.key("tokens")
            writer.array { writer in
                for token in tokens { writer.object { Self.write(token, names: names, to: &$0) } }
            }
        }
    }

    private static func write(_ token: Token, names: [String: String], to writer: inout JSONWriter) {
        writer.member("id", token.id)
        writer.member("label", token.label)
        writer.member("created", integer: token.created)
        switch token.kind {
        case .api(let container, let environment):
            writer.member("kind", "api")
            writer.member("container", container)
            writer.member("environment", environment.rawValue)
        case .session(let container, let accountID, let expires):
            writer.member("kind", "session")
            writer.member("container", container)
            writer.member("user", names[accountID] ?? "")
            writer.member("expires", integer: expires)
        }
    }

    /// Makes a token; its secret is in the answer and nowhere else.
    func createToken() async throws(RequestFailure) -> Reply {
        let json = try json
        let container = try text("container")
        let secret = try secret(json)
        let kind: TokenKind
        switch json["kind"]?.string {
        case "api":
            kind = .api(
                container: container, environment: try Self.environment(json["environment"]?.string ?? "development"))
        case "session": kind = try await session(container: container, json)
        default: throw RequestFailure(.badRequest, "kind: 'api' or 'session' is expected")
        }
        let token = Token(
            id: Self.randomHex(bytes: 8), secretHash: Token.hash(ofSecret: secret), kind: kind,
            label: json["label"]?.string ?? "", created: context.now)
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

    /// The secret that the administrator gave, or a new random one.
    private func secret(_ json: JSONValue) throws(RequestFailure) -> String {
        guard let given = json["secret"], !given.isNull else { return Self.randomHex(bytes: 32) }
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        guard let text = given.string, (32...256).contains(text.count), text.allSatisfy(allowed.contains) else {
            throw RequestFailure(.badRequest, "secret: 32 to 256 letters, digits, hyphens and underscores are expected")
        }
        return text
    }

    private func session(container: String, _ json: JSONValue) async throws(RequestFailure) -> TokenKind {
        let name = try text("user")
        guard let account = try await directory().accountsByName[name] else {
            throw RequestFailure(.notFound, "no user '\(name)': create it with `zonekeeper user create \(name)`")
        }
        var seconds: Int64 = 14 * 86_400
        if let given = json["lifetimeSeconds"], !given.isNull {
            guard case .integer(let number) = given, number > 0, number <= 366 * 86_400 else {
                throw RequestFailure(.badRequest, "lifetimeSeconds: 1 to \(366 * 86_400) is expected")
            }
            seconds = number
        }
        return .session(container: container, accountID: account.id, expires: context.now + seconds * 1_000)
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
