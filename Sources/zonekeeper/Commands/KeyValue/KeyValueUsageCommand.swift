import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper kv usage`
struct KeyValueUsageCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "usage", abstract: "Show how much the store holds, and what it is held to.")

    @OptionGroup var options: ClientOptions

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.send(try connection.preferencesRequest("usage", .members([:])))
                .checked()
            if options.json { return Console.print(response.body) }
            print(Self.text(try response.json()))
        }
    }

    /// The answer as people read it.
    static func text(_ usage: JSONValue) -> String {
        func count(_ json: JSONValue?, _ name: String) -> String {
            guard case .integer(let number)? = json?[name] else { return "?" }
            return Units.count(number)
        }
        let limits = usage["limits"]
        var table = Table("WHAT", "USED", "AT MOST")
        table.add(["keys", count(usage, "keys"), count(limits, "keys")])
        table.add(["bytes of all values", count(usage, "bytes"), count(limits, "storeBytes")])
        table.add(["bytes of a value", "", count(limits, "valueBytes")])
        table.add(["bytes of a key", "", count(limits, "keyBytes")])
        table.add(["writes at once", "", count(limits, "writes")])
        return table.text
    }
}
