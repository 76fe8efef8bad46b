import Certificates
import Foundation
import Logging
import NIOCore
import NIOPosix
import PeerTransport
import RaftCore
import Synchronization

/// Certificates for nodes 1 to 3 of one cluster, made once; and those of a stranger's authority.
enum Fixtures {
    static let ours = make()
    static let strangers = make()

    private static func make() -> CertificateFolder {
        let path = FileManager.default.temporaryDirectory.path + "/zonekeeper-transport-" + UUID().uuidString
        do {
            let folder = try CertificateFolder.create(path: path, now: Date())
            for node in 1...3 { try folder.issueNode(nodeID: UInt64(node), now: Date()) }
            return folder
        } catch {
            fatalError("no certificates for the tests: \(error)")
        }
    }

    static func tls(_ node: UInt64, authority: CertificateFolder = ours, leaf: CertificateFolder = ours) -> PeerTLS {
        let files = leaf.node(node)
        return PeerTLS(
            authorityPath: authority.path + "/peer-ca.pem", certificatePath: files.peerCertificatePath,
            keyPath: files.peerKeyPath)
    }
}

/// How a test node answers requests.
typealias Serve =
    @Sendable (_ request: [UInt8], _ reply: @escaping @Sendable (Result<[UInt8], PeerTransportError>) -> Void) -> Void

extension PeerPresence {
    /// A node of the present build whose clock stands still.
    static let test = PeerPresence(build: PeerBuild(version: "7.0", levels: 2...5), wallMilliseconds: 1_000_000)
}

/// A transport in this process with its events.
final class TestNode: PeerTransportDelegate {
    let events = Events()
    let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    private let serve: Serve
    private let box = Mutex<PeerTransport?>(nil)
    private let host: String

    /// - Parameter change: adjusts the configuration, which has the node listen on a free loopback port with no peers.
    init(
        _ node: UInt64, _ change: (inout PeerTransportConfiguration) -> Void = { _ in },
        serve: @escaping Serve = { request, reply in reply(.success(request.reversed())) }
    ) throws {
        self.serve = serve
        var configuration = PeerTransportConfiguration(
            nodeID: NodeID(node), clusterID: "test", listenHost: "127.0.0.1", listenPort: 0, peers: [],
            tls: Fixtures.tls(node), incarnation: node * 100, bootCounter: 1, presence: { .test })
        // A machine that is busy for minutes makes no peer silent nor late; the tests of silence set what they need.
        configuration.silentIntervalsMax = 600
        configuration.handshakeTimeout = .minutes(10)
        change(&configuration)
        host = configuration.listenHost
        let transport = try PeerTransport(
            configuration: configuration, eventLoop: eventLoop, delegate: self, logger: events.logger)
        box.withLock { $0 = transport }
    }

    var transport: PeerTransport {
        box.withLock { transport in
            guard let transport else { preconditionFailure("set in init") }
            return transport
        }
    }

    func start() async throws { try await transport.start().get() }

    /// Starts this node and another one, and dials the other as node 2.
    func start(with other: TestNode) async throws {
        try await start()
        try await other.start()
        try await connect(to: other, as: 2)
    }

    func stop() async throws { try await transport.shutdown().get() }

    /// Where the node listens.
    func address(as node: UInt64) -> PeerAddress {
        PeerAddress(node: NodeID(node), host: host, port: transport.port ?? 0)
    }

    /// Dials another node and waits until every channel is ready.
    func connect(to other: TestNode, as node: UInt64) async throws {
        transport.update(peers: [other.address(as: node)])
        try await connected(to: node)
    }

    func connected(to node: UInt64) async throws {
        try await events.wait(for: "connections to \(node)") { events in
            PeerChannel.allCases.allSatisfy { channel in
                events.contains {
                    if case .connected(let peer, channel) = $0 { peer.node == NodeID(node) } else { false }
                }
            }
        }
    }

    /// Runs something on the node's loop.
    func onLoop<Value: Sendable>(_ body: @escaping @Sendable (PeerTransport) -> Value) async throws -> Value {
        let transport = transport
        return try await eventLoop.submit { body(transport) }.get()
    }

    // MARK: Delegate

    func peerConnected(_ peer: PeerIdentity, channel: PeerChannel) {
        eventLoop.preconditionInEventLoop()
        events.record(.connected(peer, channel))
    }

    func peerDisconnected(_ node: NodeID, channel: PeerChannel) { events.record(.disconnected(node, channel)) }

    func peerIntroduced(_ peer: PeerIdentity, channel: PeerChannel) { events.record(.introduced(peer, channel)) }

    func peerClock(of node: NodeID, ahead: ClosedRange<Int64>) { events.record(.clock(node, ahead: ahead)) }

    func receiveRaft(_ messages: [PeerMessage], from node: NodeID) {
        eventLoop.preconditionInEventLoop()
        events.record(.raft(messages, node))
    }

    func serve(
        _ request: [UInt8], from node: NodeID, channel: PeerChannel,
        reply: @escaping @Sendable (Result<[UInt8], PeerTransportError>) -> Void
    ) {
        events.record(.served(request, node, channel))
        serve(request, reply)
    }
}

/// A message that is told apart by its number, with a payload if `bytes` is given.
func message(_ number: UInt64, bytes: Int = 0) -> PeerMessage {
    let body: Message.Body
    if bytes == 0 {
        body = .heartbeatRequest(commit: LogIndex(number), round: number)
    } else {
        let command = [UInt8](repeating: UInt8(number % 251), count: bytes)
        let entry = Entry(index: LogIndex(number + 101), term: Term(1), payload: .command(command))
        let previous = LogPosition(index: LogIndex(number + 100), term: Term(1))
        body = .appendRequest(AppendRequest(previous: previous, entries: [entry], commit: .zero))
    }
    return PeerMessage(
        group: GroupID(number % 5),
        message: Message(from: ReplicaID(rawValue: 1), to: ReplicaID(rawValue: 2), term: Term(1), body: body))
}
