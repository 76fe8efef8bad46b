import DequeModule
package import PeerTransport
package import RaftCore
package import RecordModel
import Synchronization
package import Telemetry
package import Wire

/// What a node did as the leader of a group for a client's request that came to another node.
package struct RequestHop: Hashable, Sendable, WireMessage {
    /// What was asked for.
    package enum Work: UInt64, Sendable, WireValue {
        case write = 1
        case read = 2
    }

    /// The node that the client spoke to.
    package var from: NodeID
    /// What it was asked to do.
    package var work: Work
    /// The one that it led.
    package var group: GroupID
    /// When it came, in milliseconds since 1970.
    package var time: Int64
    /// Until its answer, with the wait for a majority or a read's turn.
    package var microseconds: UInt64
    /// Whether it was done; a node that does not lead any more answers that, for example.
    package var isDone: Bool

    package static var blank: Self {
        RequestHop(from: NodeID(0), work: .write, group: GroupID(0), time: 0, microseconds: 0, isDone: false)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &from)
        try wire.field(2, &work)
        try wire.field(3, &group)
        try wire.field(4, &time)
        try wire.field(5, &microseconds)
        try wire.field(6, &isDone)
    }
}

/// The newest hops of a node, in memory. Any thread.
package final class HopLog: Sendable {
    /// Some 2 MB.
    private static let hopsMax = 20_000

    private let hops = Mutex(Deque<(request: UUIDv7, hop: RequestHop)>())

    init() {}

    /// What was done for a client's request, in the order in which it ended.
    package func hops(of request: UUIDv7) -> [RequestHop] {
        hops.withLock { $0.filter { $0.request == request }.map(\.hop) }
    }

    /// The same answer, which ends the request's span where that is recorded, and is noted as a hop where the request
    /// is for a client's. What the request does stands below the span then.
    func noting(
        _ asked: inout NodeRequest, from node: NodeID, _ tracer: NodeTracer?, now clock: any NodeClock,
        _ answer: @escaping @Sendable ([UInt8]) -> Void
    ) -> @Sendable (NodeReply) -> Void {
        let span = tracer?.serving(&asked, from: node)
        return noting(asked, from: node, clock) { reply in
            span?.finish(isFailed: !reply.isDone)
            answer(reply.encoded())
        }
    }

    private func noting(
        _ asked: NodeRequest, from node: NodeID, _ clock: any NodeClock,
        _ answer: @escaping @Sendable (NodeReply) -> Void
    ) -> @Sendable (NodeReply) -> Void {
        let (origin, work, group): (RequestOrigin, RequestHop.Work, GroupID)
        switch asked {
        case .propose(let asked, _, let name): (origin, work, group) = (name, .write, asked)
        case .read(let asked, _, let terms): (origin, work, group) = (terms.origin, .read, asked)
        default: return answer
        }
        guard origin.request.count == 16 else { return answer }
        let (request, begin, time) = (UUIDv7(origin.request), clock.now, clock.wallMilliseconds)
        return { [self] reply in
            let now = clock.now
            let hop = RequestHop(
                from: node, work: work, group: group, time: time,
                microseconds: now > begin ? (now.nanoseconds - begin.nanoseconds) / 1_000 : 0, isDone: reply.isDone)
            hops.withLock { hops in
                if hops.count == Self.hopsMax { hops.removeFirst() }
                hops.append((request, hop))
            }
            answer(reply)
        }
    }
}

/// The request that a task works for: what its id is, and which other nodes had a part in it, so that an error can be
/// found in the log of each.
package final class RequestTrace: Sendable {
    /// The trace of the request that the current task works for; nil outside of a request.
    @TaskLocal package static var current: RequestTrace?

    /// The request's `UUIDv7` as text, by which the logs of all nodes name it.
    package let id: String
    /// Its place in a trace, recorded or not; nil where it has none.
    package let place: TraceContext?
    private let crossed = Mutex<[NodeID]>([])

    /// - Parameter place: in a trace, if it has one.
    package init(id: String, place: TraceContext? = nil) {
        self.id = id
        self.place = place
    }

    /// The other nodes that were asked so far, ascending.
    package var nodes: [NodeID] { crossed.withLock { $0.sorted() } }

    /// The task's request as other nodes are told of it.
    /// - Parameter span: what asks them; nil where that is not recorded.
    static func origin(_ span: RecordedSpan?) -> RequestOrigin {
        RequestOrigin(request: current.flatMap { UUIDv7($0.id)?.bytes } ?? [], place: span?.place)
    }

    func crosses(to node: NodeID) {
        crossed.withLock { if !$0.contains(node) { $0.append(node) } }
    }
}

/// For whom one node asks another.
struct RequestOrigin: Hashable, Sendable {
    /// The client's request, 16 bytes; empty where there is none.
    var request: [UInt8] = []
    /// The span that asks; nil where none is recorded.
    var place: TraceContext?

    /// Nobody.
    static let none = RequestOrigin()
}
