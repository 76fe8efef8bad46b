package import PeerTransport
import RecordModel
import Synchronization
package import Telemetry

/// The request that a task works for: what its id is, and which other nodes had a part in it, so that an error can be
/// found in the log of each.
package final class RequestTrace: Sendable {
    @TaskLocal package static var current: RequestTrace?

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
