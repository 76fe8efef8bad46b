package import NIOCore

/// Where a peer listens.
package struct PeerAddress: Hashable, Sendable {
    package var node: NodeID
    /// A DNS name or an IP address.
    package var host: String
    package var port: Int

    package init(node: NodeID, host: String, port: Int) {
        self.node = node
        self.host = host
        self.port = port
    }
}

/// The PEM files of this node's peer certificate.
package struct PeerTLS: Hashable, Sendable {
    /// The peer authority; no other is trusted.
    package var authorityPath: String
    /// This node's certificate; its SAN must name the node.
    package var certificatePath: String
    package var keyPath: String

    package init(authorityPath: String, certificatePath: String, keyPath: String) {
        self.authorityPath = authorityPath
        self.certificatePath = certificatePath
        self.keyPath = keyPath
    }
}

/// What a `PeerTransport` needs to know, and its limits.
package struct PeerTransportConfiguration: Sendable {
    /// This node.
    package var nodeID: NodeID
    /// Nodes of another cluster are refused.
    package var clusterID: String
    package var listenHost: String
    /// 0 takes a free port; `PeerTransport.port` tells which.
    package var listenPort: Int
    /// Whom to dial. This node itself may be among them and is passed over.
    package var peers: [PeerAddress]
    package var tls: PeerTLS
    /// Sent to peers in the hello (see `PeerIdentity`).
    package var incarnation: UInt64
    /// Sent to peers in the hello (see `PeerIdentity`).
    package var bootCounter: UInt64
    /// What is said in each hello of this node's program and clock. Called on the event loop.
    package var presence: @Sendable () -> PeerPresence
    /// The longest frame sent or accepted.
    package var frameBytesMax = 8 << 20
    /// The most bytes that wait for one connection; beyond it messages are dropped and requests fail. At least
    /// `frameBytesMax`.
    package var outboundBytesMax = 16 << 20
    /// The most requests of one connection that are being served at a time; more are refused.
    package var servedRequestsMax = 4_096
    /// The most incoming connections that have not authenticated yet; more are closed at once.
    package var unauthenticatedMax = 64
    /// The most of these that come from one address, so that one machine cannot keep the others' nodes out.
    package var unauthenticatedPerAddressMax = 32
    /// How long certificate files are not looked at again after a look.
    package var certificateCheckInterval: TimeAmount = .seconds(1)
    /// How long TCP, TLS and hello together may take.
    package var handshakeTimeout: TimeAmount = .seconds(5)
    /// How often the dialling side asks whether the other is there.
    package var pingInterval: TimeAmount = .seconds(1)
    /// After this many intervals without a byte the connection is given up.
    package var silentIntervalsMax = 4

    package init(
        nodeID: NodeID, clusterID: String, listenHost: String, listenPort: Int, peers: [PeerAddress], tls: PeerTLS,
        incarnation: UInt64, bootCounter: UInt64, presence: @escaping @Sendable () -> PeerPresence
    ) {
        self.nodeID = nodeID
        self.clusterID = clusterID
        self.listenHost = listenHost
        self.listenPort = listenPort
        self.peers = peers
        self.tls = tls
        self.incarnation = incarnation
        self.bootCounter = bootCounter
        self.presence = presence
    }
}
