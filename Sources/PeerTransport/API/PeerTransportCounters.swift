import Synchronization

/// What a transport has done since it was made.
package struct PeerTransportCounters: Hashable, Sendable {
    package var framesSent: UInt64 = 0
    package var framesReceived: UInt64 = 0
    /// Bytes of frames before TLS.
    package var bytesSent: UInt64 = 0
    package var bytesReceived: UInt64 = 0
    package var messagesSent: UInt64 = 0
    package var messagesReceived: UInt64 = 0
    /// Raft messages dropped because the peer was not connected.
    package var messagesDroppedNotConnected: UInt64 = 0
    /// Raft messages dropped because `outboundBytesMax` was reached.
    package var messagesDroppedFull: UInt64 = 0
    /// Raft messages dropped because they do not fit a frame: a fault of the sender.
    package var messagesDroppedTooLarge: UInt64 = 0
    package var requestsSent: UInt64 = 0
    package var requestsServed: UInt64 = 0
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
