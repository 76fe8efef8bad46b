import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper limits explain`
struct LimitsExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Say which limits a request would meet now, which of them refuses it, and when that passes.",
        discussion: "Nothing is sent to the database, and nothing is spent.")

    @OptionGroup var options: ClientOptions

    @Option(help: "The database that the request is for.")
    var database = RecordOptions.Database.public

    @Option(help: ArgumentHelp("What the request does, as in its path.", valueName: "entity/action"))
    var action = "records/modify"

    @Option(help: "The user who asks; needed for private data.")
    var user: String?

    func validate() throws {
        if database == .private, user == nil {
            throw ValidationError("--database private needs --user, whose data it is")
        }
    }

    func run() async throws {
        try await options.withConnection { connection in
            var parameters = [
                (name: "container", value: try connection.container()),
                (name: "environment", value: connection.settings.environment),
                (name: "database", value: database.rawValue), (name: "action", value: action),
            ]
            if let user { parameters.append((name: "user", value: user)) }
            let response = try await connection.administer("GET", "limits/explain", parameters: parameters)
            if options.json { return Console.print(response.body) }
            print(Self.text(try response.json()))
        }
    }

    static func text(_ json: JSONValue) -> String {
        let rules = json["rules"]?.array ?? []
        var table = Table("RULE", "LIMIT", "USED", "LEFT", "RESETS IN", "REFUSES")
        for rule in rules {
            let unit = unit(of: rule.text("name"))
            table.add([
                rule.text("name"), LimitValue.text(rule["limit"], unit), LimitValue.text(rule["used"], unit),
                LimitValue.text(rule["remaining"], unit == .requestsPerSecond ? .requests : unit),
                seconds(rule["resetSeconds"]),
                rule["fires"] == .bool(true) ? "yes" : "no",
            ])
        }
        let reasons = rules.filter { $0["fires"] == .bool(true) }.map { "\($0.text("name")): \($0.text("reason"))" }
        return ([table.text, ""] + reasons + [json.text("verdict")]).joined(separator: "\n")
    }

    /// Rates go by their kind, other rules by their limit.
    private static func unit(of rule: String) -> ContainerLimit.Unit? {
        switch rule {
        case "requests": ContainerLimit.requestsPerSecond.unit
        case "keyValues": ContainerLimit.keyValueRequestsPerSecond.unit
        default: ContainerLimit(rawValue: rule)?.unit
        }
    }

    private static func seconds(_ json: JSONValue?) -> String {
        switch json {
        case .integer(let seconds)?: Units.seconds(Double(seconds))
        case .number(let seconds)?: Units.seconds(seconds)
        default: ""
        }
    }
}
