import ArgumentParser
import RecordModel
import ServiceClient

struct RequestsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "requests",
        abstract: "Look at the log of requests of all nodes: what was asked for, and what became of it.",
        subcommands: [RequestsListCommand.self, RequestsWatchCommand.self, RequestsShowCommand.self])
}

struct RequestsFilter: ParsableArguments {
    @Flag(help: "Of all containers, and what is of none.")
    var all = false

    @Option(
        help: ArgumentHelp("An operation such as records/query, or what comes before its slash.", valueName: "name"))
    var operation: String?

    @Option(help: "Of one database.")
    var database: RecordOptions.Database?

    @Option(name: .customLong("type-of-record"), help: ArgumentHelp("Of one record type.", valueName: "name"))
    var recordType: String?

    @Option(help: ArgumentHelp("Of one zone.", valueName: "name"))
    var zone: String?

    @Option(
        name: .customLong("user-record"),
        help: ArgumentHelp("Of one user, by the record name that the list shows.", valueName: "name"))
    var user: String?

    @Option(help: ArgumentHelp("Those that failed with a code such as THROTTLED.", valueName: "code"))
    var code: String?

    @Option(help: ArgumentHelp("Those of one trace, by its 32 digits.", valueName: "id"))
    var trace: String?

    @Flag(help: "Those that failed, or of which a part did.")
    var failed = false

    @Flag(help: "Those of clients, and none of administrators.")
    var clients = false

    @Option(help: ArgumentHelp("Those that took so many milliseconds at least.", valueName: "milliseconds"))
    var slowerThan: UInt64?

    func parameters(_ connection: Connection) throws -> [(name: String, value: String)] {
        let all: [(name: String, value: String?)] = [
            ("container", self.all ? nil : try connection.container()),
            ("environment", self.all ? nil : connection.settings.environment), ("operation", operation),
            ("database", database?.rawValue), ("recordType", recordType), ("zone", zone), ("user", user),
            ("code", code), ("trace", trace), ("failed", failed ? "true" : nil), ("clients", clients ? "true" : nil),
            ("milliseconds", slowerThan.map { String($0) }),
        ]
        return all.compactMap { parameter in parameter.value.map { (parameter.name, $0) } }
    }
}

enum RequestTable {
    static func table(_ requests: [JSONValue]) -> Table {
        Table(
            requests,
            [
                .time("TIME", "time"), .text("OPERATION", "operation"), .text("DATABASE", "database"),
                .text("TYPE", "recordType"), .text("USER", "user"), .init("STATUS", status), .init("MS", milliseconds),
                .text("RECORDS", "records"), .text("NODE", "node"), .text("REQUEST", "id"),
            ])
    }

    static func status(_ request: JSONValue) -> String {
        let code = (request["code"] ?? request["itemCode"])?.string.map { " \($0)" } ?? ""
        return request.text("status") + code
    }

    static func milliseconds(_ json: JSONValue) -> String { number(json["milliseconds"]) }

    /// A number with a tenth at most; empty where there is none.
    static func number(_ json: JSONValue?) -> String {
        switch json {
        case .integer(let number)?: "\(number)"
        case .number(let number)?: "\((number * 10).rounded() / 10)"
        default: ""
        }
    }

    /// Why a request was refused; empty where no rule did.
    static func refusal(_ request: JSONValue) -> [String] {
        guard let refusal = request["refusal"] else { return [] }
        var line = "refused by  \(refusal.text("rule"))"
        if refusal["limit"] != nil {
            let used = refusal["used"] == nil ? "" : "\(refusal.text("used")) of "
            line += ": \(used)\(refusal.text("limit"))"
        }
        if refusal["freeAt"] != nil { line += ", free again \(refusal.time("freeAt"))" }
        return [line] + (refusal["reason"]?.string.map { ["            \($0)"] } ?? [])
    }

    /// Nodes whose part is missing, a line each.
    static func problems(_ json: JSONValue) -> [String] {
        (json["nodes"]?.array ?? []).compactMap { node in
            node["problem"]?.string.map { "node \(node.text("node")) is missing here: \($0)" }
        }
    }
}

struct RequestsListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List requests, the newest first.",
        discussion: "Nodes keep the newest requests in memory, and forget them when they are started anew.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var filter: RequestsFilter

    @Option(help: "How many at most, up to 500.")
    var limit = 50

    @Option(help: ArgumentHelp("Go on after this request, the last of the list before.", valueName: "request"))
    var after: String?

    func validate() throws {
        guard (1...500).contains(limit) else { throw ValidationError("--limit: 1 to 500 is expected") }
    }

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "GET", "requests",
            try filter.parameters(connection) + [("limit", String(limit))] + (after.map { [("after", $0)] } ?? []))
        let json = try response.json()
        let table = RequestTable.table(try response.entries("requests"))
        var lines = [table.rows.isEmpty ? "no requests" : table.text] + RequestTable.problems(json)
        if let next = json["next"]?.string { lines.append("there are more: --after \(next)") }
        try show(response, lines.joined(separator: "\n"))
    }
}

struct RequestsWatchCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Print requests as they are answered, until it is stopped.",
        discussion: """
            With --json each request is a line. --timeout ends it after so long, --count after so many requests. A node \
            that does not answer is named on standard error.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var filter: RequestsFilter

    @Option(help: "End after so many requests.")
    var count: Int?

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count: 1 or more is expected") }
    }

    func run(on connection: Connection) async throws {
        try connection.needAdministrator()
        var watching = RequestWatching(count: count, isJSON: options.json)
        let end = (options.timeout?.seconds).map { ContinuousClock.now + .seconds($0) }
        let parameters = try filter.parameters(connection)
        while watching.goesOn, end.map({ $0 > .now }) ?? true {
            let place = watching.place.map { [(name: "after", value: $0)] } ?? []
            let request = ServiceRequest(
                .get, "/admin/1/requests/watch", parameters: parameters + place, isAdministrative: true)
            do {
                try await connection.client.events(of: request) { event in
                    try watching.take(event)
                    return watching.goesOn && (end.map { $0 > .now } ?? true)
                }
            } catch let failure as ServiceFailure {
                throw CommandFailure("\(failure)")
            } catch let error as ServiceUnreachable where watching.place == nil {
                throw CommandFailure(error.description)
            } catch let failure as CommandFailure {
                throw failure
            } catch {
                // A node that is lost: another one goes on from the same place.
                Console.note("the stream broke, going on: \(error)")
                try await Task.sleep(for: .seconds(1))
            }
        }
    }

    static func line(_ request: JSONValue) -> String {
        let milliseconds = "\(RequestTable.milliseconds(request)) ms"
        let about = ["container", "database", "recordType", "user"].compactMap { request[$0]?.string }
        return
            ([request.time("time"), request.text("operation"), RequestTable.status(request), milliseconds]
            + about + ["node \(request.text("node"))", request.text("id")]).joined(separator: "  ")
    }
}

/// What was followed of the log so far.
struct RequestWatching {
    /// Requests still to be shown; nil for any number.
    private var countLeft: Int?
    private let isJSON: Bool
    /// Where the stream goes on.
    private(set) var place: String?
    private var problems: [String] = []

    init(count: Int?, isJSON: Bool) {
        countLeft = count
        self.isJSON = isJSON
    }

    var goesOn: Bool { countLeft != 0 }

    mutating func take(_ event: ServerSentEvent) throws {
        let json = try JSONParser.parse(Array(event.data.utf8))
        switch event.name {
        case "requests":
            place = event.id ?? place
            var requests = json["requests"]?.array ?? []
            if let left = countLeft {
                requests = Array(requests.prefix(left))
                countLeft = left - requests.count
            }
            let lines = requests.map { isJSON ? $0.plainText : RequestsWatchCommand.line($0) }
            // Standard output may be a pipe, which would keep lines back.
            Console.printPart(lines.map { $0 + "\n" }.joined())
            if let skipped = json.amount("skipped"), skipped > 0 { Console.note("\(skipped) more are left out") }
        case "nodes":
            let missing = RequestTable.problems(json)
            for problem in missing where !problems.contains(problem) { Console.note(problem) }
            problems = missing
        case "end" where json["serverErrorCode"]?.string != "TRY_AGAIN_LATER":
            throw CommandFailure("\(json.text("serverErrorCode")): \(json.text("reason"))")
        default: break
        }
    }
}

struct RequestsShowCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show one request: its way through the nodes, and what refused it.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The request's id, which answers have in X-Apple-Request-UUID.")
    var request: String

    func run(on connection: Connection) async throws {
        let response = try await connection.administer("GET", "requests/trace", parameters: ["id": request])
        try show(response, Self.text(try response.json()))
    }

    static func text(_ json: JSONValue) -> String {
        guard let request = json["request"] else { return "" }
        var lines = [
            "\(request.text("operation"))  \(RequestTable.status(request))  \(RequestTable.milliseconds(request)) ms",
            "time        \(request.time("time"))",
        ]
        for (name, key) in [
            ("container", "container"), ("environment", "environment"), ("database", "database"), ("zone", "zone"),
            ("type", "recordType"), ("user", "user"), ("by", "credential"), ("address", "address"),
            ("records", "records"), ("bytes in", "bytesIn"), ("bytes out", "bytesOut"), ("trace", "trace"),
        ] where request[key] != nil {
            lines.append(name + String(repeating: " ", count: 12 - name.count) + request.text(key))
        }
        lines += RequestTable.refusal(request)
        lines.append("")
        lines.append("node \(request.text("node")) answered the client")
        for hop in json["hops"]?.array ?? [] {
            let work = hop.text("work") == "write" ? "wrote" : "read"
            let outcome = hop["done"] == .bool(true) ? "" : ", and refused"
            lines.append(
                "node \(hop.text("node")) \(work) in group \(hop.text("group")) for node \(hop.text("from")), "
                    + "\(RequestTable.milliseconds(hop)) ms\(outcome)")
        }
        return (lines + RequestTable.problems(json)).joined(separator: "\n")
    }
}
