import Hummingbird
import NIOCore
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

/// A list of the administration as a file: its pages one after another, of which one at a time is in memory.
struct ListExportReply {
    let request: AdminRequest
    /// The file's, without what comes after the dot.
    let name: String
    /// A page of the list, where the one before said that it goes on.
    let page: @Sendable (_ place: String?) async throws(RequestFailure) -> Reply

    /// What a page holds in memory, give or take, as an answer and as a value.
    private static let heldBytes = 16 << 20

    func reply(_ kind: ListExport.Kind) async throws(RequestFailure) -> Reply {
        let format = try format()
        // Whether it can be had, the first page tells.
        let first = try await page(nil)
        let access = try request.administration.access
        let held = try request.responder.holdTransfer(
            request.call, of: request.url.text("container") ?? "", bytes: Self.heldBytes)
        var reply = Reply(body: [], contentType: format.ofJob.contentType)
        reply.headers = JobRoutes.headers(ofFile: "\(name).\(format.ofJob.fileExtension)")
        reply.stream = { writer in
            var export = ListExport(kind, as: format)
            try await writer.write(ByteBuffer(bytes: export.head))
            var json = try first.body.json()
            while true {
                try await writer.write(ByteBuffer(bytes: export.page(json)))
                guard let place = Self.place(after: json) else { break }
                // An error ends the connection, so that the client sees that the file is not whole.
                try await recheck(access)
                json = try await page(place).body.json()
            }
            try await writer.write(ByteBuffer(bytes: export.end()))
            try await writer.finish(nil)
            withExtendedLifetime(held) {}
        }
        return reply
    }

    private func format() throws(RequestFailure) -> ListExport.Format {
        guard let text = request.url.text("format") else { return .csv }
        if let format = ListExport.Format(rawValue: text) { return format }
        throw .badRequest("format: 'csv' or 'lines' is expected, not '\(text)'")
    }

    /// Where a list goes on; nil at its end.
    private static func place(after page: JSONValue) -> String? {
        if let next = page["next"]?.string { return next }
        guard page["moreComing"] == .bool(true), case .integer(let cursor)? = page["cursor"] else { return nil }
        return String(cursor)
    }

    /// - Throws: where the client is gone, or may see less than when the file began.
    private func recheck(_ access: AdministratorAccess) async throws(RequestFailure) {
        if request.call.clientDisconnect?.isOver == true { throw .tryAgain("the client has gone") }
        let now = try await request.recheck()
        guard now.role == access.role, now.containers == access.containers else {
            throw .accessDenied("the administrator's role was changed meanwhile")
        }
    }
}
