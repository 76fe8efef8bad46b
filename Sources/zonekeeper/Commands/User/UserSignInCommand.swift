import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper user sign-in`
struct UserSignInCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-in",
        abstract: "Begin a session with a name and a password, as the sign-in page does.",
        discussion: """
            The session's web auth token changes with every request, and older ones are good for a minute only: keep it in \
            a file with --token-file, which other commands read and keep up to date (--web-auth-token-file, or \
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

    func run() async throws {
        try await options.withConnection { connection in
            let apiToken = try connection.apiToken()
            let password = try PasswordInput.read(
                "password of \(name)", isFromStandardInput: passwordStdin, isNew: false)
            let body = JSONValue.members([
                "apiToken": .string(apiToken), "name": .string(name), "password": .string(password),
                "keepSignedIn": .bool(keepSignedIn),
            ])
            var request = ServiceRequest(.post, "/sign-in", body: body.serialized())
            // Too many attempts are no reason to make another one by itself.
            request.patienceSeconds = connection.settings.patienceSeconds ?? 0
            let response = try await connection.send(request).checked()
            let json = try response.json()
            guard let token = json["ckWebAuthToken"]?.string, !token.isEmpty else {
                throw CommandFailure("the answer has no token in it. Is this a Zonekeeper node?")
            }
            if let tokenFile {
                try CommandFailure.orElse { () throws(ServiceClientError) in
                    try PrivateFile.replace(tokenFile, with: token + "\n")
                }
            }
            if options.json { return Console.print(response.body) }
            print("user    \(json.text("userRecordName"))")
            print("expires \(json.time("expires"))")
            guard let tokenFile else {
                print("token   \(token)")
                return print("use it  export ZONEKEEPER_WEB_AUTH_TOKEN=\(token)")
            }
            print("use it  export ZONEKEEPER_WEB_AUTH_TOKEN_FILE=\(tokenFile)")
        }
    }
}
