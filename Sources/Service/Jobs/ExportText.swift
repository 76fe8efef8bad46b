import Foundation
import RecordModel

/// Writes records as an export has them, page by page.
package struct ExportText: Sendable {
    let format: Job.Format
    /// The names of a table's columns after that of the record's name.
    let columns: [String]
    private var isFirst = true

    /// - Parameter type: its fields are the columns, those of the system apart.
    init(_ format: Job.Format, of type: RecordType) {
        self.format = format
        columns = type.fields.filter { !$0.isSystem }.map(\.name)
    }

    /// What comes before the first record.
    var head: [UInt8] {
        switch format {
        case .csv: Self.line(["recordName"] + columns)
        case .json: Array("[".utf8)
        case .lines: []
        }
    }

    /// What comes after the last one.
    var end: [UInt8] { format == .json ? Array("\n]\n".utf8) : [] }

    /// - Parameter records: as answers have them, numbers as strings.
    mutating func page(_ records: [JSONValue]) -> [UInt8] {
        var bytes: [UInt8] = []
        for record in records {
            let record = Self.withoutLinks(record)
            switch format {
            case .csv: bytes += Self.line([record["recordName"]?.string ?? ""] + columns.map { cell(of: record, $0) })
            case .json: bytes += Array((isFirst ? "\n" : ",\n").utf8) + record.serialized()
            case .lines: bytes += record.serialized() + [UInt8(ascii: "\n")]
            }
            isFirst = false
        }
        return bytes
    }

    /// A record without the URLs of its files: anybody who has one gets the file, until it expires.
    private static func withoutLinks(_ record: JSONValue) -> JSONValue {
        switch record {
        case .object(let members):
            .object(
                members.filter { $0.key != "downloadURL" || $0.value.string == nil }.map {
                    JSONValue.Member($0.key, withoutLinks($0.value))
                })
        case .array(let members): .array(members.map(withoutLinks))
        default: record
        }
    }

    private func cell(of record: JSONValue, _ name: String) -> String {
        guard let field = record["fields"]?[name], let value = field["value"] else { return "" }
        return Self.text(value, type: field["type"]?.string ?? "")
    }

    /// A line of a table.
    package static func line(_ cells: [String]) -> [UInt8] {
        Array((cells.map(quoted).joined(separator: ",") + "\r\n").utf8)
    }

    /// A value as a cell has it: lists as JSON, times as such, places as `latitude,longitude`, references as the name
    /// of their record. A place or a reference of which that is not all is its JSON object.
    static func text(_ value: JSONValue, type: String) -> String {
        if let members = value.array {
            let base = type.hasSuffix("_LIST") ? String(type.dropLast("_LIST".count)) : type
            let list = members.map { member in
                if case .object = member { JSONValue.string(text(member, type: base)) } else { member }
            }
            return String(decoding: JSONValue.array(list).serialized(), as: UTF8.self)
        }
        if type == "TIMESTAMP", let milliseconds = value.string.flatMap({ Int64($0) }) { return time(milliseconds) }
        if case .object(let members) = value, let short = short(value, members) { return short }
        return value.string ?? String(decoding: value.serialized(), as: UTF8.self)
    }

    /// A place, a reference or a file without JSON; nil where that would not be all of it.
    private static func short(_ value: JSONValue, _ members: [JSONValue.Member]) -> String? {
        if let latitude = value["latitude"], let longitude = value["longitude"] {
            guard members.count == 2 else { return nil }
            return "\(text(latitude, type: "DOUBLE")),\(text(longitude, type: "DOUBLE"))"
        }
        guard let name = value["recordName"]?.string else { return value["size"].map { text($0, type: "") } ?? "" }
        let isAll = members.allSatisfy { $0.key == "recordName" || $0.key == "action" && $0.value.string == "NONE" }
        // A name that begins as an object does would be read as one.
        return isAll && !name.hasPrefix("{") ? name : nil
    }

    /// A time that spreadsheets and browsers read; beyond the years 0 to 9999 its milliseconds since 1970.
    package static func time(_ milliseconds: Int64) -> String {
        guard (-62_167_219_200_000...253_402_300_799_999).contains(milliseconds) else { return String(milliseconds) }
        let rest = (milliseconds % 1_000 + 1_000) % 1_000
        let seconds = Date(timeIntervalSince1970: Double((milliseconds - rest) / 1_000)).formatted(.iso8601)
        let fraction = String(rest + 1_000).dropFirst()
        return "\(seconds.dropLast()).\(fraction)Z"
    }

    /// A cell that keeps its text, and that spreadsheets do not take for a formula.
    static func quoted(_ text: String) -> String {
        let guarded = isFormula(text) ? "'\(text)" : text
        guard guarded.utf8.contains(where: { [0x22, 0x2C, 0x0A, 0x0D].contains($0) }) else { return guarded }
        return "\"\(guarded.replacingOccurrences(of: "\"", with: "\"\""))\""
    }

    /// Marks before the sign are an earlier guard, or the record's own: one more keeps them apart when it is read.
    private static func isFormula(_ text: String) -> Bool {
        let first = text.utf8.first { $0 != UInt8(ascii: "'") }
        guard let first, [0x3D, 0x2B, 0x2D, 0x40, 0x09, 0x0D].contains(first) else { return false }
        return !isNumber(text)
    }

    private static func isNumber(_ text: String) -> Bool {
        let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
        let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
        return (1...2).contains(parts.count)
            && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(\.isASCIIDigit) }
    }
}
