package import Logging
package import NIOCore
import Synchronization

/// Connections of one node to its peers: framed TCP with mutual TLS.
///
/// Every peer is dialled on every channel, for ever, with back-off; what peers dial is served. Raft messages of one
/// sender arrive in order or not at all; requests have an answer or an error that says whether the outcome is known.
/// A peer is who its certificate says, or is refused.
///
/// Everything happens on one event loop. Certificates are read when the transport is made, and again when their files
/// change: new connections, incoming and outgoing, use the new ones, and connections that stand are left alone.
package final class PeerTransport: Sendable {
    /// The loop that the delegate is called on and `send` must be called on.
    package let eventLoop: any EventLoop
    private let core: NIOLoopBoundBox<TransportCore>
    private let counterBox: CounterBox
    private let portBox = Mutex<Int?>(nil)

    /// Reads the certificates; opens no socket.
    /// - Parameter delegate: held weakly.
    /// - Throws: `PeerTransportError.badCertificate`, naming the file.
    package init(
        configuration: PeerTransportConfiguration, eventLoop: any EventLoop, delegate: any PeerTransportDelegate,
        logger: Logger
    ) throws(PeerTransportError) {
        precondition(
            configuration.frameBytesMax <= configuration.outboundBytesMax,
            "frameBytesMax \(configuration.frameBytesMax) exceeds outboundBytesMax \(configuration.outboundBytesMax)")
        let counters = CounterBox()
        let tls = try PeerCertificates(configuration)
        let core = TransportCore(
            shared: TransportShared(
                configuration: configuration, eventLoop: eventLoop, delegate: delegate, logger: logger,
                counters: counters, tls: tls))
        self.eventLoop = eventLoop
        self.core = .makeBoxSendingValue(core, eventLoop: eventLoop)
        counterBox = counters
    }

    /// Listens and begins to dial. Any thread, once.
    /// - Returns: succeeds when the port is open; fails with `PeerTransportError.cannotListen`.
    package func start() -> EventLoopFuture<Void> {
        eventLoop.flatSubmit { self.core.value.start() }.map { port in self.portBox.withLock { $0 = port } }
    }

    /// The port listened on, once `start` has succeeded. Any thread.
    package var port: Int? { portBox.withLock { $0 } }

    /// Replaces the list of peers: new ones are dialled, those gone are let go, the others are not disturbed. Any
    /// thread; takes effect on the loop.
    package func update(peers: [PeerAddress]) {
        onLoop { $0.update(peers: peers) }
    }

    /// Sends Raft messages in order. Messages sent to one node within one tick of the loop share a frame. Dropped,
    /// and counted, when the node is not connected or `outboundBytesMax` is reached. On the event loop only.
    package func send(_ messages: [PeerMessage], to node: NodeID) {
        core.value.send(messages, to: node)
    }

    /// Asks a peer and waits for its answer. Any thread.
    /// - Parameter channel: `.request` or `.bulk`.
    /// - Returns: the response; fails with `PeerTransportError`, whose `isOutcomeUnknown` says whether the peer may
    ///   have acted.
    package func request(
        _ payload: [UInt8], to node: NodeID, channel: PeerChannel = .request, timeout: TimeAmount
    ) -> EventLoopFuture<[UInt8]> {
        if eventLoop.inEventLoop {
            return core.value.request(payload, to: node, channel: channel, timeout: timeout)
        }
        return eventLoop.flatSubmit {
            self.core.value.request(payload, to: node, channel: channel, timeout: timeout)
        }
    }

    /// Whether a peer can be sent to now. On the event loop only.
    package func isConnected(_ node: NodeID, channel: PeerChannel = .raft) -> Bool {
        core.value.isConnected(node, channel: channel)
    }

    /// What happened so far. Any thread.
    package var counters: PeerTransportCounters { counterBox.current }

    /// Says goodbye to every peer and closes. Requests that wait fail with `disconnected`. Any thread; idempotent.
    package func shutdown() -> EventLoopFuture<Void> {
        eventLoop.flatSubmit { self.core.value.shutdown() }
    }

    private func onLoop(_ body: @escaping @Sendable (TransportCore) -> Void) {
        if eventLoop.inEventLoop {
            body(core.value)
        } else {
            eventLoop.execute { body(self.core.value) }
        }
    }
}
