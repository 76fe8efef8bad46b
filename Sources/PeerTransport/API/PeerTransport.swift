package import Logging
package import NIOCore
package import RaftCore
import Synchronization

/// Connections of one node to its peers: framed TCP with mutual TLS.
///
/// Every peer is dialled on every channel, for ever, with back-off; connections of peers are accepted. Raft messages of
/// one sender arrive in order or not at all; requests have an answer or an error that says whether the outcome is
/// known. A peer is who its certificate says, or is refused.
///
/// Everything happens on one event loop. Certificates are read when the transport is made, and again when their files
/// change: new connections, incoming and outgoing, use the new ones, and connections that stand are left alone.
package final class PeerTransport: PeerNetwork {
    /// The loop that the delegate is called on and `send` must be called on.
    package let eventLoop: any EventLoop
    private let core: NIOLoopBoundBox<TransportCore>
    private let counterBox: CounterBox
    private let portBox = Mutex<Int?>(nil)

    /// Reads the certificates; opens no socket.
    /// - Parameter delegate: held weakly.
    /// - Throws: `PeerTransportError.badCertificate`, naming the file.
    package convenience init(
        configuration: PeerTransportConfiguration, eventLoop: any EventLoop, delegate: any PeerTransportDelegate,
        logger: Logger
    ) throws(PeerTransportError) {
        let counters = CounterBox()
        let wire = try SocketWire(configuration, eventLoop: eventLoop, counters: counters, logger: logger)
        self.init(
            configuration, eventLoop: eventLoop, wire: wire, random: { .random(in: .min ... .max) }, delegate: delegate,
            counters: counters, logger: logger)
    }

    /// Connects over another wire than sockets.
    /// - Parameters:
    ///   - random: for the pauses between attempts to connect.
    ///   - delegate: held weakly.
    package convenience init(
        configuration: PeerTransportConfiguration, eventLoop: any EventLoop, wire: sending any PeerWire,
        random: @escaping @Sendable () -> UInt64, delegate: any PeerTransportDelegate, logger: Logger
    ) {
        self.init(
            configuration, eventLoop: eventLoop, wire: wire, random: random, delegate: delegate,
            counters: CounterBox(), logger: logger)
    }

    private init(
        _ configuration: PeerTransportConfiguration, eventLoop: any EventLoop, wire: sending any PeerWire,
        random: @escaping @Sendable () -> UInt64, delegate: any PeerTransportDelegate, counters: CounterBox,
        logger: Logger
    ) {
        precondition(
            configuration.frameBytesMax <= configuration.outboundBytesMax,
            "frameBytesMax \(configuration.frameBytesMax) exceeds outboundBytesMax \(configuration.outboundBytesMax)")
        let core = TransportCore(
            shared: TransportShared(
                configuration: configuration, eventLoop: eventLoop, delegate: delegate, logger: logger,
                counters: counters, wire: wire, random: random))
        self.eventLoop = eventLoop
        self.core = .makeBoxSendingValue(core, eventLoop: eventLoop)
        counterBox = counters
    }

    /// As `PeerNetwork` says.
    package func start() -> EventLoopFuture<Void> {
        eventLoop.flatSubmit { self.core.value.start() }.map { port in self.portBox.withLock { $0 = port } }
    }

    /// The port listened on, once `start` has succeeded. Any thread.
    package var port: Int? { portBox.withLock { $0 } }

    /// As `PeerNetwork` says; takes effect on the loop.
    package func update(peers: [PeerAddress]) {
        onLoop { $0.update(peers: peers) }
    }

    /// Sends Raft messages in order. Messages sent to one node within one tick of the loop share a frame. Dropped
    /// messages are counted. On the event loop only.
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

    /// As `PeerNetwork` says; requests that wait fail with `disconnected`.
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

/// What a `PeerTransport` tells its owner. Everything is called on the transport's event loop and must not block it.
package protocol PeerTransportDelegate: AnyObject, Sendable {
    /// An outgoing connection is ready: the peer is who was dialled.
    func peerConnected(_ peer: PeerIdentity, channel: PeerChannel)

    /// An outgoing connection that was ready is gone. The transport dials again by itself.
    func peerDisconnected(_ node: NodeID, channel: PeerChannel)

    /// A peer has connected to this node and proved who it is. Does nothing unless implemented.
    func peerIntroduced(_ peer: PeerIdentity, channel: PeerChannel)

    /// A peer that this node dialled has told its clock: in its hello, and every ping interval from then on. Does
    /// nothing unless implemented.
    /// - Parameter ahead: how far it is ahead of this node's, in milliseconds (see `PeerClockComparison`).
    func peerClock(of node: NodeID, ahead: ClosedRange<Int64>)

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
    /// Does nothing.
    package func peerIntroduced(_ peer: PeerIdentity, channel: PeerChannel) {}
    /// Does nothing.
    package func peerClock(of node: NodeID, ahead: ClosedRange<Int64>) {}
}

/// A Raft message and the group it belongs to. Messages to one peer arrive in the order they were sent, or not at all.
package struct PeerMessage: Hashable, Sendable {
    /// The Raft group.
    package var group: GroupID
    /// The message of the group.
    package var message: Message

    package init(group: GroupID, message: Message) {
        self.group = group
        self.message = message
    }
}

/// How a node reaches its peers: a `PeerTransport`, or what watches one in a simulation.
///
/// Raft messages of one sender arrive in order or not at all; requests end with an answer or a `PeerTransportError`
/// that says whether the outcome is known.
package protocol PeerNetwork: Sendable {
    /// Begins to listen and to dial. Any thread, once.
    /// - Returns: succeeds when peers can connect; fails with `PeerTransportError.cannotListen`.
    func start() -> EventLoopFuture<Void>
    /// Replaces the list of peers: new ones are dialled, those gone are let go, the others are not disturbed. Any
    /// thread.
    func update(peers: [PeerAddress])
    /// Sends Raft messages in order, or drops them where the node is not connected or too much waits. On the event loop
    /// only.
    func send(_ messages: [PeerMessage], to node: NodeID)
    /// Asks a peer and waits for its answer. Any thread.
    func request(
        _ payload: [UInt8], to node: NodeID, channel: PeerChannel, timeout: TimeAmount
    ) -> EventLoopFuture<[UInt8]>
    /// Whether a peer can be sent to now. On the event loop only.
    func isConnected(_ node: NodeID, channel: PeerChannel) -> Bool
    /// Says goodbye to every peer and closes; requests that wait fail. Any thread; idempotent.
    func shutdown() -> EventLoopFuture<Void>
    /// What it has done so far. Any thread.
    var counters: PeerTransportCounters { get }
}

/// What a transport has done since it was made.
package struct PeerTransportCounters: Hashable, Sendable {
    /// Frames written.
    package var framesSent: UInt64 = 0
    /// Frames read.
    package var framesReceived: UInt64 = 0
    /// Bytes of frames before TLS.
    package var bytesSent: UInt64 = 0
    /// Bytes of frames read.
    package var bytesReceived: UInt64 = 0
    /// Raft messages written.
    package var messagesSent: UInt64 = 0
    /// Raft messages read.
    package var messagesReceived: UInt64 = 0
    /// Raft messages dropped because the peer was not connected.
    package var messagesDroppedNotConnected: UInt64 = 0
    /// Raft messages dropped because `outboundBytesMax` was reached.
    package var messagesDroppedFull: UInt64 = 0
    /// Raft messages dropped because they do not fit a frame: a fault of the sender.
    package var messagesDroppedTooLarge: UInt64 = 0
    /// Both.
    package var messagesDropped: (tooLarge: UInt64, full: UInt64) { (messagesDroppedTooLarge, messagesDroppedFull) }
    /// Requests sent to peers.
    package var requestsSent: UInt64 = 0
    /// Requests of peers that were answered.
    package var requestsServed: UInt64 = 0
    /// Requests without an answer in time.
    package var requestsTimedOut: UInt64 = 0
    /// Attempts to connect to peers.
    package var dials: UInt64 = 0
    /// Connections this node refused: wrong certificate, cluster, version, or not the peer protocol.
    package var connectionsRefused: UInt64 = 0
    /// Incoming connections closed because too many, in all or of the same address, had not authenticated yet.
    package var connectionsOverLimit: UInt64 = 0
    /// How often changed certificate files were read and taken into use.
    package var certificateReloads: UInt64 = 0

    package init() {}
}

/// Counters that the event loop writes and any thread reads.
final class CounterBox: Sendable {
    private let counters = Mutex(PeerTransportCounters())

    var current: PeerTransportCounters { counters.withLock { $0 } }

    func update(_ change: (inout PeerTransportCounters) -> Void) { counters.withLock { change(&$0) } }
}
