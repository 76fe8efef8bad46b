package import RecordModel
import Service

/// A list of the administration as an export has it, made of pages of its answer.
package struct ListExport: Sendable {
    /// How its entries are written.
    package enum Format: String, CaseIterable, Sendable {
        /// A table for spreadsheets.
        case csv
        /// A JSON object on each line.
        case lines

        /// What an export of records calls the same.
        var ofJob: Job.Format { self == .csv ? .csv : .lines }
    }

    /// What is listed.
    package enum Kind: String, CaseIterable, Sendable {
        /// Records of an audit log.
        case audit
        /// What a container's databases hold.
        case databases
        /// The same by zone.
        case zones
        /// The same by record type.
        case types
        /// What a container's environment used, day by day.
        case days

        /// The members of entries that are written, in this order.
        var columns: [String] {
            switch self {
            case .audit:
                [
                    "sequence", "time", "actor", "action", "subject", "outcome", "requestID", "address", "count",
                    "previousHash", "hash",
                ]
            case .databases:
                Self.owner + [
                    "records", "bytes", "assetBytes", "allottedBytes", "limitRecords", "limitBytes", "limitAssetBytes",
                    "warning",
                ]
            case .zones: Self.owner + ["name", "records", "bytes", "assetBytes"]
            case .types: Self.owner + ["name", "records", "bytes"]
            case .days:
                [
                    "environment", "time", "requests", "errors", "bytesIn", "bytesOut", "notifications", "activeUsers",
                    "publicBytes", "privateBytes", "assetBytes", "records",
                ]
            }
        }

        /// Which database it is.
        static let owner = ["environment", "scope", "user", "userRecordName"]
    }

    private let kind: Kind
    private let format: Format
    /// The database that came last: one with many zones comes in several parts, with its counters in each.
    private var database: [JSONValue.Member] = []
    /// Of that database, by type.
    private var sums: [String: (records: Int64, bytes: Int64)] = [:]

    /// One that begins.
    package init(_ kind: Kind, as format: Format) {
        self.kind = kind
        self.format = format
    }

    /// What comes before the first page.
    package var head: [UInt8] { format == .csv ? ExportText.line(kind.columns) : [] }

    /// The next page's entries.
    /// - Parameter page: the answer of the list.
    package mutating func page(_ page: JSONValue) -> [UInt8] {
        switch kind {
        case .audit: return lines(page["records"]?.array ?? [])
        case .days:
            let environment = page["environment"].map { [JSONValue.Member("environment", $0)] } ?? []
            return lines((page["days"]?.array ?? []).map { .object(environment + $0.members) })
        case .databases, .zones, .types: return (page["databases"]?.array ?? []).flatMap { part($0) }
        }
    }

    /// What comes after the last page.
    package mutating func end() -> [UInt8] {
        defer { sums = [:] }
        return lines(
            sums.sorted { $0.key < $1.key }.map { name, sum in
                .object(
                    database + [
                        .init("name", .string(name)), .init("records", .integer(sum.records)),
                        .init("bytes", .integer(sum.bytes)),
                    ])
            })
    }

    private mutating func part(_ part: JSONValue) -> [UInt8] {
        let owner = Kind.owner.compactMap { name in part[name].map { JSONValue.Member(name, $0) } }
        let isSame = owner == database
        let before = isSame ? [] : end()
        database = owner
        switch kind {
        case .databases: return isSame ? [] : lines([part])
        case .zones: return lines((part["zones"]?.array ?? []).map { .object(owner + $0.members) })
        case .types:
            for type in part["types"]?.array ?? [] {
                let name = type["name"]?.string ?? ""
                let sum = sums[name, default: (0, 0)]
                sums[name] = (sum.records + type.count("records"), sum.bytes + type.count("bytes"))
            }
            return before
        case .audit, .days: return []
        }
    }

    private func lines(_ entries: [JSONValue]) -> [UInt8] {
        entries.flatMap { entry in
            switch format {
            case .csv: ExportText.line(kind.columns.map { Self.cell(entry[$0], of: $0) })
            case .lines:
                JSONValue.object(kind.columns.compactMap { name in entry[name].map { .init(name, $0) } }).serialized()
                    + [UInt8(ascii: "\n")]
            }
        }
    }

    private static func cell(_ value: JSONValue?, of column: String) -> String {
        guard let value, !value.isNull else { return "" }
        if column == "time", case .integer(let milliseconds) = value { return ExportText.time(milliseconds) }
        return value.string ?? String(decoding: value.serialized(), as: UTF8.self)
    }
}

extension JSONValue {
    fileprivate var members: [Member] { if case .object(let members) = self { members } else { [] } }

    fileprivate func count(_ key: String) -> Int64 { if case .integer(let count)? = self[key] { count } else { 0 } }
}
