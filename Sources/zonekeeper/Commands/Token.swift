import ArgumentParser
import Foundation
import RecordModel
import ServiceClient

struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Make, list, change and revoke API tokens and sessions.",
        subcommands: [
            TokenCreateCommand.self, TokenListCommand.self, TokenUpdateCommand.self, TokenRevokeCommand.self,
        ])
}

struct TokenCreateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Make a token. Its secret is shown once and kept nowhere.",
        discussion: """
            An API token names a container and an environment (ckAPIToken); a session speaks for a user in a container \
            (ckWebAuthToken). A browser may use an API token from the origins that it names, or from everywhere where \
            it names none.
            """)

    enum Kind: String, EnumerableFlag {
        case api
        case session
    }

    @OptionGroup var options: ClientOptions

    @Flag(help: "For an app, or for a user.")
    var kind: Kind

    @Option(help: "With --session: whose it is.")
    var user: String?

    @Option(help: "With --session: how long it lasts, such as 12h or 30d.")
    var lifetime = Lifetime(seconds: 14 * 86_400)

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "With --api: web pages from here may use it, such as https://app.example.com; may be repeated.",
            valueName: "origin"))
    var origin: [String] = []

    @Option(
        help: ArgumentHelp(
            "With --api: where the sign-in page sends users to, with ?ckWebAuthToken=; without one it tells the "
                + "page that opened it.", valueName: "url"))
    var callback: String?

    @Option(help: "A note for the list of tokens.")
    var label: String?

    @Option(
        help: ArgumentHelp(
            "Take the secret from this file (32 to 256 letters, digits, - and _) instead of a random one.",
            valueName: "file"))
    var secretFile: String?

    func validate() throws {
        switch (kind, user) {
        case (.session, nil): throw ValidationError("--session needs --user, whose session it is")
        case (.api, _?): throw ValidationError("--user goes with --session")
        default: break
        }
        if kind == .session, !origin.isEmpty || callback != nil {
            throw ValidationError("--origin and --callback go with --api")
        }
        for origin in origin { try Self.check(origin: origin) }
        if let callback {
            guard let url = URLComponents(string: callback), url.scheme?.isEmpty == false, url.fragment == nil,
                !["javascript", "data", "vbscript"].contains(url.scheme?.lowercased())
            else {
                throw ValidationError(
                    "--callback: a URL such as https://app.example.com/signed-in is expected, not '\(callback)'")
            }
        }
    }

    /// An origin is a scheme, a host, and a port where it is not the scheme's own; browsers send it so.
    static func check(origin: String) throws {
        guard let url = URLComponents(string: origin), ["http", "https"].contains(url.scheme), let host = url.host,
            !host.isEmpty, host == host.lowercased(), url.path.isEmpty, url.query == nil, url.fragment == nil,
            url.user == nil, url.password == nil
        else {
            throw ValidationError(
                "--origin: scheme, host and port are expected, such as https://app.example.com, not '\(origin)'")
        }
    }

    func run(on connection: Connection) async throws {
        let secret = try secretFile.map { try SecretFile.read($0) }
        let body = JSONValue.members([
            "kind": .string(kind.rawValue), "container": .string(try connection.container()),
            "environment": kind == .api ? .string(connection.settings.environment) : nil, "user": .given(user),
            "lifetimeSeconds": kind == .session ? .integer(lifetime.seconds) : nil,
            "origins": kind == .api && !origin.isEmpty ? .strings(origin) : nil, "callbackURL": .given(callback),
            "label": .given(label), "secret": .given(secret),
        ])
        let response = try await connection.administer("POST", "tokens", body: body)
        let json = try response.json()
        let variable = kind == .api ? "ZONEKEEPER_API_TOKEN" : "ZONEKEEPER_WEB_AUTH_TOKEN"
        let lines: [String?] = [
            "id      \(json.text("id"))", secret == nil ? "secret  \(json.text("secret"))" : nil,
            kind == .session ? "user    \(json.text("userRecordName"))" : nil,
            kind == .session ? "expires \(json.time("expires"))" : nil,
            secret == nil ? "use it  export \(variable)=\(json.text("secret"))" : nil,
        ]
        try show(response, lines.compactMap(\.self).joined(separator: "\n"))
    }
}

struct TokenListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the tokens, without their secrets.",
        discussion: """
            Sessions that began on the sign-in page, one for each user and device, are listed with --kind sign-in or \
            all. --container, or ZONEKEEPER_CONTAINER, shows those of one container.
            """)

    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case api, session
        case signIn = "sign-in"
        case all
    }

    @OptionGroup var options: ClientOptions

    @Option(help: "Only these; may be repeated (usually api and session).")
    var kind: [Kind] = []

    @Option(help: "Only sessions of this user.")
    var user: String?

    /// As the server's parameter has it; nil: all.
    var kinds: String? {
        if kind.contains(.all) { return nil }
        return (kind.isEmpty ? [.api, .session] : kind).map(\.rawValue).joined(separator: ",")
    }

    func run(on connection: Connection) async throws {
        let tokens = try await connection.administerList(
            "tokens", parameters: ["kind": kinds, "container": connection.settings.container, "user": user])
        try show(.members(["tokens": .array(tokens)]), Self.table(tokens))
    }

    /// Origins and callback URLs have columns only where some token has them.
    static func table(_ tokens: [JSONValue]) -> String {
        var columns: [Table.Column] = [
            .text("ID", "id"), .text("KIND", "kind"), .text("CONTAINER", "container"),
            .text("ENVIRONMENT", "environment"), .text("USER", "user"), .time("CREATED", "created"),
            .time("EXPIRES", "expires"), .time("USED", "lastUsed"), .text("BY", "maker"),
        ]
        let web: [Table.Column] = [.words("ORIGINS", "origins"), .text("CALLBACK", "callbackURL")]
        columns += web.filter { column in tokens.contains { !column.cell($0).isEmpty } }
        columns.append(.text("LABEL", "label"))
        return Table(tokens, columns).text
    }
}

struct TokenUpdateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "update", abstract: "Change the label of an API token, or the web pages that may use it.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The token's id, as `token list` shows it.")
    var id: String

    @Option(help: "A note for the list of tokens; '' takes it away.")
    var label: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Only web pages from here may use it; may be repeated.", valueName: "origin"))
    var origin: [String] = []

    @Flag(help: "All web pages may use it.")
    var everyOrigin = false

    func validate() throws {
        if everyOrigin, !origin.isEmpty {
            throw ValidationError("either --origin or --every-origin is expected, not both")
        }
        if label == nil, origin.isEmpty, !everyOrigin { throw ValidationError("something to change is expected") }
        for origin in origin { try TokenCreateCommand.check(origin: origin) }
    }

    func run(on connection: Connection) async throws {
        let body = JSONValue.members([
            "label": .given(label), "origins": everyOrigin || !origin.isEmpty ? .strings(origin) : nil,
        ])
        let response = try await connection.administer("PATCH", "tokens", parameters: ["id": id], body: body)
        try show(response, "changed token \(id)")
    }
}

struct TokenRevokeCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "revoke", abstract: "Make a token worthless.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The token's id, as `token list` shows it.")
    var id: String?

    @Flag(help: "The token of the administrator who sends this command.")
    var own = false

    func validate() throws {
        if own == (id != nil) { throw ValidationError("an id, or --own, is expected") }
    }

    func run(on connection: Connection) async throws {
        let response =
            own
            ? try await connection.administer("DELETE", "console/token")
            : try await connection.administer("DELETE", "tokens", parameters: ["id": id])
        try show(response, "revoked token \(try response.json().text("id"))")
    }
}
