package import PeerTransport
import RecordModel
import Synchronization

/// The request that a task works for: what its id is, and which other nodes had a part in it, so that an error can be
/// found in the log of each.
package final class RequestTrace: Sendable {
    @TaskLocal package static var current: RequestTrace?

    package let id: String
    private let crossed = Mutex<[NodeID]>([])

    package init(id: String) { self.id = id }

    /// The other nodes that were asked so far, ascending.
    package var nodes: [NodeID] { crossed.withLock { $0.sorted() } }

    /// The id as its 16 bytes, for other nodes; empty where it is no UUID of version 7.
    var name: [UInt8] { UUIDv7(id)?.bytes ?? [] }

    func crosses(to node: NodeID) {
        crossed.withLock { if !$0.contains(node) { $0.append(node) } }
    }
}
