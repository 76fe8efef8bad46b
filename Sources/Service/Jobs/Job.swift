import Admission
import Authorization
import Cluster
import Directory
package import RecordModel
package import Wire

/// Names a job, and the node that runs it: so that any node knows whom to ask, and whether the job was lost with a
/// start of that one.
package struct JobID: Hashable, Sendable, WireMessage {
    /// The one that runs it.
    package var node: UInt64
    /// With the time at which the job began, by the node's clock.
    package var uuid: UUIDv7

    package init(node: UInt64, uuid: UUIDv7) {
        self.node = node
        self.uuid = uuid
    }

    /// - Returns: nil for what is no job's id.
    package init?(_ text: String) {
        guard let dash = text.firstIndex(of: "-"), let node = UInt64(text[..<dash]), node > 0,
            let uuid = UUIDv7(String(text[text.index(after: dash)...]))
        else { return nil }
        self.init(node: node, uuid: uuid)
    }

    /// What is answered to a question for a result that there is not.
    var noResult: RequestFailure {
        .notFound("job '\(text)' has no result: it is no export, is not done, or its hour is over")
    }

    /// Such as `2-0197F2A4-...`.
    package var text: String { "\(node)-\(uuid.text)" }

    package static var blank: Self { JobID(node: 0, uuid: UUIDv7(milliseconds: 0, random: (0, 0))) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &node)
        try wire.required(2, &uuid)
    }
}

/// Work on all matches of a query, and how far it is. It has nothing of what records hold.
package struct Job: Hashable, Sendable, WireMessage {
    /// What is done with the matches.
    package enum Kind: String, Hashable, Sendable, CaseIterable, WireValue {
        case count, export, delete
    }

    /// What became of it.
    package enum Phase: String, Hashable, Sendable, CaseIterable, WireValue {
        case running, done, failed, cancelled
        /// Its node was restarted, or left the cluster. What it did is done; the rest is not.
        case lost
    }

    /// What an export is written as.
    package enum Format: String, Hashable, Sendable, CaseIterable, WireValue {
        /// A line with the fields' names, then a line for each record.
        case csv
        /// One array of records as Web Services have them.
        case json
        /// Such a record on each line.
        case lines
    }

    /// Why it failed, or why some matches are left.
    package struct Problem: Hashable, Sendable, WireMessage {
        /// As answers have it.
        package var code: ErrorCode
        /// In words.
        package var reason: String

        package static var blank: Self { Problem(code: .internalError, reason: "") }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &code)
            try wire.field(2, &reason)
        }
    }

    /// Names it.
    package var id: JobID
    /// What is done.
    package var kind: Kind
    /// Where the matches are.
    package var container: String
    /// As `container`.
    package var environment: Environment
    /// As `container`.
    package var database: Scope
    /// As `container`.
    package var zone: String
    /// Of the matches.
    package var recordType: String
    /// How many filters the query has; their values are not kept with it.
    package var filters: Int
    /// The record name of the user as whom an administrator acts; empty where they act as nobody.
    package var user = ""
    /// Who began it, as the audit log names them.
    package var by: String
    /// What became of it.
    package var phase = Phase.running
    /// When it ended, in milliseconds since 1970; nil while it runs.
    package var ended: Int64?
    /// Matches that were counted, written or deleted.
    package var records: UInt64 = 0
    /// Matches that a deletion left where they are.
    package var left: UInt64 = 0
    /// Why it failed; of a deletion also why the first of the matches was left.
    package var problem: Problem?
    /// What it waits for, before it tries once more; empty where it goes on.
    package var waiting = ""
    /// Nil unless it is an export.
    package var format: Format?
    /// Of an export's result.
    package var bytes: UInt64 = 0

    /// When it began, in milliseconds since 1970.
    package var began: Int64 { id.uuid.milliseconds }
    /// Until when its result can be fetched, in milliseconds since 1970; nil where there is none.
    package var expires: Int64? {
        format != nil && phase == .done ? ended.map { $0 + JobLimits.resultMilliseconds } : nil
    }

    /// What it is about, for the audit log.
    package var subject: String {
        let matches = filters == 0 ? "all records" : "matches of \(filters) \(filters == 1 ? "filter" : "filters")"
        let whose = user.isEmpty ? "" : " of user \(user)"
        return "\(matches) of type \(recordType) in \(zone), \(database.rawValue) database\(whose) of \(container) "
            + "(\(environment.rawValue)), job \(id.text)"
    }

    package static var blank: Self {
        Job(
            id: .blank, kind: .count, container: "", environment: .development, database: .public, zone: "",
            recordType: "", filters: 0, by: "")
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &id)
        try wire.field(2, &kind)
        try wire.field(3, &container)
        try wire.field(4, &environment)
        try wire.field(5, &database)
        try wire.field(6, &zone)
        try wire.field(7, &recordType)
        try wire.field(8, &filters)
        try wire.field(9, &user, unless: "")
        try wire.field(10, &by)
        try wire.field(11, &phase)
        try wire.field(12, &ended)
        try wire.field(13, &records)
        try wire.field(14, &left)
        try wire.field(15, &problem)
        try wire.field(16, &waiting, unless: "")
        try wire.field(17, &format)
        try wire.field(18, &bytes)
    }
}

/// The bounds of jobs, each of one node.
package enum JobLimits {
    /// Jobs that run at once.
    package static let runningMax = 4
    /// Those of one container.
    package static let runningOfContainerMax = 2
    /// Jobs that are remembered, those that run among them.
    package static let keptMax = 200
    /// How long one is remembered after its end.
    package static let keptMilliseconds: Int64 = 24 * 3_600_000
    /// Results of exports, those that are being written among them.
    package static let resultsMax = 4
    /// What one of them may come to.
    package static let resultBytesMax = 256 << 20
    /// How long it can be fetched.
    package static let resultMilliseconds: Int64 = 3_600_000
    /// What the disk must have free before an export begins.
    static let freeBytesMin = UInt64(2 * resultsMax * resultBytesMax)
    /// Records of one deletion.
    static let deletedAtOnceMax = 100
    /// How long a job tries the same step again while the cluster cannot do it.
    static let patienceMilliseconds: UInt64 = 300_000
}

/// What any node asks the one that runs a job, or all nodes about their jobs.
enum JobInquiry: Hashable, Sendable {
    /// All jobs of a container's environment; without a container, of all.
    case list(container: String?, environment: Environment?)
    case state(JobID)
    /// Ends a job that runs, and forgets one that has ended.
    case cancel(JobID)
    /// A part of an export's result.
    case result(JobID, offset: UInt64, count: UInt64)
}

extension JobInquiry: WireUnion {
    func encode(to writer: inout WireWriter) {
        switch self {
        case .list(let container, let environment): writer.parts(1, container, environment)
        case .state(let id): writer.parts(2, id)
        case .cancel(let id): writer.parts(3, id)
        case .result(let id, let offset, let count): writer.parts(4, id, offset, count)
        }
    }

    init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = try reader.parts { .list(container: $0, environment: $1) }
        case 2: self = try reader.parts { .state($0) }
        case 3: self = try reader.parts { .cancel($0) }
        case 4: self = try reader.parts { .result($0, offset: $1, count: $2) }
        default: return nil
        }
    }
}

/// What a node says of its jobs.
struct JobAnswer: Hashable, Sendable, WireMessage {
    /// When the node was started, in milliseconds since 1970: jobs from before are lost.
    var started: Int64
    /// Those that were asked for and that it has.
    var jobs: [Job] = []
    /// A part of a result.
    var bytes: [UInt8] = []
    /// Why it cannot be had.
    var problem: Job.Problem?

    static var blank: Self { JobAnswer(started: 0) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &started)
        try wire.field(2, &jobs)
        try wire.field(3, &bytes)
        try wire.field(4, &problem)
    }
}

/// By what right a job goes on: its administrator's role, or their time as a user. It is judged at each step.
struct JobRight: Sendable {
    let access: AdministratorAccess
    /// Nil where the administrator acts as nobody.
    let acting: ActingCredential?

    /// The job's request for its database, as the one whom `admitted` let in.
    static func request(
        of job: Job, by context: AdmittedRequest, _ origin: AuditOrigin, in service: RecordService
    ) -> DatabaseRequest {
        let schema = SchemaKey(container: job.container, environment: job.environment)
        return DatabaseRequest(
            service, key: DatabaseKey(job.database, of: context.admitted.caller, in: schema),
            requester: Requester(context.admitted, requestID: origin.requestID, address: origin.address),
            in: context.directory, deadline: service.deadline())
    }

    /// Who works, by the directory as it is now.
    /// - Throws: `ACCESS_DENIED` where the administrator's role, or their time as a user, does not allow it any more;
    ///   `NOT_FOUND` where the container was deleted.
    func admitted(
        by service: RecordService, to job: Job, writes: Bool
    ) async throws(RequestFailure) -> AdmittedRequest {
        if let acting {
            let target = Target(
                container: job.container, environment: job.environment, needsUser: job.database != .public)
            return try await acting.admitted(by: service, to: target, writes: writes)
        }
        guard job.database == .public else {
            throw .accessDenied(
                "private data is its user's: begin a time as that user (`zonekeeper act-as start`), and name it")
        }
        try await service.cluster.requireDirectory()
        let directory = service.directory
        try ConsoleAccess(service).access(named: access.name, session: access.session).require(
            AdministratorNeed(writes ? .developer : .viewer, .container), container: job.container,
            environment: job.environment, now: service.now)
        try relay(directory.requireContainer(job.container))
        var admitted = Admitted(caller: .administrator)
        admitted.administrator = access.actor
        return AdmittedRequest(admitted: admitted, directory: directory)
    }
}
