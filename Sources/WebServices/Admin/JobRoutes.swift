import Directory
import Hummingbird
import NIOCore
import RecordModel
import Service

/// `/admin/1/jobs`: work on all matches of a query.
struct JobRoutes {
    let request: AdminRequest
    private var jobs: JobAdministration { request.administration.jobs }

    /// What a result holds in memory on its way.
    private static let heldBytes = 2 * JobAdministration.partBytes

    func count() async throws(RequestFailure) -> Reply { try await begin(.count) }

    func export() async throws(RequestFailure) -> Reply { try await begin(.export) }

    func deleteMatches() async throws(RequestFailure) -> Reply { try await begin(.delete) }

    private func begin(_ kind: Job.Kind) async throws(RequestFailure) -> Reply {
        let json = try request.json()
        let form = try relay(
            QueryRecordsRequest(
                json: .object(["query", "zoneID"].compactMap { key in json.given(key).map { .init(key, $0) } })))
        let database = try json.one(of: "database", Scope.init) ?? .public
        var wanted = JobAdministration.Wanted(kind, of: form, database, in: try json.schemaKey())
        if kind == .export {
            wanted.format = try json.one(of: "format", Job.Format.init) ?? .json
        } else if json["format"] != nil {
            throw .badRequest("format: only an export has one")
        }
        let acting = try request.call.acting(request.administration.access)
        return reply(try await jobs.begin(wanted, as: acting))
    }

    private func reply(_ job: Job) -> Reply { Reply { $0.members(of: job) } }

    /// Those of all nodes, the newest first.
    func list() async throws(RequestFailure) -> Reply {
        let (jobs, nodes) = try await jobs.list(of: request.url.text("container"), try request.url.environment())
        return Reply { writer in
            writer.list("jobs", jobs) { $1.members(of: $0) }
            writer.list("nodes", nodes) { $1.members(of: $0) }
        }
    }

    /// How far a job is; with `wait` at its end, or after a second.
    func state() async throws(RequestFailure) -> Reply {
        let (id, waits) = (try id(), try request.url.flag("wait"))
        return reply(waits ? try await jobs.followed(id) : try await jobs.job(id))
    }

    func cancel() async throws(RequestFailure) -> Reply { reply(try await jobs.cancel(try id())) }

    private func id() throws(RequestFailure) -> JobID {
        if let id = JobID(try request.url.need("id")) { return id }
        throw .badRequest("id: a job's id is expected, as its beginning answered it")
    }

    /// An export's file, or a part of it, so that what a broken connection lacks is fetched from any node.
    func result() async throws(RequestFailure) -> Reply {
        let id = try id()
        let job = try await jobs.exported(id)
        let (offset, length) = (try request.url.number("offset"), try request.url.number("length"))
        let begin = offset ?? 0
        guard begin <= job.bytes else { throw .badRequest("offset: the result has \(job.bytes) bytes") }
        let end = begin + min(length ?? job.bytes, job.bytes - begin)
        // Whether it can be had, the first part tells.
        let first = try await jobs.part(of: id, at: begin)
        let held = try request.responder.holdTransfer(request.call, of: job.container, bytes: Self.heldBytes)
        let format = job.format ?? .json
        let isWhole = offset == nil && length == nil
        var reply = Reply(body: [], contentType: isWhole ? format.contentType : "application/octet-stream")
        reply.headers = Self.headers(ofFile: "\(job.recordType).\(format.fileExtension)")
        reply.streamBytes = Int(clamping: end - begin)
        reply.stream = { [jobs] writer in
            var (part, place) = (first[...], begin)
            while place < end {
                // Of less than was told the client sees that it is not whole.
                guard !part.isEmpty else { throw RequestFailure.tryAgain("the result ended early") }
                part = part.prefix(Int(clamping: end - place))
                try await writer.write(ByteBuffer(bytes: part))
                place += UInt64(part.count)
                if place < end { part = try await jobs.part(of: id, at: place)[...] }
            }
            try await writer.finish(nil)
            withExtendedLifetime(held) {}
        }
        return reply
    }

    /// Of a file that a browser is to save and to do nothing else with.
    static func headers(ofFile name: String) -> [(name: String, value: String)] {
        [
            ("content-disposition", "attachment; filename=\"\(WebResponder.fileName(name))\""),
            ("content-security-policy", "default-src 'none'; sandbox"), ("x-content-type-options", "nosniff"),
        ]
    }
}

extension Job.Format {
    var contentType: String {
        switch self {
        case .csv: "text/csv; charset=UTF-8"
        case .json: "application/json; charset=UTF-8"
        case .lines: "application/x-ndjson; charset=UTF-8"
        }
    }

    var fileExtension: String { self == .lines ? "jsonl" : rawValue }
}

extension JSONValue {
    /// A member that names a case; nil where it is missing.
    fileprivate func one<Value: CaseIterable & RawRepresentable<String>>(
        of name: String, _ make: (String) -> Value?
    ) throws(RequestFailure) -> Value? {
        guard let given = given(name) else { return nil }
        if let value = given.string.flatMap(make) { return value }
        let names = Value.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        throw .badRequest("\(name): one of \(names) is expected")
    }
}

extension JSONWriter {
    /// A job; what is not known of a lost one, or is not shown of another's, is left out.
    fileprivate mutating func members(of job: Job) {
        member("id", job.id.text)
        member("node", count: job.id.node)
        member("state", job.phase.rawValue)
        member("began", integer: job.began)
        optional("ended", integer: job.ended)
        if let problem = job.problem {
            object("problem") { writer in
                writer.member("code", problem.code.rawValue)
                writer.member("reason", problem.reason)
            }
        }
        guard job.phase != .lost else { return }
        member("kind", job.kind.rawValue)
        member("container", job.container)
        member("environment", job.environment.rawValue)
        member("database", job.database.rawValue)
        if !job.recordType.isEmpty {
            member("zone", job.zone)
            member("recordType", job.recordType)
            member("filters", count: job.filters)
        }
        if !job.user.isEmpty { member("user", job.user) }
        member("by", job.by)
        member("records", count: job.records)
        member("left", count: job.left)
        if !job.waiting.isEmpty { member("waiting", job.waiting) }
        guard let format = job.format else { return }
        member("format", format.rawValue)
        member("bytes", count: job.bytes)
        optional("expires", integer: job.expires)
    }
}
