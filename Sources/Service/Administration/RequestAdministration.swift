import Cluster
package import Directory
import PeerTransport
import RaftCore
package import RecordModel

/// The log of requests of all nodes, and what requests came to. Any node answers for all; one that does not answer is
/// named.
package struct RequestAdministration: Sendable {
    /// A node that is asked, and why its part is missing; nil: it is there.
    package typealias AskedNode = (id: UInt64, problem: String?)
    /// A request, and the node that its client spoke to.
    package typealias Request = (entry: RequestEntry, node: UInt64)

    /// Some of the log, the newest first, and where it goes on; nil where this is all that the nodes have.
    package typealias Page = (requests: [Request], next: UUIDv7?, nodes: [AskedNode])

    /// What a node did as the leader of a group.
    package struct Hop: Sendable {
        /// Its id.
        package var node: UInt64
        /// The node that asked it.
        package var from: UInt64
        /// `write` or `read`.
        package var work: String
        /// 0 is the directory.
        package var group: UInt64
        /// When it came, in milliseconds since 1970, by the node's clock.
        package var time: Int64
        /// Until its answer.
        package var microseconds: UInt64
        /// Whether it did what it was asked.
        package var isDone: Bool

        fileprivate init(_ hop: RequestHop, on node: UInt64) {
            self.node = node
            from = hop.from.rawValue
            work = hop.work == .write ? "write" : "read"
            group = hop.group.rawValue
            time = hop.time
            microseconds = hop.microseconds
            isDone = hop.isDone
        }
    }

    let administration: Administration
    private var service: RecordService { administration.service }

    /// The most requests of one page.
    package static let requestsPerPageMax = 500

    /// The newest requests that a filter lets through, and that the administrator may see.
    /// - Parameters:
    ///   - before: the last request of the page before.
    ///   - node: whose part is wanted; nil: all.
    package func page(
        _ filter: RequestFilter, before: UUIDv7?, limit: Int, of node: UInt64?
    ) async throws(RequestFailure) -> Page {
        let filter = try visible(filter)
        let asked: [NodeAnswer<ShardList<RequestEntry>>] = await NodeInquiries(service: service).askAll(
            .requests(filter, before: before, limit: limit + 1), only: node)
        let all = asked.flatMap { answer in (answer.value?.elements ?? []).map { (entry: $0, node: answer.node) } }
            .sorted { $0.entry.id > $1.entry.id }
        let requests = Array(all.prefix(limit))
        let next = all.count > limit ? requests.last?.entry.id : nil
        return (requests, next, asked.map { ($0.node, $0.problem) })
    }

    /// One request, and what other nodes did for it, by time.
    /// - Throws: `NOT_FOUND` where no node that answers knows it, or the administrator may not see it.
    package func way(
        of id: UUIDv7
    ) async throws(RequestFailure) -> (request: Request, hops: [Hop], nodes: [AskedNode]) {
        let visible = try visible(RequestFilter())
        let answers: [NodeAnswer<RequestParts>] = await NodeInquiries(service: service).askAll(.request(id))
        let missing = answers.filter { $0.problem != nil }.map { "node \($0.node)" }
        guard
            let found = answers.first(where: { $0.value?.entry != nil }), let entry = found.value?.entry,
            visible.admits(entry)
        else {
            let doubt = missing.isEmpty ? "" : "; \(missing.joined(separator: " and ")) did not answer, and may have it"
            throw .notFound(
                "no node remembers a request '\(id.text)': it is too old, its node was started anew, or it never was"
                    + doubt)
        }
        let hops = answers.flatMap { answer in (answer.value?.hops ?? []).map { Hop($0, on: answer.node) } }
        return (
            (entry, found.node), hops.sorted { $0.time < $1.time }, answers.map { ($0.node, $0.problem) }
        )
    }

    /// What requests came to over a range.
    package func telemetry(
        _ filter: TelemetryFilter
    ) async throws(RequestFailure) -> (sums: TelemetrySums, now: Int64, nodes: [AskedNode]) {
        var filter = filter
        filter.visible = try visibleContainers(filter.container)
        let answers: [NodeAnswer<TelemetrySums>] = await NodeInquiries(service: service).askAll(.telemetry(filter))
        var sums = TelemetrySums()
        for answer in answers { if let part = answer.value { sums.add(part) } }
        return (sums, service.now, answers.map { ($0.node, $0.problem) })
    }

    /// What every node is at.
    package func health() async -> [(node: ClusterMap.Node, health: NodeHealth?, problem: String?)] {
        let answers: [NodeAnswer<NodeHealth>] = await NodeInquiries(service: service).askAll(.health)
        let nodes = service.node.map.nodes
        return answers.compactMap { answer in
            nodes.first { $0.id == answer.node }.map { ($0, answer.value, answer.problem) }
        }
    }

    private func visible(_ filter: RequestFilter) throws(RequestFailure) -> RequestFilter {
        var filter = filter
        filter.visible = try visibleContainers(filter.container)
        return filter
    }

    /// The containers whose requests the administrator may see; nil: all, and those of none.
    /// - Throws: `ACCESS_DENIED` where one is asked for that is not among them.
    private func visibleContainers(_ container: String?) throws(RequestFailure) -> [String]? {
        let access = try administration.access
        if let container {
            try access.require(
                AdministratorNeed(.viewer, .container), container: container, environment: nil, now: service.now)
        }
        return access.containers
    }
}

/// The log of requests as it grows, over all nodes: asked for again and again, each time from where the time before
/// ended.
package struct RequestFollowing: Sendable {
    private let administration: Administration
    private let filter: RequestFilter
    /// How far each node was followed.
    private var marks: [UInt64: FollowedRequests.Mark] = [:]

    /// Of one node and one look; what is beyond is counted only.
    private static let requestsPerLookMax = 200
    /// How long it waits between two looks.
    package static let lookMilliseconds: UInt64 = 500

    /// - Parameter marks: where an earlier following ended; empty: begins now.
    package init(_ administration: Administration, _ filter: RequestFilter, marks: [UInt64: FollowedRequests.Mark]) {
        self.administration = administration
        self.filter = filter
        self.marks = marks
    }

    /// What came since the last look.
    package struct Look: Sendable {
        /// In the order in which they came.
        package var requests: [RequestAdministration.Request] = []
        /// More than are passed on.
        package var skipped: UInt64 = 0
        /// All that were asked.
        package var nodes: [RequestAdministration.AskedNode] = []
        /// Where each node's log was followed to.
        package var marks: [UInt64: FollowedRequests.Mark] = [:]
    }

    /// Looks at what came since. The first look without marks finds nothing, and notes where the logs are.
    /// - Parameter access: who asks, as it is at this moment.
    package mutating func next(_ access: AdministratorAccess) async throws(RequestFailure) -> Look {
        var filter = filter
        filter.visible = access.containers
        let (wanted, known) = (filter, marks)
        let answers: [NodeAnswer<FollowedRequests>] = await NodeInquiries(service: administration.service).askAll {
            id in
            .following(wanted, after: known[id], limit: Self.requestsPerLookMax)
        }
        var look = Look()
        for answer in answers {
            look.nodes.append((answer.node, answer.problem))
            guard let part = answer.value else { continue }
            marks[answer.node] = part.mark
            look.requests += part.entries.map { ($0, answer.node) }
            look.skipped += part.skipped
        }
        look.requests.sort { $0.entry.id < $1.entry.id }
        look.marks = marks
        return look
    }

    /// Waits until it is time for the next look.
    package func pause() async throws {
        try await administration.service.node.platform.clock.sleep(milliseconds: Self.lookMilliseconds)
    }
}
