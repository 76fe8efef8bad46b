import Cluster
import Directory
import RecordModel
import Service
import Wire

extension AdminRequest {
    private static let auditRecordsPerPageMax: UInt64 = 1_000

    /// Records of an audit log, oldest first, with what is needed to verify their chain.
    func auditLog() async throws(RequestFailure) -> Reply {
        let after = try number("after") ?? 0
        let limit = try number("limit") ?? 500
        guard limit > 0 else { throw RequestFailure(.badRequest, "limit: at least 1 is expected") }
        let read = DirectoryRead.audit(
            try auditLogParameter(), after: after, limit: min(limit, Self.auditRecordsPerPageMax))
        let answer: [UInt8]
        do throws(ClusterError) {
            answer = try await context.service.node.router.read(read.encoded(), from: .directory, by: deadline)
        } catch {
            throw RequestFailure(error)
        }
        let page = try unpacked(answer, as: AuditPage.self)
        let records = page.records.filter(try visible())
        return Reply { writer in
            writer.key("records")
            writer.array { writer in for record in records { writer.object { Self.write(record, to: &$0) } } }
            writer.member("moreComing", page.moreComing)
            writer.member("firstSequence", integer: Int64(clamping: page.firstSequence))
            writer.member("firstPreviousHash", Hex.encode(page.firstPreviousHash))
        }
    }

    /// Which records the administrator may see: an admin of the cluster all, anybody else what they did themselves.
    private func visible() throws(RequestFailure) -> (AuditRecord) -> Bool {
        let access = try access
        if access.role == .admin, access.containers == nil { return { _ in true } }
        var token = access
        token.session = nil
        let own: Set = [token.actor, "\(token.actor) (console)"]
        return { own.contains($0.event.origin.actor) }
    }

    /// The log that the parameter names; that of changes where it is missing.
    private func auditLogParameter() throws(RequestFailure) -> AuditLog {
        guard let name = url["log"] else { return .changes }
        guard let log = AuditLog(rawValue: name) else {
            let names = AuditLog.allCases.map { "'\($0.rawValue)'" }.joined(separator: " or ")
            throw RequestFailure(.badRequest, "log: \(names) is expected, not '\(name)'")
        }
        return log
    }

    private func number(_ name: String) throws(RequestFailure) -> UInt64? {
        guard let text = url[name] else { return nil }
        guard let number = UInt64(text) else {
            throw RequestFailure(.badRequest, "\(name): a whole number is expected, not '\(text)'")
        }
        return number
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
