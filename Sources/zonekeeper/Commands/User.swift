import ArgumentParser
import RecordModel
import ServiceClient

struct UserCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user", abstract: "Create, change, list and delete users; set passwords; sign in and out.",
        subcommands: [
            UserCreateCommand.self, UserUpdateCommand.self, UserPasswordCommand.self, UserUnlockCommand.self,
            UserListCommand.self, UserDeleteCommand.self, UserSignInCommand.self, UserSignOutCommand.self,
        ])
}

struct UserCreateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create a user, who may then be given sessions, and signs in where there is a password.",
        discussion: """
            Without a password or an identity the user cannot sign in until `zonekeeper user password` or `user \
            update` sets one.
            """)

    @OptionGroup var options: ClientOptions

    @Argument(help: "A name, for administrators only; unique.")
    var name: String

    @OptionGroup var password: NewPasswordOptions

    @Option(help: "By which other users may look the user up; unique.")
    var email: String?

    @Option(help: "Shown to others if the user is discoverable.")
    var givenName: String?

    @Option(help: "Shown to others if the user is discoverable.")
    var familyName: String?

    @Flag(help: "Let other users learn the names.")
    var discoverable = false

    @OptionGroup var identity: IdentityOptions

    func run(on connection: Connection) async throws {
        let secret = try password.secret(of: name)
        let body = JSONValue.members([
            "name": .string(name), "email": .given(email), "givenName": .given(givenName),
            "familyName": .given(familyName), "discoverable": .bool(discoverable),
            "password": .given(secret), "identity": identity.json,
        ])
        let response = try await connection.administer("POST", "users", body: body)
        try show(response, "created user \(name)\(secret == nil && identity.json == nil ? "" : ", who may sign in")")
    }
}

struct UserUpdateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "update", abstract: "Change what is known of a user; what is not named stays.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The user's name.")
    var name: String

    @Option(help: "By which other users may look the user up; '' removes it.")
    var email: String?

    @Option(help: "Shown to others if the user is discoverable; '' removes it.")
    var givenName: String?

    @Option(help: "Shown to others if the user is discoverable; '' removes it.")
    var familyName: String?

    @Flag(inversion: .prefixedNo, help: "Let other users learn the names, or not.")
    var discoverable: Bool?

    @OptionGroup var identity: IdentityOptions

    @Flag(help: "Take away who the user is at an identity provider.")
    var noIdentity = false

    func validate() throws {
        if noIdentity, identity.json != nil {
            throw ValidationError("either --no-identity or --identity-issuer is expected, not both")
        }
        if email == nil, givenName == nil, familyName == nil, discoverable == nil, identity.json == nil, !noIdentity {
            throw ValidationError(
                "nothing to change: --email, --given-name, --family-name, --discoverable, --no-discoverable, "
                    + "--identity-issuer with --identity-subject, or --no-identity is expected")
        }
    }

    func run(on connection: Connection) async throws {
        let body = JSONValue.members([
            "email": .given(email), "givenName": .given(givenName),
            "familyName": .given(familyName), "discoverable": discoverable.map { .bool($0) },
            "identity": noIdentity ? .null : identity.json,
        ])
        let response = try await connection.administer("PATCH", "users", parameters: ["name": name], body: body)
        try show(response, "updated user \(name)")
    }
}

struct UserPasswordCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "password", abstract: "Set a user's password, or remove it.",
        discussion: """
            The password is asked for at the terminal, twice, or read from standard input. The user's sessions end, as \
            who knew the old password may have begun them; --keep-sessions lets them be.
            """)

    @OptionGroup var options: ClientOptions

    @Argument(help: "The user's name.")
    var name: String

    @Flag(help: "Read the password from standard input, one line.")
    var passwordStdin = false

    @Flag(help: "Remove the password: the user signs in no more but by an identity provider.")
    var remove = false

    @Flag(help: "Let the user's sessions go on.")
    var keepSessions = false

    func validate() throws {
        if remove, passwordStdin { throw ValidationError("either --remove or --password-stdin is expected, not both") }
    }

    func run(on connection: Connection) async throws {
        let password =
            remove
            ? nil : try PasswordInput.read("new password of \(name)", isFromStandardInput: passwordStdin, isNew: true)
        let body = JSONValue.members([
            "password": .given(password) ?? .null, "endSessions": .bool(!keepSessions),
        ])
        let response = try await connection.administer("POST", "users/password", parameters: ["name": name], body: body)
        let sessions = keepSessions ? "sessions go on" : "sessions ended"
        try show(response, "\(remove ? "removed" : "set") the password of user \(name); \(sessions)")
    }
}

struct UserUnlockCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlock", abstract: "Let a user sign in again who is locked out after wrong passwords.",
        discussion: """
            A browser or an address that the user signed in from before has a lock-out of its own, which ends by itself.
            """)

    @OptionGroup var options: ClientOptions

    @Argument(help: "The user's name.")
    var name: String

    func run(on connection: Connection) async throws {
        let response = try await connection.administer("POST", "users/unlock", parameters: ["name": name])
        try show(response, "user \(name) is not locked out")
    }
}

struct UserListCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the users.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let users = try await connection.administerList("users")
        let columns: [Table.Column] = [
            .text("USER", "name"), .text("EMAIL", "email"), .text("GIVEN NAME", "givenName"),
            .text("FAMILY NAME", "familyName"), .flag("DISCOVERABLE", "discoverable"), .time("CREATED", "created"),
            .time("LOCKED UNTIL", "lockedUntil"),
        ]
        try show(.members(["users": .array(users)]), Table(users, columns).text)
    }
}

struct UserDeleteCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete a user with sessions and subscriptions; records and preferences stay.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The user's name.")
    var name: String

    func run(on connection: Connection) async throws {
        try show(try await connection.administer("DELETE", "users", parameters: ["name": name]), "deleted user \(name)")
    }
}

struct UserSignInCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-in", abstract: "Begin a session with a name and a password, as the sign-in page does.",
        discussion: """
            The session's web auth token changes with every request, and older ones are good for a minute only: keep \
            it in a file with --token-file, which other commands read and keep up to date (--web-auth-token-file, or \
            ZONEKEEPER_WEB_AUTH_TOKEN_FILE). A session lasts 30 minutes, or two weeks with --keep-signed-in.
            """)

    @OptionGroup var options: ClientOptions

    @Argument(help: "The user's name.")
    var name: String

    @Flag(help: "Read the password from standard input, one line.")
    var passwordStdin = false

    @Flag(help: "Let the session last for two weeks.")
    var keepSignedIn = false

    @Option(help: ArgumentHelp("Write the token to this file, in place of what is there.", valueName: "file"))
    var tokenFile: String?

    func run(on connection: Connection) async throws {
        let apiToken = try connection.apiToken()
        let password = try PasswordInput.read("password of \(name)", isFromStandardInput: passwordStdin, isNew: false)
        let body = JSONValue.members([
            "apiToken": .string(apiToken), "name": .string(name), "password": .string(password),
            "keepSignedIn": .bool(keepSignedIn),
        ])
        var request = ServiceRequest(.post, "/sign-in", body: body.serialized())
        // Too many attempts are no reason to make another one by itself.
        request.patienceSeconds = connection.settings.patienceSeconds ?? 0
        let response = try await connection.send(request).checked()
        let json = try response.json()
        let token = try needed(json["ckWebAuthToken"]?.string.flatMap { $0.isEmpty ? nil : $0 }, "token")
        if let tokenFile { try PrivateFile.replace(tokenFile, with: token + "\n") }
        let use =
            tokenFile.map { "use it  export ZONEKEEPER_WEB_AUTH_TOKEN_FILE=\($0)" }
            ?? "token   \(token)\nuse it  export ZONEKEEPER_WEB_AUTH_TOKEN=\(token)"
        try show(response, "user    \(json.text("userRecordName"))\nexpires \(json.time("expires"))\n\(use)")
    }
}

struct UserSignOutCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-out", abstract: "End the session that --web-auth-token-file or the environment names.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        var request = ServiceRequest(.post, "/sign-out", isRepeatable: true)
        request.credentials = try connection.userCredentials()
        try show(try await connection.send(request).checked(), "signed out; the session's tokens are worth nothing now")
    }
}

/// A password for somebody who has none yet, if any.
struct NewPasswordOptions: ParsableArguments {
    @Flag(help: "Ask for a password at the terminal, twice.")
    var password = false

    @Flag(help: "Read a password from standard input, one line.")
    var passwordStdin = false

    func validate() throws {
        if password, passwordStdin {
            throw ValidationError("either --password or --password-stdin is expected, not both")
        }
    }

    var isGiven: Bool { password || passwordStdin }

    /// Nil where none is given.
    func secret(of name: String) throws -> String? {
        guard isGiven else { return nil }
        return try PasswordInput.read("password of \(name)", isFromStandardInput: passwordStdin, isNew: true)
    }
}

/// Who a user is at an identity provider: both or none.
struct IdentityOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The user signs in with this OpenID Connect issuer, exactly as its tokens name it; with "
                + "--identity-subject.",
            valueName: "url"))
    var identityIssuer: String?

    @Option(help: ArgumentHelp("What the issuer calls the user: `sub` in its tokens.", valueName: "id"))
    var identitySubject: String?

    func validate() throws {
        if (identityIssuer == nil) != (identitySubject == nil) {
            throw ValidationError("--identity-issuer and --identity-subject go together")
        }
    }

    /// As a request's body has it; nil where none was named.
    var json: JSONValue? {
        guard let identityIssuer, let identitySubject else { return nil }
        return .members(["issuer": .string(identityIssuer), "subject": .string(identitySubject)])
    }
}
