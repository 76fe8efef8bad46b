import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper user create`
struct UserCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create a user, who may then be given sessions, and signs in where there is a password.",
        discussion: """
            Without a password or an identity the user cannot sign in until `zonekeeper user password` or `user update` sets \
            one.
            """)

    @OptionGroup var options: ClientOptions

    @Argument(help: "A name, for administrators only; unique.")
    var name: String

    @Flag(help: "Ask for a password at the terminal, twice.")
    var password = false

    @Flag(help: "Read a password from standard input, one line.")
    var passwordStdin = false

    @Option(help: "By which other users may look the user up; unique.")
    var email: String?

    @Option(help: "Shown to others if the user is discoverable.")
    var givenName: String?

    @Option(help: "Shown to others if the user is discoverable.")
    var familyName: String?

    @Flag(help: "Let other users learn the names.")
    var discoverable = false

    @OptionGroup var identity: IdentityOptions

    func validate() throws {
        if password, passwordStdin {
            throw ValidationError("either --password or --password-stdin is expected, not both")
        }
    }

    func run() async throws {
        let secret =
            password || passwordStdin
            ? try PasswordInput.read("password of \(name)", isFromStandardInput: passwordStdin, isNew: true) : nil
        try await options.withConnection { connection in
            let body = JSONValue.members([
                "name": .string(name), "email": email.map { .string($0) }, "givenName": givenName.map { .string($0) },
                "familyName": familyName.map { .string($0) }, "discoverable": .bool(discoverable),
                "password": secret.map { .string($0) }, "identity": identity.json,
            ])
            let response = try await connection.administer("POST", "users", body: body.serialized())
            if options.json { return Console.print(response.body) }
            print("created user \(name)\(secret == nil && identity.json == nil ? "" : ", who may sign in")")
        }
    }
}
