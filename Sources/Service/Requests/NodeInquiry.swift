package import Cluster
import Directory
import Foundation
import Glibc
import PeerTransport
import RaftCore
import RecordModel
package import Wire

/// What one node asks any other about itself, so that each can answer for all.
enum NodeInquiry: Hashable, Sendable {
    /// Requests of the log, the newest first.
    case requests(RequestFilter, before: UUIDv7?, limit: Int)
    /// What the node has of one request.
    case request(UUIDv7)
    /// What was answered since.
    case following(RequestFilter, after: FollowedRequests.Mark?, limit: Int)
    case telemetry(TelemetryFilter)
    case health
    /// What it knows of its jobs.
    case jobs(JobInquiry)
    /// What its rules of alerts come to: of these containers, beside the node's own; nil: of all.
    case alerts(of: [String]?)
}

extension NodeInquiry: WireUnion {
    func encode(to writer: inout WireWriter) {
        switch self {
        case .requests(let filter, let before, let limit): writer.parts(1, filter, before, limit)
        case .request(let id): writer.parts(2, id)
        case .following(let filter, let mark, let limit): writer.parts(3, filter, mark, limit)
        case .telemetry(let filter): writer.parts(4, filter)
        case .health: writer.field(5, true)
        case .jobs(let inquiry): writer.parts(10, inquiry)
        case .alerts(let containers):
            // Earlier builds know the first field only, and tell of all containers.
            writer.field(11, true)
            if let containers { writer.parts(12, containers) }
        }
    }

    init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = try reader.parts { .requests($0, before: $1, limit: $2) }
        case 2: self = try reader.parts { .request($0) }
        case 3: self = try reader.parts { .following($0, after: $1, limit: $2) }
        case 4: self = try reader.parts { .telemetry($0) }
        case 5: self = try reader.flag(.health)
        case 10: self = try reader.parts { .jobs($0) }
        case 11: self = try reader.flag(.alerts(of: nil))
        case 12: self = try reader.parts { (containers: [String]) in .alerts(of: containers) }
        default: return nil
        }
    }
}

/// What one node has of a request: its entry, where the client spoke to it, and what it did for other nodes.
struct RequestParts: Hashable, Sendable, WireMessage {
    var entry: RequestEntry?
    var hops: [RequestHop]

    static var blank: Self { RequestParts(entry: nil, hops: []) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &entry)
        try wire.field(2, &hops)
    }
}

/// What a node answered since a mark.
package struct FollowedRequests: Hashable, Sendable, WireMessage {
    /// How far a node's log was followed.
    package struct Mark: Hashable, Sendable, WireMessage {
        /// One start of the node.
        package var start: UInt64
        /// Requests that were answered since then.
        package var count: UInt64

        package init(start: UInt64, count: UInt64) {
            self.start = start
            self.count = count
        }

        package static var blank: Self { Mark(start: 0, count: 0) }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &start)
            try wire.field(2, &count)
        }
    }

    /// How far it is followed now.
    package var mark: Mark
    /// In the order in which they were answered.
    package var entries: [RequestEntry] = []
    /// How many more there were than are passed on.
    package var skipped: UInt64 = 0

    package static var blank: Self { FollowedRequests(mark: .blank) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &mark)
        try wire.field(2, &entries)
        try wire.field(3, &skipped)
    }
}

/// What one node answered, or why it did not.
package struct NodeAnswer<Value: Sendable>: Sendable {
    /// Its id.
    package var node: UInt64
    /// What came of the question.
    package var answer: Result<Value, ClusterError>

    /// What it answered; nil where it did not.
    package var value: Value? { try? answer.get() }
    /// Why it did not, in words; nil where it did.
    package var problem: String? {
        switch answer {
        case .success: nil
        case .failure(.unavailable(let reason)), .failure(.failed(let reason)), .failure(.outcomeUnknown(let reason)):
            reason
        case .failure: "the node cannot answer"
        }
    }
}

/// Asks nodes about themselves, and answers for this one.
struct NodeInquiries {
    let service: RecordService
    private var node: ClusterNode { service.node }

    /// How long a node has to answer for itself: a page shows within seconds which one does not.
    private static let inquiryMilliseconds: UInt64 = 1_500

    /// Asks every node of the cluster, this one included, at once.
    /// - Parameter only: the one that is asked alone.
    /// - Returns: an answer for each, by id.
    func askAll<Value: WireDecodable & Sendable>(
        _ inquiry: NodeInquiry, only: UInt64? = nil, as _: Value.Type = Value.self
    ) async -> [NodeAnswer<Value>] {
        await askAll(only: only) { _ in inquiry }
    }

    /// Asks every node something of its own.
    func askAll<Value: WireDecodable & Sendable>(
        only: UInt64? = nil, _ inquiry: (UInt64) -> NodeInquiry, as _: Value.Type = Value.self
    ) async -> [NodeAnswer<Value>] {
        let questions = node.map.nodes.filter { only == nil || $0.id == only }.map { ($0.id, inquiry($0.id)) }
        return await withTaskGroup(of: NodeAnswer<Value>.self) { tasks in
            for (id, question) in questions {
                tasks.addTask { NodeAnswer(node: id, answer: await ask(question, of: id)) }
            }
            return await tasks.reduce(into: []) { $0.append($1) }.sorted { $0.node < $1.node }
        }
    }

    private func ask<Value: WireDecodable>(
        _ inquiry: NodeInquiry, of id: UInt64
    ) async -> Result<Value, ClusterError> {
        do throws(ClusterError) {
            let isOwn = id == node.settings.nodeID.rawValue
            let deadline = node.deadline(milliseconds: Self.inquiryMilliseconds)
            let bytes =
                isOwn
                ? await answer(to: inquiry)
                : try await node.router.inquire(inquiry.encoded(), of: NodeID(id), by: deadline)
            guard let value = try? Value(decoding: bytes) else {
                throw .failed("node \(id) gave an answer that this build cannot read")
            }
            return .success(value)
        } catch {
            return .failure(error)
        }
    }

    /// What this node says of itself.
    func answer(to inquiry: NodeInquiry) async -> [UInt8] {
        switch inquiry {
        case .requests(let filter, let before, let limit):
            ShardList(service.requests.newest(filter, before: before, limit: limit)).encoded()
        case .request(let id):
            RequestParts(entry: service.requests.entry(of: id), hops: node.router.hops.hops(of: id)).encoded()
        case .following(let filter, let mark, let limit): service.requests.after(mark, filter, limit: limit).encoded()
        case .telemetry(let filter): service.requests.sums(filter).encoded()
        case .health: await NodeHealth.present(of: node, since: service.requests.began).encoded()
        case .jobs(let inquiry): await service.jobs.answer(inquiry, in: service).encoded()
        case .alerts(let containers): AlertFindings(await service.alerts.look(at: service), of: containers).encoded()
        }
    }
}

/// What a node is at, as it tells any other one.
package struct NodeHealth: Hashable, Sendable, WireMessage {
    /// Of the program.
    package var version = ""
    /// Why the node takes no clients; nil: it does.
    package var obstacle: String?
    /// How long ago it was started.
    package var uptimeSeconds: UInt64 = 0
    /// User and system time of the process since then; the difference of two answers is the load.
    package var cpuSeconds: Double = 0
    /// How many processors it may use.
    package var processors: UInt64 = 0
    /// What the process holds in memory.
    package var memoryBytes: UInt64 = 0
    /// Of the disk that holds its data; 0 where it cannot be asked.
    package var diskBytes: UInt64 = 0
    /// What of that is free for this user.
    package var diskFreeBytes: UInt64 = 0
    /// Whether that disk is full, and the node takes only reads and deletions.
    package var isDiskShort = false
    /// How far the clock is off in milliseconds; nil: it is right, as far as is known.
    package var clockErrorMilliseconds: Int64?
    /// When the first of its certificates expires, in milliseconds since 1970; nil where none can be read.
    package var certificateExpires: Int64?
    /// Groups that it leads.
    package var leads: UInt64 = 0
    /// Those that it holds.
    package var replicas: UInt64 = 0
    /// Entries that are committed and not applied here yet, of all groups.
    package var unappliedEntries: UInt64 = 0

    package static var blank: Self { NodeHealth() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &version)
        try wire.field(2, &obstacle)
        try wire.field(3, &uptimeSeconds)
        try wire.field(4, &cpuSeconds)
        try wire.field(5, &processors)
        try wire.field(6, &memoryBytes)
        try wire.field(7, &diskBytes)
        try wire.field(8, &diskFreeBytes)
        try wire.field(9, &clockErrorMilliseconds)
        try wire.field(10, &certificateExpires)
        try wire.field(11, &leads)
        try wire.field(12, &replicas)
        try wire.field(13, &unappliedEntries)
        try wire.field(14, &isDiskShort, unless: false)
    }
}

extension NodeHealth {
    /// What this node is at. Reads small files of the system, and its certificates.
    static func present(of node: ClusterNode, since start: MonotonicTime) async -> NodeHealth {
        let (settings, replicas) = (node.settings, await node.status())
        var health = NodeHealth()
        health.version = settings.version
        health.obstacle = node.obstacle(replicas)
        health.uptimeSeconds = (node.platform.clock.now.nanoseconds - start.nanoseconds) / 1_000_000_000
        health.cpuSeconds = NodeMetrics.cpuSeconds()
        health.processors = UInt64(node.processors)
        health.memoryBytes = residentBytes()
        if let disk = NodeMetrics.diskSpace(at: settings.dataPath) { (health.diskBytes, health.diskFreeBytes) = disk }
        health.isDiskShort = node.isDiskShort
        health.clockErrorMilliseconds = node.clockErrorMilliseconds
        health.certificateExpires = settings.certificates.compactMap(\.expires).min().map { $0 * 1_000 }
        health.leads = UInt64(replicas.count { $0.role == .leader })
        health.replicas = UInt64(replicas.count)
        health.unappliedEntries = replicas.reduce(0) { $0 + $1.unappliedEntries }
        return health
    }

    /// What the kernel says that the process holds in memory.
    static func residentBytes() -> UInt64 {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        let pages = text.split(separator: " ").dropFirst().first.flatMap { UInt64($0) } ?? 0
        return pages * UInt64(sysconf(Int32(_SC_PAGESIZE)))
    }
}
