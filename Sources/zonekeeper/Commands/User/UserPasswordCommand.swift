import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper user password`
struct UserPasswordCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "password",
        abstract: "Set a user's password, or remove it.",
        discussion: """
            The password is asked for at the terminal, twice, or read from standard input. The user's sessions end, as who \
            knew the old password may have begun them; --keep-sessions lets them be.
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

    func run() async throws {
        let password =
            remove
            ? nil : try PasswordInput.read("new password of \(name)", isFromStandardInput: passwordStdin, isNew: true)
        try await options.withConnection { connection in
            let body = JSONValue.members([
                "password": password.map { .string($0) } ?? .null, "endSessions": .bool(!keepSessions),
            ])
            let response = try await connection.administer(
                "POST", "users/password", parameters: [("name", name)], body: body.serialized())
            if options.json { return Console.print(response.body) }
            let sessions = keepSessions ? "sessions go on" : "sessions ended"
            print("\(remove ? "removed" : "set") the password of user \(name); \(sessions)")
        }
    }
}
