import ArgumentParser
import RecordModel

/// `zonekeeper kv`
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

/// Keys and values as people read them.
enum KeyValueTable {
    static func text(_ entries: [JSONValue]) -> String {
        var table = Table("KEY", "TYPE", "VALUE", "MODIFIED")
        for entry in entries {
            let isDeleted = entry["deleted"] == .bool(true)
            table.add([
                entry.text("key"), entry["value"]?.text("type") ?? "",
                isDeleted ? "(deleted)" : (entry["value"]?["value"] ?? .null).simplified.plainText.shortened(to: 80),
                entry.time("modified"),
            ])
        }
        return table.text
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
