import ArgumentParser
import RecordModel
import ServiceClient

struct KeyValueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kv", abstract: "Keep a user's preferences: small values by key, in sync on all devices.",
        subcommands: [
            KeyValueGetCommand.self, KeyValueSetCommand.self, KeyValueDeleteCommand.self, KeyValueListCommand.self,
            KeyValueChangesCommand.self, KeyValueWatchCommand.self, KeyValueUsageCommand.self,
            KeyValueExportCommand.self, KeyValueImportCommand.self,
        ])
}

enum KeyValueTable {
    static func text(_ entries: [JSONValue]) -> String {
        func value(_ entry: JSONValue) -> String {
            if entry["deleted"] == .bool(true) { return "(deleted)" }
            return (entry["value"]?["value"] ?? .null).simplified.plainText.shortened(to: 80)
        }
        let columns: [Table.Column] = [
            .text("KEY", "key"), .init("TYPE", { $0["value"]?.text("type") ?? "" }), .init("VALUE", value),
            .time("MODIFIED", "modified"),
        ]
        return Table(entries, columns).text
    }
}

extension JSONValue {
    /// The same without the types that every member of a property list states.
    var simplified: JSONValue {
        switch self {
        case .array(let members): .array(members.map { ($0["value"] ?? $0).simplified })
        case .object(let members): .object(members.map { Member($0.key, ($0.value["value"] ?? $0.value).simplified) })
        default: self
        }
    }
}

struct KeyValueGetCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Print the value of a key; of several keys, a table.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The keys.")
    var keys: [String]

    func run(on connection: Connection) async throws {
        let json = JSONValue.members(["keys": .strings(keys)])
        let response = try await connection.preferences("get", json)
        let values = try response.entries("values")
        if options.json {
            Console.print(response.body)
        } else if keys.count == 1, let value = values.first?["value"]?["value"] {
            print(value.simplified.plainText)
        } else if !values.isEmpty {
            print(KeyValueTable.text(values))
        }
        let missing = keys.filter { key in !values.contains { $0.text("key") == key } }
        guard missing.isEmpty else {
            throw CommandFailure("no value for \(missing.map { "'\($0)'" }.joined(separator: ", "))")
        }
    }
}

struct KeyValueSetCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "set", abstract: "Set a key's value.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The key, at most 64 bytes.")
    var key: String

    @Argument(help: "The value, as its type is written; one that begins with - goes after `--`.")
    var value: String

    @Option(
        help: """
            STRING, INT64, DOUBLE, BOOL (true or false), TIMESTAMP (milliseconds since 1970, or ISO 8601), BYTES \
            (base64) or JSON (with arrays and objects).
            """)
    var type = PreferenceType.string

    @Option(help: "Set it only while this is the key's version.")
    var ifVersion: String?

    func validate() throws { _ = try type.json(value) }

    func run(on connection: Connection) async throws {
        let write = JSONValue.members([
            "key": .string(key), "value": try type.json(value), "version": .given(ifVersion),
        ])
        let response = try await connection.preferences("set", .members(["writes": .array([write])]))
        let usage = try response.json()["usage"]
        try show(response, "set \(key)" + (usage.map { " (the store has \($0.room(" and ")))" } ?? ""))
    }
}

enum PreferenceType: String, ExpressibleByArgument, CaseIterable {
    case string = "STRING"
    case int64 = "INT64"
    case double = "DOUBLE"
    case bool = "BOOL"
    case timestamp = "TIMESTAMP"
    case bytes = "BYTES"
    case json = "JSON"

    init?(argument: String) { self.init(rawValue: argument.uppercased()) }

    /// The value as a request has it.
    func json(_ text: String) throws -> JSONValue {
        switch self {
        case .json:
            let json = try Result { () throws(JSONError) in try JSONParser.parse(Array(text.utf8)).asPropertyList }
                .mapError { ValidationError("the value is not JSON: \($0)") }.get()
            // A request that sets a key to null deletes it.
            if json.isNull { throw ValidationError("null is no value; delete the key with 'kv delete'") }
            return json
        case .bool:
            guard let flag = Bool(text) else { throw ValidationError("BOOL: true or false is expected, not '\(text)'") }
            return typed(.bool(flag))
        case .string: return typed(.string(text))
        case .int64, .double, .timestamp, .bytes:
            guard let scalar = ScalarType(rawValue: rawValue) else {
                preconditionFailure("\(rawValue) is no scalar type")
            }
            return typed(try ScalarText.json(text, as: scalar))
        }
    }

    private func typed(_ value: JSONValue) -> JSONValue { .members(["value": value, "type": .string(rawValue)]) }
}

extension JSONValue {
    /// Plain JSON as a property list's: every object states its type, so that no member is taken for a part of that
    /// form.
    fileprivate var asPropertyList: JSONValue {
        switch self {
        case .array(let members):
            .members(["value": .array(members.map(\.asPropertyList)), "type": .string("ARRAY")])
        case .object(let members):
            .members([
                "value": .object(members.map { Member($0.key, $0.value.asPropertyList) }),
                "type": .string("DICTIONARY"),
            ])
        default: self
        }
    }
}

struct KeyValueDeleteCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete keys, all or none; a key that is not there does no harm.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The keys.")
    var keys: [String]

    func run(on connection: Connection) async throws {
        let writes = keys.map { JSONValue.members(["key": .string($0), "value": .null]) }
        let response = try await connection.preferences("set", .members(["writes": .array(writes)]))
        try show(response, "deleted \(keys.joined(separator: ", "))")
    }
}

struct KeyValueListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List every key with its value, in order of the keys.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let (entries, usage) = try await connection.preferences()
        try show(
            .members(["values": .array(entries), "usage": usage]),
            "\(KeyValueTable.text(entries))\n\(usage.room(", "))")
    }
}

extension JSONValue {
    /// What a store takes, of the server's `usage`: its keys and bytes.
    fileprivate func room(_ separator: String) -> String {
        let keys = text("keys")
        return "\(keys) \(keys == "1" ? "key" : "keys")\(separator)\(text("bytes")) bytes"
    }
}

struct KeyValueChangesCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "List what was set and deleted since a sync token, and the token to go on from.")

    @OptionGroup var options: ClientOptions

    @Option(help: ArgumentHelp("The token of the last time; without one, everything.", valueName: "token"))
    var since: String?

    func run(on connection: Connection) async throws {
        let (changes, token) = try await connection.feed("changes", since: since) {
            try await connection.preferences("changes", $0)
        }
        try show(
            .members(["changes": .array(changes), "syncToken": .given(token)]),
            "\(KeyValueTable.text(changes))\ntoken \(token ?? "")")
    }
}

struct KeyValueUsageCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "usage", abstract: "Show how much the store holds, and what it is held to.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let response = try await connection.preferences("usage", .object([]))
        try show(response, Self.text(try response.json()))
    }

    static func text(_ usage: JSONValue) -> String {
        func count(_ json: JSONValue?, _ name: String) -> String { json?.amount(name).map(Units.count) ?? "?" }
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

extension Connection {
    func preferences() async throws -> (entries: [JSONValue], usage: JSONValue) {
        var entries: [JSONValue] = []
        var usage: JSONValue = .null
        var after: String?
        repeat {
            let page = try await preferences("list", .members(["after": .given(after)])).json()
            entries += page["values"]?.array ?? []
            usage = page["usage"] ?? .null
            after = page["after"]?.string
        } while after != nil
        return (entries, usage)
    }

    /// Reads a feed page after page, to its end.
    func feed(
        _ key: String, since: String?, _ page: (JSONValue) async throws -> ServiceResponse
    ) async throws -> (entries: [JSONValue], token: String?) {
        var entries: [JSONValue] = []
        var token = since
        while true {
            let json = try await page(.members(["syncToken": .given(token)])).json()
            entries += json[key]?.array ?? []
            token = json["syncToken"]?.string
            if json["moreComing"] != .bool(true) { return (entries, token) }
        }
    }
}

struct KeyValueWatchCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Print changes as they come, until it is stopped.",
        discussion: """
            Goes on by itself, on another node where one is lost. With --json each change is a line; the last one of \
            those that came together has the syncToken to go on from. --timeout ends it after so long, --count after \
            so many changes.
            """)

    @OptionGroup var options: ClientOptions

    @Option(
        help: ArgumentHelp(
            "The token to go on from, such as `kv changes` prints; without one, what changes from now on.",
            valueName: "token"))
    var since: String?

    @Option(help: "End after so many changes.")
    var count: Int?

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count: 1 or more is expected") }
    }

    func run(on connection: Connection) async throws {
        var watching = FeedWatching(count: count, seconds: options.timeout?.seconds) { token, wait, left in
            try connection.preferencesRequest(
                "watch",
                .members([
                    "syncToken": .given(token), "timeout": .integer(wait),
                    "resultsLimit": left.map { .integer(Int64($0)) },
                ]))
        }
        try await watching.follow("changes", since: since, on: connection) {
            try await connection.preferences("changes", $0)
        } show: { page, changes in
            show(changes, token: page["syncToken"]?.string)
        }
        if !options.json { print("token \(watching.token ?? "")") }
    }

    private func show(_ changes: [JSONValue], token: String?) {
        let lines = changes.enumerated().map { position, change in
            guard options.json else { return Self.line(change) }
            let isLast = position == changes.count - 1
            return JSONValue.members(["change": change, "syncToken": isLast ? .given(token) : nil])
                .plainText
        }
        // Standard output may be a pipe, which would keep lines back.
        Console.printPart(lines.map { $0 + "\n" }.joined())
    }

    static func line(_ change: JSONValue) -> String {
        let device = change["device"]?.string.map { " (by \($0))" } ?? ""
        let value = (change["value"]?["value"] ?? .null).simplified.plainText.shortened(to: 200)
        let what = change["deleted"] == .bool(true) ? " deleted" : " = \(value)"
        return "\(change.time("modified"))  \(change.text("key"))\(what)\(device)".onOneLine
    }
}

/// Follows a feed of a user's by long polls.
struct FeedWatching {
    /// A request for what comes after a token: it is waited for so many seconds, and at most so many entries are
    /// wanted; nil for any number.
    typealias Request = (_ token: String?, _ seconds: Int64, _ countLeft: Int?) throws -> ServiceRequest

    /// Entries still to be shown; nil for any number.
    private var countLeft: Int?
    private let end: ContinuousClock.Instant?
    private let request: Request
    private(set) var token: String?

    /// What the server waits at most.
    private static let pollSecondsMax = 30.0
    /// How much longer than the server an answer is waited for.
    private static let graceSeconds: Int64 = 15

    init(count: Int?, seconds: Double?, request: @escaping Request) {
        countLeft = count
        self.request = request
        end = seconds.map { ContinuousClock.now + .seconds($0) }
    }

    /// Follows the feed to its end.
    /// - Parameters:
    ///   - key: the member that holds a page's entries.
    ///   - since: the token to begin after; nil for after everything that is there now.
    ///   - changes: reads a page of the whole feed, or of what brings its end sooner.
    ///   - show: is given each page that has entries, and these.
    mutating func follow(
        _ key: String, since: String?, on connection: Connection,
        changes: (JSONValue) async throws -> ServiceResponse, show: (JSONValue, [JSONValue]) -> Void
    ) async throws {
        // A cluster that cannot be reached, or a token that is no good, is told of at once; later ones are waited for.
        token = since
        if since == nil {
            token = try await connection.feed(key, since: nil, changes).token
        } else {
            take(try await connection.send(try poll(seconds: 0)).checked().json(), key, show)
        }
        while let page = try await next(on: connection) { take(page, key, show) }
    }

    /// Waits for a page; nil once it has come to its end.
    private func next(on connection: Connection) async throws -> JSONValue? {
        if countLeft == 0 { return nil }
        let left = end.map { ($0 - .now) / .seconds(1) } ?? .infinity
        if left <= 0 { return nil }
        // Whole seconds, so the last poll may end a little after its time.
        var request = try poll(seconds: Int64(min(left, Self.pollSecondsMax).rounded(.up)))
        request.waitsForConnection = true
        request.patienceSeconds = left
        // Without an end it is tried for ever; with one, patience ends shortly before it.
        let response: ServiceResponse
        do {
            response = try await connection.client.send(request)
        } catch let error as ServiceUnreachable {
            guard end != nil else { throw CommandFailure(error.description) }
            return nil
        } catch let error as ServiceClientError {
            throw CommandFailure(error)
        }
        if end != nil, [429, 503].contains(response.status) { return nil }
        return try response.checked().json()
    }

    private func poll(seconds: Int64) throws -> ServiceRequest {
        var request = try request(token, seconds, countLeft)
        request.timeoutSeconds = seconds + Self.graceSeconds
        return request
    }

    private mutating func take(_ page: JSONValue, _ key: String, _ show: (JSONValue, [JSONValue]) -> Void) {
        token = page["syncToken"]?.string ?? token
        let entries = page[key]?.array ?? []
        countLeft = countLeft.map { max($0 - entries.count, 0) }
        if !entries.isEmpty { show(page, entries) }
    }
}
