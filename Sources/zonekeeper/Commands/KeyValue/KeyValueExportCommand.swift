import ArgumentParser
import Foundation
import RecordModel
import ServiceClient

/// `zonekeeper kv export`
struct KeyValueExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write all keys and values to a file, or to standard output.",
        discussion:
            "JSON keeps every type. A property list has whole seconds in times, and no control characters in texts.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The file; `-` for standard output. It is made for its owner alone.")
    var file = "-"

    @Option(help: "json or plist.")
    var format = PreferenceFormat.json

    func run() async throws {
        try await options.withConnection { connection in
            let entries = try await connection.preferences().entries
            let preferences = try PreferenceFile(values: entries.map { ($0.text("key"), $0["value"] ?? .null) })
            let bytes = try preferences.encoded(format)
            guard file != "-" else { return Console.print(bytes) }
            do {
                try PrivateFile.replace(file, with: String(decoding: bytes, as: UTF8.self))
            } catch let error as ServiceClientError {
                throw CommandFailure(error)
            }
            Console.note("exported \(preferences.entries.count) \(preferences.entries.count == 1 ? "key" : "keys")")
        }
    }
}
