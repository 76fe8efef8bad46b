package import NIOCore
import Wire

/// Where a peer listens.
package struct PeerAddress: Hashable, Sendable {
    /// The node.
    package var node: NodeID
    /// A DNS name or an IP address.
    package var host: String
    /// The TCP port.
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
    /// The path of the private key.
    package var keyPath: String

    package init(authorityPath: String, certificatePath: String, keyPath: String) {
        self.authorityPath = authorityPath
        self.certificatePath = certificatePath
        self.keyPath = keyPath
    }
}

/// The configuration of a `PeerTransport`, with its limits.
package struct PeerTransportConfiguration: Sendable {
    /// This node.
    package var nodeID: NodeID
    /// Nodes of another cluster are refused.
    package var clusterID: String
    /// The address to listen on.
    package var listenHost: String
    /// 0 takes a free port; `PeerTransport.port` tells which.
    package var listenPort: Int
    /// The peers to dial. This node may be among them and is skipped.
    package var peers: [PeerAddress]
    /// The certificate files.
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
    /// The most of these from one address, so that one machine cannot keep other nodes out.
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

/// One node of a cluster. An id is never used twice; 0 is not a node.
package struct NodeID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible, WireValue {
    /// The id as a number.
    package var rawValue: UInt64
    /// Creates an id from its number.
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    /// Creates an id from its number.
    package init(_ value: UInt64) { rawValue = value }
    /// Orders ids by number.
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    /// The text for logs.
    package var description: String { String(rawValue) }
}

/// What a connection between two nodes carries. Each pair of nodes has one connection per direction and channel, so
/// that bulk never delays heartbeats.
package enum PeerChannel: UInt8, CaseIterable, Hashable, Sendable {
    /// Raft messages, one way; they may be lost.
    case raft = 1
    /// Forwarded operations: requests of the dialling side, responses of the other.
    case request = 2
    /// Snapshots and assets, as requests and responses.
    case bulk = 3
}

/// The identity of a peer, confirmed by its certificate and its hello.
package struct PeerIdentity: Hashable, Sendable {
    /// The node.
    package var node: NodeID
    /// The random number of the peer's data folder; another one means that the folder was lost.
    package var incarnation: UInt64
    /// How often the peer has started on that folder; a smaller one means an old image of the disk.
    package var bootCounter: UInt64
    /// The program that it runs.
    package var build: PeerBuild

    package init(
        node: NodeID, incarnation: UInt64, bootCounter: UInt64, build: PeerBuild = PeerBuild(levels: nil)
    ) {
        self.node = node
        self.incarnation = incarnation
        self.bootCounter = bootCounter
        self.build = build
    }
}

/// Why the transport failed.
package enum PeerTransportError: Error, Hashable, Sendable, CustomStringConvertible {
    /// There is no connection to the node. Nothing was sent: a retry is safe, and helps once the peer is back.
    case notConnected
    /// Too much waits for the connection already. Nothing was sent: a retry is safe, later.
    case outboundFull
    /// The request is longer than a frame may be. Nothing was sent, and a retry does not help.
    case tooLarge(bytes: Int, bytesMax: Int)
    /// The peer answered that it did not do the request.
    case refused(String)
    /// No response came in time. Whether the peer did what was asked is unknown.
    case timedOut
    /// The connection broke before the response came. Whether the peer did what was asked is unknown.
    case disconnected
    /// The peer could not send its response, for this reason. Whether it did what was asked is unknown.
    case responseLost(String)
    /// The peer's response is longer than a frame may be. It did what was asked, and a retry does not help.
    case responseTooLarge(bytes: Int, bytesMax: Int)
    /// The port cannot be listened on.
    case cannotListen(host: String, port: Int, problem: String)
    /// A certificate file cannot be used.
    case badCertificate(path: String, problem: String)

    /// Whether the peer may have done what was asked; otherwise it certainly did not.
    package var isOutcomeUnknown: Bool {
        switch self {
        case .timedOut, .disconnected, .responseLost, .responseTooLarge: true
        default: false
        }
    }

    /// What was wrong and what to do about it.
    package var description: String {
        switch self {
        case .notConnected: "not connected to the node; nothing was sent"
        case .outboundFull: "too many bytes wait for the node already; nothing was sent"
        case .tooLarge(let bytes, let bytesMax):
            "a request of \(bytes) bytes does not fit the frame limit of \(bytesMax); nothing was sent"
        case .refused(let reason): "the node refused: \(reason)"
        case .timedOut: "the node did not answer in time; the outcome is unknown"
        case .disconnected: "the connection broke before the answer came; the outcome is unknown"
        case .responseLost(let reason): "the node could not send its answer (\(reason)); the outcome is unknown"
        case .responseTooLarge(let bytes, let bytesMax):
            "the node's answer of \(bytes) bytes does not fit the frame limit of \(bytesMax)"
        case .cannotListen(let host, let port, let problem):
            "cannot listen for peers on \(host) port \(port): \(problem)"
        case .badCertificate(let path, let problem):
            "peer certificates: \(path): \(problem). Check the path, or issue the node's certificates anew."
        }
    }
}

/// The program that a node runs, as it tells its peers.
package struct PeerBuild: Hashable, Sendable {
    /// For people.
    package var version: String
    /// The feature levels that the node can follow. The least of them is at least what the cluster has reached, as far
    /// as the node knows: nodes whose levels do not overlap cannot be in one cluster. Nil: the build knows of none.
    package var levels: ClosedRange<UInt64>?

    package init(version: String = "", levels: ClosedRange<UInt64>?) {
        self.version = version
        self.levels = levels
    }

    /// Why a peer cannot be in one cluster with a node of this build, in words that have "it" for the peer; nil if it
    /// can.
    package func refusal(of peer: PeerBuild) -> String? {
        guard let levels else { return nil }
        guard let others = peer.levels else {
            return "its build is from before feature levels, and would apply the log otherwise: stop all nodes, then "
                + "start all of them with one build"
        }
        if others.overlaps(levels) { return nil }
        let both =
            "its build \(peer.version) follows feature levels \(Self.text(others)), and this node, build \(version), "
            + Self.text(levels)
        return others.upperBound < levels.lowerBound
            ? "it is too old for this cluster: \(both). Start a later build there"
            : "this node is too old for its cluster: \(both). Start a later build here"
    }

    private static func text(_ levels: ClosedRange<UInt64>) -> String {
        levels.count == 1 ? "\(levels.lowerBound)" : "\(levels.lowerBound) to \(levels.upperBound)"
    }
}

/// What a node says of itself that changes while it runs.
package struct PeerPresence: Hashable, Sendable {
    /// The running program; its least feature level rises with the cluster's.
    package var build: PeerBuild
    /// The node's clock, in milliseconds since 1970.
    package var wallMilliseconds: Int64

    package init(build: PeerBuild, wallMilliseconds: Int64) {
        self.build = build
        self.wallMilliseconds = wallMilliseconds
    }
}

/// How far a peer's clock is ahead of this node's.
package enum PeerClockComparison {
    /// The differences that are possible, in milliseconds; 0 is among them where both may show the same.
    ///
    /// The peer read its clock at some moment between this node's asking and the answer's arrival. The longer a message
    /// waited on its way, or a process was stopped, the less is known; and hardly anything where this node's clock was
    /// set meanwhile.
    /// - Parameters:
    ///   - asked: this node's clock when it asked.
    ///   - heard: this node's clock when the answer came.
    package static func ahead(peer: Int64, asked: Int64, heard: Int64) -> ClosedRange<Int64> {
        clamped(peer, max(asked, heard))...clamped(peer, min(asked, heard))
    }

    private static func clamped(_ left: Int64, _ right: Int64) -> Int64 {
        let (difference, isFar) = left.subtractingReportingOverflow(right)
        return isFar ? (left < right ? .min : .max) : difference
    }
}
