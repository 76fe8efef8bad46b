import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper limits show`
struct LimitsShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show every limit of a container with where it comes from, and what they come to with its users.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var scope: LimitsScope

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer(
                "GET", "limits", parameters: try scope.parameters(of: connection))
            if options.json { return Console.print(response.body) }
            print(Self.text(try response.json()))
        }
    }

    static func text(_ json: JSONValue) -> String {
        var table = Table("LIMIT", "VALUE", "SET FOR")
        for limit in json["limits"]?.array ?? [] {
            let unit = ContainerLimit(rawValue: limit.text("name"))?.unit ?? .init(rawValue: limit.text("unit"))
            let source = limit.text("source")
            table.add([
                limit.text("name"), LimitValue.text(limit["value"], unit), source == "default" ? "" : "the \(source)",
            ])
        }
        guard case .object(let effective)? = json["effective"], !effective.isEmpty else { return table.text }
        var sums = Table("IN FORCE", "VALUE")
        for member in effective {
            sums.add([member.key, LimitValue.text(member.value, ContainerLimit(rawValue: member.key)?.unit)])
        }
        let container = json["container"]?.string.map { "container \($0), " } ?? ""
        var users = ""
        if case .integer(let count)? = json["users"] { users = Units.count(count) + (count == 1 ? " user" : " users") }
        return "\(container)\(users)\n\n\(table.text)\n\n\(sums.text)"
    }
}
