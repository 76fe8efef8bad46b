import ArgumentParser
import RecordModel
import ServiceClient

struct KeyValueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kv",
        abstract: "Keep a user's preferences: small values by key, in sync on all devices.",
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
