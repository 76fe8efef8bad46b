package import PeerTransport
package import RaftCore
import Synchronization

/// What the layers above answer for other nodes. Nothing of it is logged or survives a restart: it is for coordination
/// that can restart from nothing, such as rate shares.
package protocol NodeServices: Sendable {
    /// Answers a request made to the leader of a group. Called on the lane's event loop: short, and never blocking.
    /// - Parameter reply: called once, on any thread.
    func confer(_ request: [UInt8], as leadership: Leadership, reply: @escaping @Sendable ([UInt8]) -> Void)
    /// Takes what another node has to tell. Called on the lane's event loop: short, and never blocking.
    func hear(_ message: [UInt8], from node: NodeID)
    /// Answers a question of another node, whatever this one leads. Called on the lane's event loop: never blocking.
    /// - Parameter reply: called once, on any thread; nil where this build does not know the question.
    func answer(_ question: [UInt8], reply: @escaping @Sendable ([UInt8]?) -> Void)
}

/// This node's lead of a group at one moment. Another node may lead in a later term already, for as long as an election
/// takes.
package struct Leadership: Hashable, Sendable {
    package var group: GroupID
    package var term: Term
    package var since: MonotonicTime
    package var now: MonotonicTime
}

/// The services of a node, once there are any.
final class ServiceHolder: Sendable {
    private let services = Mutex<(any NodeServices)?>(nil)

    var current: (any NodeServices)? { services.withLock(\.self) }

    func set(_ new: any NodeServices) { services.withLock { $0 = new } }

    /// Passes on what a node tells; before there is anybody to hear it, it is lost, as a message may be.
    func tell(_ message: [UInt8], from node: NodeID, _ answer: @Sendable (NodeReply) -> Void) {
        current?.hear(message, from: node)
        answer(.done([]))
    }

    /// Has a question to this node answered.
    func inquire(_ question: [UInt8], of node: NodeID, _ answer: @escaping @Sendable (NodeReply) -> Void) {
        guard let current else { return answer(.unavailable("node \(node) is starting")) }
        current.answer(question) { bytes in
            answer(bytes.map { .done($0) } ?? .unavailable("node \(node) runs a build that cannot answer this"))
        }
    }
}
