import ArgumentParser
import Foundation
import RecordModel
import ServiceClient

/// `zonekeeper token create`
struct TokenCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make a token. Its secret is shown once and kept nowhere.",
        discussion: """
            An API token names a container and an environment (ckAPIToken); a session speaks for a user in a \
            container (ckWebAuthToken). A browser may use an API token from the origins that it names, or from everywhere \
            where it names none.
            """)

    /// What a token is for.
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
            "With --api: where the sign-in page sends users to, with ?ckWebAuthToken=; without one it tells the page that "
                + "opened it.", valueName: "url"))
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

    func run() async throws {
        let secret = try secretFile.map { path throws(CommandFailure) in
            try CommandFailure.orElse { () throws(ServiceClientError) in try SecretFile.read(path) }
        }
        try await options.withConnection { connection in
            let body = JSONValue.members([
                "kind": .string(kind.rawValue), "container": .string(try connection.container()),
                "environment": kind == .api ? .string(connection.settings.environment) : nil,
                "user": user.map { .string($0) },
                "lifetimeSeconds": kind == .session ? .integer(lifetime.seconds) : nil,
                "origins": kind == .api && !origin.isEmpty ? .array(origin.map { .string($0) }) : nil,
                "callbackURL": callback.map { .string($0) },
                "label": label.map { .string($0) }, "secret": secret.map { .string($0) },
            ])
            let response = try await connection.administer("POST", "tokens", body: body.serialized())
            if options.json { return Console.print(response.body) }
            let json = try response.json()
            print("id      \(json.text("id"))")
            if secret == nil { print("secret  \(json.text("secret"))") }
            if kind == .session {
                print("user    \(json.text("userRecordName"))")
                print("expires \(json.time("expires"))")
            }
            let variable = kind == .api ? "ZONEKEEPER_API_TOKEN" : "ZONEKEEPER_WEB_AUTH_TOKEN"
            if secret == nil { print("use it  export \(variable)=\(json.text("secret"))") }
        }
    }
}
