import ArgumentParser
import ServiceClient

/// `zonekeeper provider remove`
struct ProviderRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Let nobody sign in with an identity provider any more; accounts stay.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The provider's name.")
    var name: String

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer("DELETE", "providers", parameters: [("name", name)])
            if options.json { return Console.print(response.body) }
            print("removed the identity provider \(name)")
        }
    }
}
