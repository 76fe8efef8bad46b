import Certificates
import NIOCore
import NIOPosix
import NIOSSL
import Wire

@testable import PeerTransport

/// A client that says to a transport's port whatever a test wants, with or without TLS.
final class RawPeer: Sendable {
    let events = Events()
    let channel: any Channel

    /// - Parameters:
    ///   - tls: how to do TLS; nil for plain TCP.
    ///   - bytes: sent as soon as the connection is up.
    init(port: Int, tls: TLSConfiguration?, saying bytes: [UInt8] = []) async throws {
        let events = events
        let context = try tls.map { try NIOSSLContext(configuration: $0) }
        channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton.next())
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let context {
                        try pipeline.addHandler(try NIOSSLClientHandler(context: context, serverHostname: nil))
                    }
                    try pipeline.addHandler(Ear(events: events, greeting: bytes))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
    }

    func say(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    func close() { channel.close(promise: nil) }

    /// The reason of the goodbye that came, once the connection is closed.
    func goodbye() async throws -> String? {
        try await events.wait(for: .closed)
        return try frames().first { $0.kind == .goodbye }.map { try Goodbye(decoding: $0.payload).reason }
    }

    /// The frames that came so far.
    func frames() throws -> [Frame] {
        var buffer = ByteBuffer()
        for case .bytes(let bytes) in events.all { buffer.writeBytes(bytes) }
        var decoder = FrameDecoder(frameBytesMax: 1 << 20)
        var frames: [Frame] = []
        while let frame = try decoder.decode(buffer: &buffer) { frames.append(frame) }
        return frames
    }

    private final class Ear: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        let events: Events
        let greeting: [UInt8]

        init(events: Events, greeting: [UInt8]) {
            self.events = events
            self.greeting = greeting
        }

        func channelActive(context: ChannelHandlerContext) {
            if !greeting.isEmpty { context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: greeting)), promise: nil) }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            events.record(.bytes(Array(unwrapInboundIn(data).readableBytesView)))
        }

        func channelInactive(context: ChannelHandlerContext) { events.record(.closed) }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}

/// TLS as a client of our peer authority.
/// - Parameter files: the certificate to show; none if nil.
func clientTLS(_ files: (certificate: String, key: String)?) throws -> TLSConfiguration {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(Fixtures.ours.path + "/peer-ca.pem"))
    tls.certificateVerification = .noHostnameVerification
    if let files {
        tls.certificateChain = try NIOSSLCertificate.fromPEMFile(files.certificate).map { .certificate($0) }
        tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: files.key, format: .pem))
    }
    return tls
}

/// TLS with a node's peer certificate.
func peerTLS(_ node: UInt64) throws -> TLSConfiguration {
    let files = Fixtures.ours.node(node)
    return try clientTLS((files.peerCertificatePath, files.peerKeyPath))
}

/// The bytes of a hello frame, as node 2 of the test cluster would send it unless changed.
func helloBytes(node: UInt64 = 2, channel: PeerChannel = .raft, _ change: (inout Hello) -> Void = { _ in }) -> [UInt8] {
    var hello = Hello(
        PeerTransportConfiguration(
            nodeID: NodeID(node), clusterID: "test", listenHost: "", listenPort: 0, peers: [], tls: Fixtures.tls(2),
            incarnation: 7, bootCounter: 1, presence: { .test }), channel: channel)
    change(&hello)
    var buffer = OutboundBuffer(frameBytesMax: 1 << 20)
    _ = buffer.append(.hello) { hello.encode(to: &$0) }
    return buffer.take()
}

extension WireEncodable {
    var encodedCount: Int { encoded().count }
}
