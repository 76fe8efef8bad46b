import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper user sign-out`
struct UserSignOutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-out", abstract: "End the session that --web-auth-token or --web-auth-token-file names.")

    @OptionGroup var options: ClientOptions

    func run() async throws {
        try await options.withConnection { connection in
            var request = ServiceRequest(.post, "/sign-out", isRepeatable: true)
            request.credentials = try connection.userCredentials()
            let response = try await connection.send(request).checked()
            if options.json { return Console.print(response.body) }
            print("signed out; the session's tokens are worth nothing now")
        }
    }
}
