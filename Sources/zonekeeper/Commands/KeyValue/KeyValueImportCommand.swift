import ArgumentParser
import Foundation
import RecordModel
import ServiceClient

/// `zonekeeper kv import`
struct KeyValueImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Set the keys of a file, all or none.",
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

    func run() async throws {
        let preferences = try PreferenceFile(try read(), format: format)
        try await options.withConnection { connection in
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

    private func read() throws -> [UInt8] {
        let data =
            file == "-"
            ? try FileHandle.standardInput.readToEnd() ?? Data() : FileManager.default.contents(atPath: file)
        guard let data else { throw CommandFailure("\(file) cannot be read") }
        return Array(data)
    }
}

/// What an import does to a store.
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
            switch current[entry.key] {
            case entry.value?: unchanged += 1
            case nil: changes.append(Change(key: entry.key, kind: .new, value: entry.value))
            case _?: changes.append(Change(key: entry.key, kind: .changed, value: entry.value))
            }
        }
        guard replaces else { return }
        changes += current.entries.filter { file[$0.key] == nil }.map { Change(key: $0.key, kind: .deleted) }
    }

    /// The one request that does it.
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
