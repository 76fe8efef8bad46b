import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper key list`
struct KeyListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the server keys.")

    @OptionGroup var options: ClientOptions

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer("GET", "keys")
            if options.json { return Console.print(response.body) }
            var table = Table("ID", "CONTAINER", "ENVIRONMENT", "USER", "CREATED", "LABEL")
            for key in try response.json()["keys"]?.array ?? [] {
                table.add([
                    key.text("id"), key.text("container"), key.text("environment"), key.text("user"),
                    key.time("created"), key.text("label"),
                ])
            }
            print(table.text)
        }
    }
}
