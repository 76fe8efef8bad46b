import Directory
import RecordModel
import Service

/// `GET audit`: records of an audit log, oldest or newest first; `GET audit/export`: all of them as a file.
struct AuditRoutes {
    let request: AdminRequest

    private static let recordsPerPageMax: UInt64 = 1_000

    func show() async throws(RequestFailure) -> Reply { try await page(try search()) }

    func export() async throws(RequestFailure) -> Reply {
        var search = try search()
        search.limit = Self.recordsPerPageMax
        return try await ListExportReply(request: request, name: "audit-\(search.log.rawValue)") {
            [self, search] place throws(RequestFailure) in
            var search = search
            if let place = place.flatMap({ UInt64($0) }) {
                if search.before == nil { search.after = place } else { search.before = place }
            }
            return try await page(search)
        }.reply(.audit)
    }

    private func page(_ search: AuditSearch) async throws(RequestFailure) -> Reply {
        switch try await request.administration.audit.page(search) {
        case .chain(let page):
            return Reply { writer in
                writer.list("records", page.records, Self.write)
                writer.member("moreComing", page.moreComing)
                if page.moreComing, let last = page.records.last { writer.member("cursor", count: last.sequence) }
                writer.member("firstSequence", count: page.firstSequence)
                writer.member("firstPreviousHash", Hex.encode(page.firstPreviousHash))
            }
        case .findings(let findings):
            let span = findings.span
            return Reply { writer in
                writer.list("records", findings.records, Self.write)
                writer.member("moreComing", !span.isEnd)
                // Where the log goes on, in the same order.
                if !span.isEnd { writer.member("cursor", count: search.before == nil ? span.last : span.first) }
                writer.object("examined") { writer in
                    writer.member("records", count: span.count)
                    writer.member("first", count: span.first)
                    writer.member("last", count: span.last)
                    if let broken = span.firstBroken { writer.member("firstBroken", count: broken) }
                }
            }
        }
    }

    /// What the parameters ask for.
    private func search() throws(RequestFailure) -> AuditSearch {
        let url = request.url
        let limit = try url.number("limit") ?? 500
        guard limit > 0 else { throw .badRequest("limit: at least 1 is expected") }
        var search = AuditSearch(of: try log(), limit: min(limit, Self.recordsPerPageMax))
        search.after = try url.number("after") ?? 0
        search.before = try url.number("before")
        switch url["order"] {
        case nil, "oldest":
            guard search.before == nil else {
                throw .badRequest("before: it is for 'order=newest' only")
            }
        case "newest": search.before = search.before ?? UInt64(Int64.max)
        case let other?:
            throw .badRequest("order: 'oldest' or 'newest' is expected, not '\(other)'")
        }
        search.actor = url["actor"]
        search.action = url["action"]
        search.text = url["containing"]
        return search
    }

    /// The log that the parameter names; that of changes where it is missing.
    private func log() throws(RequestFailure) -> AuditLog {
        guard let name = request.url["log"] else { return .changes }
        guard let log = AuditLog(rawValue: name) else {
            let names = AuditLog.allCases.map { "'\($0.rawValue)'" }.joined(separator: " or ")
            throw .badRequest("log: \(names) is expected, not '\(name)'")
        }
        return log
    }

    private static func write(_ record: AuditRecord, to writer: inout JSONWriter) {
        let event = record.event
        writer.member("sequence", count: record.sequence)
        writer.member("time", integer: event.origin.time)
        writer.member("actor", event.origin.actor)
        writer.member("action", event.action)
        writer.member("subject", event.subject)
        writer.member("outcome", event.outcome)
        writer.member("requestID", event.origin.requestID)
        writer.member("address", event.origin.address)
        writer.member("count", count: event.count)
        writer.member("previousHash", Hex.encode(record.previousHash))
        writer.member("hash", Hex.encode(record.hash))
    }
}
