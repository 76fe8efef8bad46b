import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper provider list`
struct ProviderListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the identity providers, without their secrets.")

    @OptionGroup var options: ClientOptions

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer("GET", "providers")
            if options.json { return Console.print(response.body) }
            let providers = try response.json()["providers"]?.array ?? []
            guard !providers.isEmpty else { return print("no identity providers") }
            var table = Table("PROVIDER", "ISSUER", "CLIENT ID", "SIGN-UP")
            for provider in providers {
                table.add([
                    provider.text("name"), provider.text("issuer"), provider.text("clientID"),
                    provider["allowsSignUp"] == .bool(true) ? "yes" : "no",
                ])
            }
            print(table.text)
        }
    }
}
