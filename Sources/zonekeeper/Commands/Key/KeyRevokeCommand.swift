import ArgumentParser
import ServiceClient

/// `zonekeeper key revoke`
struct KeyRevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Make a server key worthless.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The key's id, as `key list` shows it.")
    var id: String

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer("DELETE", "keys", parameters: [("id", id)])
            if options.json { return Console.print(response.body) }
            print("revoked key \(id)")
        }
    }
}
