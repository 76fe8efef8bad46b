import Directory
import RecordModel
import Service

/// `/admin/1/act-as`: times for which administrators are let in as users.
struct ActingRoutes {
    let request: AdminRequest
    private var acting: ActingAdministration { request.administration.acting }

    func begin() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        let entry = try await acting.begin(
            as: try json.text("user"), in: try json.schemaKey(), reason: try Self.reason(json),
            mayWrite: try json.flag("write") ?? false, minutes: try Self.minutes(json))
        return Reply { Self.write(entry, to: &$0) }
    }

    private static func reason(_ json: JSONValue) throws(RequestFailure) -> String {
        let lengthMax = ActingSession.reasonLengthMax
        let given = try json.text("reason")
        guard given.count <= lengthMax, given.contains(where: { !$0.isWhitespace }),
            !given.contains(where: { $0.isNewline || $0 == "\0" })
        else { throw .badRequest("reason: 1 to \(lengthMax) characters on one line are expected") }
        return given
    }

    private static func minutes(_ json: JSONValue) throws(RequestFailure) -> Int64? {
        guard let given = json.given("minutes") else { return nil }
        guard case .integer(let number) = given, (1...ActingSession.minutesMax).contains(number) else {
            throw .badRequest("minutes: 1 to \(ActingSession.minutesMax) is expected")
        }
        return number
    }

    func list() async throws(RequestFailure) -> Reply {
        let entries = try await acting.list()
        return Reply { writer in writer.list("acting", entries) { Self.write($0, to: &$1) } }
    }

    func end() async throws(RequestFailure) -> Reply {
        let id = try request.url.need("id")
        try await acting.end(id)
        return .done("ended", "id", id)
    }

    private static func write(_ entry: ActingAdministration.Entry, to writer: inout JSONWriter) {
        writer.member("id", entry.id)
        writer.members(of: entry.session.schemaKey)
        writer.member("user", entry.user)
        writer.member("userRecordName", entry.userRecordName)
        // The token that every node has in a file names nobody.
        let administrator = entry.session.administrator
        writer.member("administrator", administrator.isEmpty ? AuditOrigin.administrator : administrator)
        writer.member("reason", entry.session.reason)
        writer.member("write", entry.session.mayWrite)
        writer.member("began", integer: entry.began)
        writer.member("expires", integer: entry.session.expires)
        writer.member("own", entry.isOwn)
    }
}
