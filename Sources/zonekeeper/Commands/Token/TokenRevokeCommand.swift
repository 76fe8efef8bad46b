import ArgumentParser
import ServiceClient

/// `zonekeeper token revoke`
struct TokenRevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Make a token worthless.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The token's id, as `token list` shows it.")
    var id: String

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer("DELETE", "tokens", parameters: [("id", id)])
            if options.json { return Console.print(response.body) }
            print("revoked token \(id)")
        }
    }
}
