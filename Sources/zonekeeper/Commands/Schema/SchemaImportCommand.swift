import ArgumentParser
import RecordModel
import Storage

/// `zonekeeper schema import`
struct SchemaImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Make a container's schema what a file says.",
        discussion: """
            The file is the whole schema that is wanted: what it leaves out is removed, unless --additive is \
            said. What would lose data is refused, unless --allow-data-loss is said. It happens wholly or not \
            at all.
            """)

    @OptionGroup var options: ConnectionOptions

    @Argument(help: "The schema, such as schema.ckdb; `-` for standard input.")
    var file: String

    @Flag(help: "Keep the types, fields and indexes that the file leaves out.")
    var additive = false

    @Flag(help: "Remove types and fields together with what records have in them.")
    var allowDataLoss = false

    @Flag(help: "Say what would change, and change nothing.")
    var dryRun = false

    func run() async throws {
        let text = try InputFile.read(file)
        try await options.withConnection { connection in
            var parameters = [
                (name: "container", value: try connection.container()),
                (name: "environment", value: connection.settings.environment),
            ]
            for (name, flag) in [("additive", additive), ("allowDataLoss", allowDataLoss), ("dryRun", dryRun)]
            where flag {
                parameters.append((name: name, value: "true"))
            }
            // Wrapped, as the schema's own text may begin with anything.
            let body = JSONValue.members(["schema": .string(text)]).serialized()
            let response = try await connection.administer("POST", "schema", parameters: parameters, body: body)
            if options.json { return Console.print(response.body) }
            let json = try response.json()
            let changes = (json["changes"]?.array ?? []).compactMap(\.string)
            for change in changes { print((dryRun ? "would " : "") + change) }
            switch (changes.isEmpty, dryRun) {
            case (true, _): print("the schema is like the file already (version \(json.text("version")))")
            case (false, true): print("nothing was changed (--dry-run)")
            case (false, false): print("the schema has version \(json.text("version")) now")
            }
        }
    }
}

/// A text file that a command was given.
enum InputFile {
    /// - Parameter path: `-` is standard input.
    static func read(_ path: String) throws(CommandFailure) -> String {
        let bytes: [UInt8]
        do throws(DiskError) {
            bytes = path == "-" ? Self.standardInput() : try readWholeFile(at: path)
        } catch {
            throw CommandFailure("\(path) cannot be read: \(error.reason)")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CommandFailure("\(path) is not UTF-8 text")
        }
        return text
    }

    private static func standardInput() -> [UInt8] {
        var bytes: [UInt8] = []
        while let line = readLine(strippingNewline: false) { bytes += Array(line.utf8) }
        return bytes
    }
}
