import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Wire

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The incoming side: listens, authenticates, and hands raft messages and requests to the delegate.
///
/// Bound to the event loop.
final class PeerAcceptor: PeerConnectionOwner {
    private struct Key: Hashable {
        var node: NodeID
        var channel: PeerChannel
    }

    let shared: TransportShared
    private let logger: Logger
    private var listener: (any Channel)?
    private var connections: [ObjectIdentifier: PeerConnection] = [:]
    /// One connection per peer and channel: a newer one takes the place of the older, which is half-open or a leftover.
    private var authenticated: [Key: PeerConnection] = [:]
    /// The connections that have not authenticated yet, with their addresses once known.
    private var unauthenticated: [ObjectIdentifier: String?] = [:]
    private var quietLog = QuietLog()

    init(shared: TransportShared) {
        self.shared = shared
        logger = shared.logger
    }

    /// Listens. The future has the port.
    func listen() -> EventLoopFuture<Int> {
        let configuration = shared.configuration
        let bound = NIOLoopBound(self, eventLoop: shared.eventLoop)
        return ServerBootstrap(group: shared.eventLoop)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try bound.value.accept(channel) }
            }
            .bind(host: configuration.listenHost, port: configuration.listenPort)
            .flatMapThrowing { channel in
                bound.value.listener = channel
                return channel.localAddress?.port ?? configuration.listenPort
            }
            .flatMapErrorThrowing { error in
                throw PeerTransportError.cannotListen(
                    host: configuration.listenHost, port: configuration.listenPort,
                    problem: ListenProblem.describe(error))
            }
    }

    private func accept(_ channel: any Channel) throws {
        guard unauthenticated.count < shared.configuration.unauthenticatedMax else {
            isOverLimit("closed an incoming connection: \(unauthenticated.count) others have not authenticated yet")
            return channel.close(promise: nil)
        }
        try PeerSocket.apply(to: channel)
        let tls = NIOSSLServerHandler(context: shared.tls().server)
        let connection = PeerConnection(
            dialled: nil, configuration: shared.configuration, tls: tls, counters: shared.counters, owner: self)
        connections[ObjectIdentifier(connection)] = connection
        unauthenticated.updateValue(nil, forKey: ObjectIdentifier(connection))
        do { try channel.pipeline.syncOperations.addHandlers([tls, connection]) } catch {
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
        let others = unauthenticated.values.count { $0 == address }
        guard others < shared.configuration.unauthenticatedPerAddressMax else {
            isOverLimit(
                "closed an incoming connection from \(address): \(others) others from there have not authenticated yet",
                of: address)
            return connection.close(.broken("too many of its address have not authenticated yet"))
        }
        unauthenticated.updateValue(address, forKey: ObjectIdentifier(connection))
    }

    func connectionReady(_ connection: PeerConnection, peer: PeerIdentity, channel: PeerChannel) {
        unauthenticated.removeValue(forKey: ObjectIdentifier(connection))
        let key = Key(node: peer.node, channel: channel)
        authenticated.updateValue(connection, forKey: key)?.close(saying: "a newer connection took its place")
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
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        unauthenticated.removeValue(forKey: ObjectIdentifier(connection))
        authenticated = authenticated.filter { $0.value !== connection }
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
    /// - Returns: the channels whose end can be waited for.
    func stop(saying reason: String) -> [any Channel] {
        var channels: [any Channel] = []
        if let listener {
            channels.append(listener)
            listener.close(promise: nil)
        }
        for connection in connections.values {
            if let channel = connection.context?.channel { channels.append(channel) }
            connection.close(saying: reason)
        }
        return channels
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

/// Says why a port cannot be listened on, and what to do.
enum ListenProblem {
    static func describe(_ error: any Error) -> String {
        guard let error = error as? IOError else { return String(describing: error) }
        switch error.errnoCode {
        case EADDRINUSE: return "another process uses the port; stop it or choose another port"
        case EADDRNOTAVAIL: return "this machine does not have the address; listen on one it has, or on 0.0.0.0"
        case EACCES: return "this user may not use the port; choose one above 1023"
        default: return error.description
        }
    }
}
