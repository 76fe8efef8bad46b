import DequeModule
import PeerTransport
import RaftCore

/// Has snapshots go to each node one after another, in the order in which they were asked for: however many groups a
/// node lacks, there is one copy for it here at a time, beside the directory's, which waits for no shard's.
///
/// Nodes do not wait for each other: one that is slow, or answers nothing until its deliveries are given up, holds up
/// itself.
struct DeliveryLines<Delivery> {
    private struct Line: Hashable {
        let node: NodeID
        let isDirectory: Bool
    }

    private var lines: [Line: Deque<Delivery>] = [:]

    /// - Returns: whether it is its turn at once.
    mutating func join(_ delivery: Delivery, of group: GroupID, to node: NodeID) -> Bool {
        let line = Line(node: node, isDirectory: group == .directory)
        lines[line, default: []].append(delivery)
        return lines[line]?.count == 1
    }

    /// Ends the delivery whose turn it was.
    /// - Returns: whose turn it is now.
    mutating func ended(of group: GroupID, to node: NodeID) -> Delivery? {
        let line = Line(node: node, isDirectory: group == .directory)
        _ = lines[line]?.popFirst()
        guard let next = lines[line]?.first else {
            lines[line] = nil
            return nil
        }
        return next
    }
}
