import Logging
import NIOCore
import Wire

/// The incoming side: listens, authenticates, and hands raft messages and requests to the delegate.
///
/// Bound to the event loop.
final class PeerAcceptor: PeerConnectionOwner {
    let shared: TransportShared
    private let logger: Logger
    /// All that have not ended. Those without a peer have not authenticated yet.
    private var connections: [PeerConnection] = []
    private var quietLog = QuietLog()

    init(shared: TransportShared) {
        self.shared = shared
        logger = shared.logger
    }

    /// Listens. The future has the port.
    func listen() -> EventLoopFuture<Int> {
        let bound = NIOLoopBound(self, eventLoop: shared.eventLoop)
        return shared.wire.listen { try bound.value.accept($0) }
    }

    private func accept(_ end: PeerWireEnd) throws {
        let others = connections.count { $0.peer == nil }
        guard others < shared.configuration.unauthenticatedMax else {
            isOverLimit("closed an incoming connection: \(others) others have not authenticated yet")
            return end.channel.close(promise: nil)
        }
        let connection = PeerConnection(
            dialled: nil, configuration: shared.configuration, end: end, counters: shared.counters, owner: self)
        connections.append(connection)
        do { try end.channel.pipeline.syncOperations.addHandler(connection) } catch {
            connectionEnded(connection, end: .broken(String(describing: error)))
            throw error
        }
    }

    private func isOverLimit(_ message: String, of address: String = "") {
        shared.counters.update { $0.connectionsOverLimit += 1 }
        quietLog.log(logger, .warning, message, key: "over limit \(address)")
    }

    // MARK: Connection events

    func connectionBegan(_ connection: PeerConnection) {
        guard let address = connection.remote?.ipAddress else { return }
        let others = connections.count { $0 !== connection && $0.peer == nil && $0.remote?.ipAddress == address }
        guard others < shared.configuration.unauthenticatedPerAddressMax else {
            isOverLimit(
                "closed an incoming connection from \(address): \(others) others from there have not authenticated yet",
                of: address)
            return connection.close(.broken("too many of its address have not authenticated yet"))
        }
    }

    func connectionReady(_ connection: PeerConnection, peer: PeerIdentity, channel: PeerChannel) {
        // The older one is half-open or a leftover.
        let older = connections.first { $0 !== connection && $0.serves(peer.node, channel) }
        older?.close(saying: "a newer connection took its place")
        logger.debug(
            "node \(peer.node) connected from \(connection.remote.map { String(describing: $0) } ?? "somewhere")",
            metadata: ["channel": "\(channel)"])
        shared.delegate?.peerIntroduced(peer, channel: channel)
    }

    func connection(_ connection: PeerConnection, received frame: Frame) throws(PeerProtocolError) {
        guard case .ready(let peer, let channel) = connection.phase else { return }
        switch (frame.kind, channel) {
        case (.raft, .raft):
            let messages: [PeerMessage]
            do { messages = try RaftFrame.read(frame.payload) } catch { throw .malformed("raft frame (\(error))") }
            shared.counters.update { $0.messagesReceived += UInt64(messages.count) }
            shared.delegate?.receiveRaft(messages, from: peer.node)
        case (.request, .request), (.request, .bulk):
            let request: RequestFrame
            do { request = try RequestFrame(decoding: frame.payload) } catch { throw .malformed("request (\(error))") }
            try serve(request, on: connection, peer.node, channel)
        default:
            throw .unexpected("a \(frame.kind) frame on a \(channel) connection")
        }
    }

    func connection(_ connection: PeerConnection, heardClockOf node: NodeID, ahead: ClosedRange<Int64>) {}

    func connectionEnded(_ connection: PeerConnection, end: ConnectionEnd) {
        guard let place = connections.firstIndex(where: { $0 === connection }) else { return }
        connections.remove(at: place)
        log(end, of: connection)
    }

    private func log(_ end: ConnectionEnd, of connection: PeerConnection) {
        let address = connection.remote.map { String(describing: $0) } ?? "an unknown address"
        let name = connection.peer.map { "node \($0.node) at \(address)" } ?? address
        // A source that comes back from another port with the same fault is the same news.
        let source = connection.peer?.node.description ?? connection.remote?.ipAddress ?? ""
        switch end {
        case .refused(let reason):
            quietLog.log(
                logger, .warning, "refused a peer connection from \(name): \(reason)", key: "\(source) \(reason)")
        case .refusedByPeer(let reason) where connection.peer == nil:
            quietLog.log(
                logger, .warning, "the peer at \(name) closed the connection, saying: \(reason)",
                key: "\(source) \(reason)")
        case .wanted(let reason), .refusedByPeer(let reason), .broken(let reason):
            logger.debug("the connection from \(name) ended: \(reason)")
        }
    }

    // MARK: Stopping

    /// Stops listening and closes every connection.
    /// - Returns: what can be waited for.
    func stop(saying reason: String) -> [EventLoopFuture<Void>] {
        var ends = [shared.wire.stopListening()]
        for connection in connections {
            if let channel = connection.context?.channel { ends.append(channel.closeFuture) }
            connection.close(saying: reason)
        }
        return ends
    }

    /// Hands a request to the delegate and sends what it answers.
    func serve(
        _ request: RequestFrame, on connection: PeerConnection, _ node: NodeID, _ channel: PeerChannel
    ) throws(PeerProtocolError) {
        let id = request.id
        guard let delegate = shared.delegate else {
            return connection.respond(id, .failure(.refused("node \(shared.configuration.nodeID) is stopping")))
        }
        guard connection.serving.count < shared.configuration.servedRequestsMax else {
            return connection.respond(
                id,
                .failure(.refused("node \(shared.configuration.nodeID) serves too many requests of this node already")))
        }
        guard connection.serving.insert(id).inserted else { throw .unexpected("two requests with the number \(id)") }
        shared.counters.update { $0.requestsServed += 1 }
        let eventLoop = shared.eventLoop
        let bound = NIOLoopBound(connection, eventLoop: eventLoop)
        delegate.serve(request.payload, from: node, channel: channel) { result in
            if eventLoop.inEventLoop {
                bound.value.answer(id, result)
            } else {
                eventLoop.execute { bound.value.answer(id, result) }
            }
        }
    }
}

extension PeerConnection {
    /// Sends the answer to a request that is being served; the second answer, or one after the end, is dropped.
    func answer(_ id: UInt64, _ result: Result<[UInt8], PeerTransportError>) {
        guard serving.remove(id) != nil else { return }
        respond(id, result)
    }

    /// Sends a response. One that does not fit is replaced by the reason, so that the peer need not wait for its
    /// timeout.
    func respond(_ id: UInt64, _ result: Result<[UInt8], PeerTransportError>) {
        let frame = ResponseFrame(id: id, result: result)
        switch writeWithinLimits(.response, { frame.encode(to: &$0) }) {
        case .appended: return
        case .full:
            let reason = "\(configuration.outboundBytesMax) bytes wait for this node already"
            write(.response) { ResponseFrame(id: id, result: .failure(.responseLost(reason))).encode(to: &$0) }
        case .tooLarge(let bytes):
            let error = PeerTransportError.responseTooLarge(bytes: bytes, bytesMax: configuration.frameBytesMax)
            write(.response) { ResponseFrame(id: id, result: .failure(error)).encode(to: &$0) }
        }
    }
}
