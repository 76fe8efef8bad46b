import ArgumentParser
import RecordModel

/// `zonekeeper token list`
struct TokenListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the tokens, without their secrets.")

    @OptionGroup var options: ConnectionOptions

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer("GET", "tokens")
            if options.json { return Console.print(response.body) }
            var table = Table("ID", "KIND", "CONTAINER", "ENVIRONMENT", "USER", "CREATED", "EXPIRES", "LABEL")
            for token in try response.json()["tokens"]?.array ?? [] {
                table.add([
                    token.text("id"), token.text("kind"), token.text("container"), token.text("environment"),
                    token.text("user"), token.time("created"), token.time("expires"), token.text("label"),
                ])
            }
            print(table.text)
        }
    }
}
