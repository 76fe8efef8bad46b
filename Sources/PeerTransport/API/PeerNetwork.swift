package import NIOCore

/// How a node reaches its peers: a `PeerTransport` over sockets, or what stands in for it where many nodes share a thread.
///
/// Raft messages of one sender arrive in order or not at all; requests end with an answer or a `PeerTransportError` that says
/// whether the outcome is known.
package protocol PeerNetwork: Sendable {
    /// Begins to listen and to dial. Any thread, once.
    /// - Returns: succeeds when peers can connect; fails with `PeerTransportError.cannotListen`.
    func start() -> EventLoopFuture<Void>
    /// Replaces the list of peers: new ones are dialled, those gone are let go, the others are not disturbed. Any thread.
    func update(peers: [PeerAddress])
    /// Sends Raft messages in order, or drops them where the node is not connected or too much waits. On the event loop only.
    func send(_ messages: [PeerMessage], to node: NodeID)
    /// Asks a peer and waits for its answer. Any thread.
    func request(
        _ payload: [UInt8], to node: NodeID, channel: PeerChannel, timeout: TimeAmount
    ) -> EventLoopFuture<[UInt8]>
    /// Whether a peer can be sent to now. On the event loop only.
    func isConnected(_ node: NodeID, channel: PeerChannel) -> Bool
    /// Says goodbye to every peer and closes; requests that wait fail. Any thread; idempotent.
    func shutdown() -> EventLoopFuture<Void>
}

extension PeerTransport: PeerNetwork {}
