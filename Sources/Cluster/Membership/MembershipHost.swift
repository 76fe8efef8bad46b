import PeerTransport

/// What a node does for others, and with them, about who takes part. Called on the lane's event loop: short, and never
/// blocking.
protocol MembershipHost: AnyObject, Sendable {
    /// A connection to the peer was made: it can be asked now.
    func peerConnected(_ peer: NodeID)
    /// Answers with a `Standing`.
    func greet(_ introduction: Introduction, from node: NodeID, reply: @escaping @Sendable (NodeReply) -> Void)
    /// Has the directory commit that a node's data folder counts.
    func claim(
        _ incarnation: UInt64, previous: UInt64, for node: NodeID, reply: @escaping @Sendable (NodeReply) -> Void)
}
