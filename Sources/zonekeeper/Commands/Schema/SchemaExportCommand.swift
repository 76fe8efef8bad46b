import ArgumentParser
import ServiceClient
import Storage

/// `zonekeeper schema export`
struct SchemaExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Print a container's schema, in CloudKit's schema language.",
        aliases: ["export-schema"])

    @OptionGroup var options: ClientOptions

    @Option(help: ArgumentHelp("Write it to a file instead.", valueName: "file"))
    var output: String?

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer(
                "GET", "schema",
                parameters: try connection.schemaParameters())
            guard let output else { return Console.print(response.body) }
            do throws(DiskError) {
                try replaceFile(at: output, with: response.body)
            } catch {
                throw CommandFailure("\(output) cannot be written: \(error.reason)")
            }
            print("wrote \(output)")
        }
    }
}
