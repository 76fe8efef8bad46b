import Hummingbird
import NIOCore
import RecordModel
import Service

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
