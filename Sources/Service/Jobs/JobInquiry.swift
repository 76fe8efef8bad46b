import Directory
import RecordModel
import Wire

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
