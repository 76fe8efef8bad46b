import ArgumentParser
import Foundation
import RecordModel
import ServiceClient

struct KeyValueExportCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write all keys and values to a file, or to standard output.",
        discussion:
            "JSON keeps every type. A property list has whole seconds in times, and no control characters in texts.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The file; `-` for standard output. It is made for its owner alone.")
    var file = "-"

    @Option(help: "json or plist.")
    var format = PreferenceFormat.json

    func run(on connection: Connection) async throws {
        let entries = try await connection.preferences().entries
        let preferences = try PreferenceFile(values: entries.map { ($0.text("key"), $0["value"] ?? .null) })
        let bytes = try preferences.encoded(format)
        guard file != "-" else { return Console.print(bytes) }
        try PrivateFile.replace(file, with: String(decoding: bytes, as: UTF8.self))
        Console.note("exported \(preferences.entries.count) \(preferences.entries.count == 1 ? "key" : "keys")")
    }
}

struct KeyValueImportCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Set the keys of a file, all or none.",
        discussion: """
            The file is JSON as `kv export` writes it, or a property list. Keys that have the file's value already are \
            not written, so devices hear of what changes and of nothing else.
            """)

    @OptionGroup var options: ClientOptions

    @Argument(help: "The file; `-` for standard input.")
    var file: String

    @Option(help: "json or plist (found out from the file).")
    var format: PreferenceFormat?

    @Flag(help: "Also delete the keys that the file does not have.")
    var replace = false

    @Flag(help: "Show what would change, and change nothing.")
    var dryRun = false

    func run(on connection: Connection) async throws {
        let preferences = try PreferenceFile(try InputFile.bytes(of: file), format: format)
        let entries = try await connection.preferences().entries
        let current = try PreferenceFile(values: entries.map { ($0.text("key"), $0["value"] ?? .null) })
        let plan = PreferenceImport(preferences, into: current, replaces: replace)
        if !dryRun, !plan.changes.isEmpty {
            let request = try connection.preferencesRequest("set", plan.batch)
            guard request.body.count <= Limits.requestBodyBytesMax else {
                throw CommandFailure("the file is too large for a store, which takes \(Limits.storeBytesMax) bytes")
            }
            _ = try await connection.send(request).checked()
        }
        if options.json { return Console.print(plan.json(isDryRun: dryRun).serialized()) }
        if dryRun { print(plan.table, terminator: plan.changes.isEmpty ? "" : "\n") }
        print((dryRun ? "would be imported: " : "imported: ") + plan.summary)
    }
}

struct PreferenceImport: Hashable {
    enum Kind: String, Hashable {
        case new
        case changed
        case deleted
    }

    struct Change: Hashable {
        var key: String
        var kind: Kind
        /// Nil for a deletion.
        var value: PropertyValue?
    }

    /// Ascending by key in byte order; the deletions after the others.
    private(set) var changes: [Change] = []
    /// Keys that have the file's value already.
    private(set) var unchanged = 0

    /// - Parameter replaces: whether the store is to have the file's keys and no others.
    init(_ file: PreferenceFile, into current: PreferenceFile, replaces: Bool) {
        for entry in file.entries {
            guard let value = current[entry.key] else {
                changes.append(Change(key: entry.key, kind: .new, value: entry.value))
                continue
            }
            if value.isSame(as: entry.value) {
                unchanged += 1
            } else {
                changes.append(Change(key: entry.key, kind: .changed, value: entry.value))
            }
        }
        guard replaces else { return }
        changes += current.entries.filter { file[$0.key] == nil }.map { Change(key: $0.key, kind: .deleted) }
    }

    var batch: JSONValue {
        .members([
            "writes": .array(
                changes.map { change in
                    .members(["key": .string(change.key), "value": change.value?.json ?? .null])
                })
        ])
    }

    private func count(_ kind: Kind) -> Int { changes.count { $0.kind == kind } }

    /// Such as `2 new, 1 changed, 0 deleted, 5 unchanged`.
    var summary: String {
        "\(count(.new)) new, \(count(.changed)) changed, \(count(.deleted)) deleted, \(unchanged) unchanged"
    }

    var table: String {
        if changes.isEmpty { return "" }
        var table = Table("KEY", "WHAT", "VALUE")
        for change in changes {
            let value = (change.value?.json["value"] ?? .null).simplified.plainText
            table.add([change.key, change.kind.rawValue, value.shortened(to: 80)])
        }
        return table.text
    }

    func json(isDryRun: Bool) -> JSONValue {
        func keys(_ kind: Kind) -> JSONValue {
            .array(changes.filter { $0.kind == kind }.map { .string($0.key) })
        }
        return .members([
            "new": keys(.new), "changed": keys(.changed), "deleted": keys(.deleted),
            "unchanged": .integer(Int64(unchanged)), "dryRun": .bool(isDryRun),
        ])
    }
}

extension PropertyValue {
    /// `{"value": ..., "type": ...}`.
    fileprivate var json: JSONValue {
        var writer = JSONWriter()
        write(to: &writer)
        // What was written is JSON.
        return (try? JSONParser.parse(writer.bytes)) ?? .null
    }
}

enum PreferenceFormat: String, CaseIterable, ExpressibleByArgument {
    /// `{"values": {"theme": {"value": "dark", "type": "STRING"}}}`: every type is kept.
    case json
    /// An XML property list, as `defaults` and Xcode read it: times have whole seconds.
    case plist
}

/// A store's keys and values as a file has them.
struct PreferenceFile: Hashable {
    /// Ascending by key in byte order; no key twice.
    private(set) var entries: [PropertyValue.Entry]

    /// - Throws: `CommandFailure` where a key is there twice.
    init(_ entries: [PropertyValue.Entry]) throws(CommandFailure) {
        guard case .dictionary(let sorted)? = PropertyValue(sorting: entries) else {
            throw CommandFailure("a key is there twice")
        }
        self.entries = sorted
    }

    /// The entries of an answer, or of a file of the format `json`.
    init(values members: [(key: String, value: JSONValue)]) throws(CommandFailure) {
        var entries: [PropertyValue.Entry] = []
        for (key, json) in members {
            do throws(ServiceError) {
                entries.append(PropertyValue.Entry(key: key, value: try PropertyValue(json: json, path: key)))
            } catch {
                throw CommandFailure(error.reason)
            }
        }
        try self.init(entries)
    }

    subscript(key: String) -> PropertyValue? {
        // By bytes: Swift takes two spellings of one letter for the same key, and the store does not.
        entries.first { $0.key.utf8.elementsEqual(key.utf8) }?.value
    }

    /// - Parameter format: nil for what the bytes look like.
    init(_ bytes: [UInt8], format: PreferenceFormat?) throws(CommandFailure) {
        let first = bytes.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        switch format ?? (first == UInt8(ascii: "{") ? .json : .plist) {
        case .json: try self.init(json: bytes)
        case .plist: try self.init(plist: bytes)
        }
    }

    /// The file's bytes.
    /// - Throws: `CommandFailure` where the format has no form for a value.
    func encoded(_ format: PreferenceFormat) throws(CommandFailure) -> [UInt8] {
        switch format {
        case .json: json
        case .plist: try plist()
        }
    }

    // MARK: JSON

    private init(json bytes: [UInt8]) throws(CommandFailure) {
        let json = try Result { () throws(JSONError) in try JSONParser.parse(bytes) }
            .mapError { CommandFailure("the file is not JSON: \($0)") }.get()
        guard case .object(let members)? = json["values"] else {
            throw CommandFailure(
                #"the file has no object "values": such as {"values": {"theme": {"value": "dark", "type": "STRING"}}}"#)
        }
        try self.init(values: members.map { ($0.key, $0.value) })
    }

    private var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.key("values")
            writer.object { writer in
                for entry in entries {
                    writer.key(entry.key)
                    entry.value.write(to: &writer)
                }
            }
        }
        return writer.bytes
    }

    // MARK: Property lists

    private init(plist bytes: [UInt8]) throws(CommandFailure) {
        let list: Any
        do {
            list = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
        } catch {
            throw CommandFailure("the file is no property list: \(error)")
        }
        guard let members = list as? [String: Any] else {
            throw CommandFailure("the property list is no dictionary")
        }
        var entries: [PropertyValue.Entry] = []
        for (key, value) in members {
            entries.append(PropertyValue.Entry(key: key, value: try PropertyValue(plist: value, path: key)))
        }
        try self.init(entries)
    }

    private func plist() throws(CommandFailure) -> [UInt8] {
        var members: [String: Any] = [:]
        for entry in entries {
            guard members.updateValue(try entry.value.plist(path: entry.key), forKey: entry.key) == nil else {
                throw CommandFailure("'\(entry.key)' is there in two spellings, and a property list takes them for one")
            }
        }
        do {
            return Array(try PropertyListSerialization.data(fromPropertyList: members, format: .xml, options: 0))
        } catch {
            throw CommandFailure("the property list cannot be written: \(error)")
        }
    }
}

extension PropertyValue {
    /// A value as Foundation reads it from a property list.
    fileprivate init(plist value: Any, path: String) throws(CommandFailure) {
        // Not a cast: numbers 0 and 1 would pass for Booleans.
        if type(of: value) == Bool.self, let flag = value as? Bool {
            self = .bool(flag)
        } else if let text = value as? String {
            self = .string(text)
        } else if let data = value as? Data {
            self = .data(Array(data))
        } else if let date = value as? Date {
            let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
            guard let number = Int64(exactly: milliseconds) else {
                throw CommandFailure("\(path): the time is too far from now")
            }
            self = .date(number)
        } else if let number = value as? NSNumber {
            self = try .number(number, path: path)
        } else if let members = value as? [Any] {
            var values: [PropertyValue] = []
            for (position, member) in members.enumerated() {
                values.append(try PropertyValue(plist: member, path: "\(path)[\(position)]"))
            }
            self = .array(values)
        } else if let members = value as? [String: Any] {
            var entries: [Entry] = []
            for (key, member) in members {
                entries.append(Entry(key: key, value: try PropertyValue(plist: member, path: "\(path).\(key)")))
            }
            guard let sorted = PropertyValue(sorting: entries) else {
                throw CommandFailure("\(path): a key is there twice")
            }
            self = sorted
        } else {
            throw CommandFailure("\(path): preferences have no values of this kind")
        }
    }

    private static func number(_ number: NSNumber, path: String) throws(CommandFailure) -> PropertyValue {
        switch String(cString: number.objCType) {
        case "d", "f": return .double(number.doubleValue)
        default:
            guard number.compare(NSNumber(value: Int64.max)) != .orderedDescending else {
                throw CommandFailure("\(path): the number has more than 63 bits")
            }
            return .int64(number.int64Value)
        }
    }

    fileprivate func plist(path: String) throws(CommandFailure) -> Any {
        switch self {
        case .string(let text):
            guard text.unicodeScalars.allSatisfy({ $0.value >= 0x20 || [0x09, 0x0A, 0x0D].contains($0.value) }) else {
                throw CommandFailure(
                    "\(path): the text has control characters, for which XML has no form; use --format json")
            }
            return text
        case .data(let bytes): return Data(bytes)
        case .int64(let number): return NSNumber(value: number)
        case .double(let number): return NSNumber(value: number)
        case .date(let milliseconds): return Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
        case .bool(let flag): return flag
        case .array(let members):
            var values: [Any] = []
            for (position, member) in members.enumerated() {
                values.append(try member.plist(path: "\(path)[\(position)]"))
            }
            return values
        case .dictionary(let entries):
            var values: [String: Any] = [:]
            for entry in entries { values[entry.key] = try entry.value.plist(path: "\(path).\(entry.key)") }
            return values
        }
    }
}
