/// What a `PeerTransport` tells its owner. Everything is called on the transport's event loop and must not block it.
package protocol PeerTransportDelegate: AnyObject, Sendable {
    /// An outgoing connection is ready: the peer is who was dialled.
    func peerConnected(_ peer: PeerIdentity, channel: PeerChannel)

    /// An outgoing connection that was ready is gone. The transport dials again by itself.
    func peerDisconnected(_ node: NodeID, channel: PeerChannel)

    /// A peer has connected to this node and proved who it is. Does nothing unless implemented.
    func peerIntroduced(_ peer: PeerIdentity, channel: PeerChannel)

    /// A peer that this node dialled has told its clock: in its hello, and every ping interval from then on. Does nothing unless
    /// implemented.
    /// - Parameter ahead: how far it is ahead of this node's, in milliseconds (see `PeerClockComparison`).
    func peerClock(of node: NodeID, ahead: Int64)

    /// Raft messages of one frame, in the order they were sent. The transport vouches for the node, not for the
    /// replica ids in the messages.
    func receiveRaft(_ messages: [PeerMessage], from node: NodeID)

    /// A request of a peer. `reply` must be called once, on any thread; later calls do nothing. A failure whose
    /// outcome is unknown reaches the peer as `responseLost`, any other as `refused`.
    func serve(
        _ request: [UInt8], from node: NodeID, channel: PeerChannel,
        reply: @escaping @Sendable (Result<[UInt8], PeerTransportError>) -> Void)
}

extension PeerTransportDelegate {
    package func peerIntroduced(_ peer: PeerIdentity, channel: PeerChannel) {}
    package func peerClock(of node: NodeID, ahead: Int64) {}
}
