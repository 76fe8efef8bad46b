import ArgumentParser
import RecordModel
import ServiceClient

struct LimitsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limits",
        abstract: "Show and set what containers are held to, and explain what a request would meet.",
        subcommands: [LimitsShowCommand.self, LimitsSetCommand.self, LimitsExplainCommand.self])
}

struct LimitsScope: ParsableArguments {
    @Flag(help: "The defaults of the cluster, which count where a container has no value of its own.")
    var cluster = false

    /// The container; nil for the cluster's defaults.
    func container(of connection: Connection) throws -> String? { cluster ? nil : try connection.container() }
}

struct LimitsShowCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show every limit of a container with where it comes from, and what they come to with its users.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var scope: LimitsScope

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "GET", "limits", parameters: ["container": try scope.container(of: connection)])
        try show(response, Self.text(try response.json()))
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
        let effective = json["effective"]?.members ?? []
        if effective.isEmpty { return table.text }
        var sums = Table("IN FORCE", "VALUE")
        for member in effective {
            sums.add([member.key, LimitValue.text(member.value, ContainerLimit(rawValue: member.key)?.unit)])
        }
        let container = json["container"]?.string.map { "container \($0), " } ?? ""
        let users = json.amount("users").map { Units.count($0) + ($0 == 1 ? " user" : " users") } ?? ""
        return "\(container)\(users)\n\n\(table.text)\n\n\(sums.text)"
    }
}

struct LimitsSetCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Set limits of a container, or the defaults of the cluster.",
        discussion: """
            A value is a number, an amount such as 10GB, 2.5MB or 64MiB, `unlimited`, or `default`, which takes back \
            what was set. All are set or none. Names are those of `limits show`:

            \(ContainerLimit.allCases.map(\.rawValue).joined(separator: "\n"))
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var scope: LimitsScope

    @Argument(help: ArgumentHelp("Such as requestsPerSecond=40 or userBytes=5GB.", valueName: "name=value"))
    var limits: [String]

    func validate() throws {
        let names = try limits.map { try LimitAssignment(parsing: $0).limit }
        for (position, name) in names.enumerated() where names[..<position].contains(name) {
            throw ValidationError("\(name.rawValue) is set twice")
        }
    }

    func run(on connection: Connection) async throws {
        let assignments = try limits.map { try LimitAssignment(parsing: $0) }
        let container = try scope.container(of: connection)
        let body = JSONValue.object(
            assignments.map { .init($0.limit.rawValue, $0.value.map { .integer($0) } ?? .null) })
        let response = try await connection.administer(
            "PATCH", "limits", parameters: ["container": container], body: body)
        let place = container.map { "container \($0)" } ?? "the cluster"
        try show(response, assignments.map { Self.line($0, place) }.joined(separator: "\n"))
    }

    static func line(_ assignment: LimitAssignment, _ place: String) -> String {
        let name = assignment.limit.rawValue
        guard let value = assignment.value else { return "\(place): \(name) is as by default" }
        return "\(place): \(name) is \(LimitValue.text(value, assignment.limit.unit))"
    }
}

struct LimitsExplainCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Say which limits a request would meet now, which of them refuses it, and when that passes.",
        discussion: "Nothing is sent to the database, and nothing is spent.")

    @OptionGroup var options: ClientOptions

    @Option(help: "The database that the request is for.")
    var database = RecordOptions.Database.public

    @Option(help: ArgumentHelp("What the request does, as in its path.", valueName: "entity/action"))
    var action = "records/modify"

    @Option(help: "The user who asks; needed for private data, and to judge what an upload meets.")
    var user: String?

    @Option(help: ArgumentHelp("Say why this request was refused, as it was then, instead.", valueName: "id"))
    var request: String?

    func validate() throws {
        if database == .private, user == nil {
            throw ValidationError("--database private needs --user, whose data it is")
        }
    }

    func run(on connection: Connection) async throws {
        if let request {
            let response = try await connection.administer("GET", "requests/trace", parameters: ["id": request])
            return try show(response, Self.refusal(try response.json()))
        }
        let response = try await connection.administerPlace(
            "GET", "limits/explain", parameters: ["database": database.rawValue, "action": action, "user": user])
        try show(response, Self.text(try response.json()))
    }

    static func refusal(_ json: JSONValue) -> String {
        let request = json["request"] ?? .null
        let lines = RequestTable.refusal(request)
        let head = "\(request.time("time"))  \(request.text("operation"))  \(RequestTable.status(request))"
        return ([head] + (lines.isEmpty ? ["no limit and no permission refused it"] : lines)).joined(separator: "\n")
    }

    static func text(_ json: JSONValue) -> String {
        let rules = json["rules"]?.array ?? []
        var table = Table("RULE", "LIMIT", "USED", "LEFT", "RESETS IN", "REFUSES")
        for rule in rules {
            let unit = unit(of: rule.text("name"))
            table.add([
                rule.text("name"), LimitValue.text(rule["limit"], unit), LimitValue.text(rule["used"], unit),
                LimitValue.text(rule["remaining"], unit == .requestsPerSecond ? .requests : unit),
                rule["resetSeconds"]?.plainNumber.map(Units.seconds) ?? "", rule["fires"] == .bool(true) ? "yes" : "no",
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
        case "acting": ContainerLimit.actAsRequestsPerSecond.unit
        default: ContainerLimit(rawValue: rule)?.unit
        }
    }
}

enum LimitValue {
    /// In the unit's own words: `40 requests/s`, `100 MB`, `1,000 records`, `unlimited`.
    static func text(_ value: Int64, _ unit: ContainerLimit.Unit?) -> String {
        if value == ContainerLimit.unlimited { return "unlimited" }
        switch unit {
        case .bytes?: return Units.bytes(value)
        case nil: return Units.count(value)
        case let unit?: return "\(Units.count(value)) \(unit.rawValue)"
        }
    }

    /// A number of an answer, which may be a fraction; empty where it is missing.
    static func text(_ json: JSONValue?, _ unit: ContainerLimit.Unit?) -> String {
        switch json {
        case .integer(let value)?: text(value, unit)
        // Nothing that is limited reaches so far.
        case .number(let value)?: abs(value) < 9e18 ? text(Int64(value.rounded(.down)), unit) : "unlimited"
        case nil, .null?: ""
        case let other?: other.plainText
        }
    }

    /// Reads what is written on the command line.
    /// - Returns: nil for `default`.
    static func parse(_ text: String, for limit: ContainerLimit) throws -> Int64? {
        switch text.lowercased() {
        case "default": return nil
        case "unlimited":
            guard limit.range.upperBound == ContainerLimit.unlimited else {
                throw ValidationError("\(limit.rawValue): cannot be unlimited; \(expected(limit))")
            }
            return ContainerLimit.unlimited
        default: break
        }
        let isPlain = text.allSatisfy { $0.isASCII && $0.isWholeNumber }
        guard limit.unit == .bytes || isPlain, let value = Units.parse(text), limit.range.contains(value) else {
            throw ValidationError("\(limit.rawValue): \(expected(limit)), not '\(text)'")
        }
        return value
    }

    private static func expected(_ limit: ContainerLimit) -> String {
        let (lower, upper) = (limit.range.lowerBound, limit.range.upperBound)
        return switch limit.unit {
        case .bytes: "an amount such as 10GB or 64MiB, 'unlimited' or 'default' is expected"
        case .records: "a number of records, 'unlimited' or 'default' is expected"
        default: "\(Units.count(lower)) to \(Units.count(upper)) \(limit.unit.rawValue) or 'default' is expected"
        }
    }
}

/// `name=value` on the command line.
struct LimitAssignment: Hashable {
    var limit: ContainerLimit
    /// Nil to set none.
    var value: Int64?

    init(parsing text: String) throws {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw ValidationError("'\(text)': name=value is expected") }
        let name = String(parts[0])
        guard let limit = ContainerLimit.allCases.first(where: { $0.rawValue.lowercased() == name.lowercased() }) else {
            let names = ContainerLimit.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("there is no limit '\(name)'; there are \(names)")
        }
        self.limit = limit
        value = try LimitValue.parse(String(parts[1]), for: limit)
    }
}
