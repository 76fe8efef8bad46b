import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper kv set`
struct KeyValueSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "set", abstract: "Set a key's value.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The key, at most 64 bytes.")
    var key: String

    @Argument(help: "The value, as its type is written; one that begins with - goes after `--`.")
    var value: String

    @Option(
        help: """
            STRING, INT64, DOUBLE, BOOL (true or false), TIMESTAMP (milliseconds since 1970, or ISO 8601), BYTES (base64) or \
            JSON (with arrays and objects).
            """)
    var type = PreferenceType.string

    @Option(help: "Set it only while this is the key's version.")
    var ifVersion: String?

    func validate() throws { _ = try type.json(value) }

    func run() async throws {
        let json = try type.json(value)
        try await options.withConnection { connection in
            let write = JSONValue.members([
                "key": .string(key), "value": json, "version": ifVersion.map { .string($0) },
            ])
            let response = try await connection.send(
                try connection.preferencesRequest("set", .members(["writes": .array([write])]))
            ).checked()
            if options.json { return Console.print(response.body) }
            let usage = try response.json()["usage"]
            let keys = usage?.text("keys") ?? "?"
            let bytes = usage?.text("bytes") ?? "?"
            print("set \(key) (the store has \(keys) \(keys == "1" ? "key" : "keys") and \(bytes) bytes)")
        }
    }
}

/// The type of a value on the command line.
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
    /// - Throws: `ValidationError` that says what is expected.
    func json(_ text: String) throws -> JSONValue {
        switch self {
        case .json:
            do throws(JSONError) {
                return try JSONParser.parse(Array(text.utf8)).asPropertyList
            } catch {
                throw ValidationError("the value is not JSON: \(error)")
            }
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
    /// Plain JSON as a property list's: every object states its type, so that no member is taken for a part of that form.
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
