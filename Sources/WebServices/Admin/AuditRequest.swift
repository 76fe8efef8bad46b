import Cluster
import Directory
import RecordModel
import Service
import Wire

/// `GET audit`.
struct AuditRequest {
    let request: AdminRequest

    private static let recordsPerPageMax: UInt64 = 1_000

    /// Records of an audit log, oldest or newest first: those that are looked for, and that the administrator may see.
    func respond() async throws(RequestFailure) -> Reply {
        let search = try search()
        if search.isOfAll, search.before == nil { return try await page(search) }
        let answer = try await read(.search(search))
        guard let findings = try? AuditFindings(decoding: answer) else {
            throw RequestFailure(
                ServiceError(
                    .tryAgainLater, "the audit log can be searched once every node runs this build",
                    retryAfterSeconds: 1))
        }
        let span = findings.span
        return Reply { writer in
            Self.write(findings.records, to: &writer)
            writer.member("moreComing", !span.isEnd)
            if !span.isEnd { Self.write(cursor: search.before == nil ? span.last : span.first, to: &writer) }
            writer.key("examined")
            writer.object { writer in
                writer.member("records", integer: Int64(span.count))
                writer.member("first", integer: Int64(clamping: span.first))
                writer.member("last", integer: Int64(clamping: span.last))
                if let broken = span.firstBroken { writer.member("firstBroken", integer: Int64(clamping: broken)) }
            }
        }
    }

    /// Every record of a page, the oldest first, with what is needed to verify their chain.
    private func page(_ search: AuditSearch) async throws(RequestFailure) -> Reply {
        let read = DirectoryRead.audit(search.log, after: search.after, limit: search.limit)
        let page = try unpacked(try await self.read(read), as: AuditPage.self)
        return Reply { writer in
            Self.write(page.records, to: &writer)
            writer.member("moreComing", page.moreComing)
            if page.moreComing, let last = page.records.last { Self.write(cursor: last.sequence, to: &writer) }
            writer.member("firstSequence", integer: Int64(clamping: page.firstSequence))
            writer.member("firstPreviousHash", Hex.encode(page.firstPreviousHash))
        }
    }

    private func read(_ read: DirectoryRead) async throws(RequestFailure) -> [UInt8] {
        do throws(ClusterError) {
            return try await request.context.service.node.router.read(
                read.encoded(), from: .directory, by: request.deadline)
        } catch {
            throw RequestFailure(error)
        }
    }

    /// What the parameters ask for.
    private func search() throws(RequestFailure) -> AuditSearch {
        let limit = try number("limit") ?? 500
        guard limit > 0 else { throw RequestFailure(.badRequest, "limit: at least 1 is expected") }
        var search = AuditSearch(of: try log(), limit: min(limit, Self.recordsPerPageMax))
        search.after = try number("after") ?? 0
        search.before = try number("before")
        switch request.url["order"] {
        case nil, "oldest":
            guard search.before == nil else {
                throw RequestFailure(.badRequest, "before: it is for 'order=newest' only")
            }
        case "newest": search.before = search.before ?? UInt64(Int64.max)
        case let other?:
            throw RequestFailure(.badRequest, "order: 'oldest' or 'newest' is expected, not '\(other)'")
        }
        search.visibleActors = try visibleActors()
        search.actor = request.url["actor"]
        search.action = request.url["action"]
        search.text = request.url["containing"]
        return search
    }

    /// Whose records the administrator may see: an admin of the cluster all, anybody else what they did themselves.
    private func visibleActors() throws(RequestFailure) -> [String]? {
        var access = try request.access
        if access.role == .admin, access.containers == nil { return nil }
        access.session = nil
        return [access.actor, "\(access.actor) (console)"]
    }

    /// The log that the parameter names; that of changes where it is missing.
    private func log() throws(RequestFailure) -> AuditLog {
        guard let name = request.url["log"] else { return .changes }
        guard let log = AuditLog(rawValue: name) else {
            let names = AuditLog.allCases.map { "'\($0.rawValue)'" }.joined(separator: " or ")
            throw RequestFailure(.badRequest, "log: \(names) is expected, not '\(name)'")
        }
        return log
    }

    private func number(_ name: String) throws(RequestFailure) -> UInt64? {
        guard let text = request.url[name] else { return nil }
        guard let number = UInt64(text) else {
            throw RequestFailure(.badRequest, "\(name): a whole number is expected, not '\(text)'")
        }
        return number
    }

    /// Where the log goes on, in the same order.
    private static func write(cursor: UInt64, to writer: inout JSONWriter) {
        writer.member("cursor", integer: Int64(clamping: cursor))
    }

    private static func write(_ records: [AuditRecord], to writer: inout JSONWriter) {
        writer.key("records")
        writer.array { writer in for record in records { writer.object { write(record, to: &$0) } } }
    }

    private static func write(_ record: AuditRecord, to writer: inout JSONWriter) {
        let event = record.event
        writer.member("sequence", integer: Int64(clamping: record.sequence))
        writer.member("time", integer: event.origin.time)
        writer.member("actor", event.origin.actor)
        writer.member("action", event.action)
        writer.member("subject", event.subject)
        writer.member("outcome", event.outcome)
        writer.member("requestID", event.origin.requestID)
        writer.member("address", event.origin.address)
        writer.member("count", integer: Int64(clamping: event.count))
        writer.member("previousHash", Hex.encode(record.previousHash))
        writer.member("hash", Hex.encode(record.hash))
    }
}
