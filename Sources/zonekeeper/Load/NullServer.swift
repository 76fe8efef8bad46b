import Certificates
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import RecordModel
import ServiceClient

/// A server over TLS that does nothing: what the load tester reaches against it is what the tester itself can do.
///
/// It answers each request with the same bytes, such as any operation of a load takes for a good answer, unless it is
/// told otherwise.
struct NullServer: Sendable {
    struct Request: Sendable {
        var method: String
        /// With its query.
        var path: String
        var body: ByteBuffer
    }

    /// Answers a request in another way; nil leaves it with the usual answer. Called on the server's event loop.
    typealias Responder = @Sendable (Request) -> ByteBuffer?

    let port: Int
    /// Path of the CA that signed its certificate.
    let authority: String
    private let folder: String
    private let group: MultiThreadedEventLoopGroup
    private let channel: any Channel

    /// - Throws: `CertificatesError` or an error of the network, when it cannot listen on a port of 127.0.0.1.
    static func start(answering respond: Responder? = nil) async throws -> NullServer {
        let folder = NSTemporaryDirectory() + "zonekeeper-null-\(UUID().uuidString)"
        let certificates = try CertificateFolder.create(path: folder, commonName: "Zonekeeper null server", now: Date())
        let files = try certificates.issueNode(nodeID: 1, now: Date())
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(files.serverCertificatePath).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: files.serverKeyPath, format: .pem)))
        tls.minimumTLSVersion = .tlsv12
        let context = try NIOSSLContext(configuration: tls)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1_024)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let decoder = ByteToMessageHandler(HTTPRequestDecoder())
                    try channel.pipeline.syncOperations.addHandlers(
                        [NIOSSLServerHandler(context: context), decoder, NullHandler(respond)]
                            as [any ChannelHandler])
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return NullServer(
            port: channel.localAddress?.port ?? 0, authority: folder + "/client-ca.pem", folder: folder, group: group,
            channel: channel)
    }

    var url: String { "https://127.0.0.1:\(port)" }

    /// An answer's bytes.
    /// - Parameter headers: each with its line end.
    static func answer(_ status: String, _ body: String, headers: String = "") -> ByteBuffer {
        ByteBuffer(
            string:
                "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\n\(headers)Content-Length: "
                + "\(body.utf8.count)\r\n\r\n"
                + body)
    }

    func shutdown() async {
        try? await channel.close()
        try? await group.shutdownGracefully()
        try? FileManager.default.removeItem(atPath: folder)
    }
}

/// Answers each request once it is whole.
private final class NullHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    private static let good = NullServer.answer("200 OK", goodBody)
    private let respond: NullServer.Responder?
    private var request = NullServer.Request(method: "", path: "", body: ByteBuffer())

    init(_ respond: NullServer.Responder?) { self.respond = respond }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            request = NullServer.Request(method: head.method.rawValue, path: head.uri, body: ByteBuffer())
        case .body(var part): request.body.writeBuffer(&part)
        case .end: context.write(wrapOutboundOut(respond?(request) ?? Self.good), promise: nil)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// About as long as the answer to one record, with what each operation's answer must hold.
    private static let goodBody =
        #"{"records":[{"recordName":"load-0000000000","recordType":"Load","recordChangeTag":"1","#
        + #""fields":{"note":{"value":""# + LoadRecords.note(0)
        + #"","type":"STRING"}}}],"zones":[{"syncToken":"AAAA","moreComing":false}]}"#
}

/// What the load tester can do on this machine: the same requests against a server that does nothing.
struct Calibration: Sendable {
    /// Answers a second, with the null server on the same processors.
    let perSecond: Double
    /// What the tester's thread alone could count, had it been busy all the time.
    let threadCapacityPerSecond: Double
    let latencyP50Milliseconds: Double
    let latencyP99Milliseconds: Double

    static func measure(_ settings: LoadSettings, seconds: Double, stop: LoadStop) async throws -> Calibration {
        let server = try await NullServer.start()
        do {
            var settings = settings
            settings.pace = .closed(concurrency: settings.connections)
            settings.bound = LoadBound(seconds: seconds)
            settings.nodes = .even
            let run = LoadRun(
                settings: settings, targets: [try LoadTarget(server.url)],
                sessions: [LoadTokens(apiToken: "none", webAuthToken: "none")], authority: server.authority, stop: stop)
            let result = try await run.run()
            await server.shutdown()
            return Calibration(result)
        } catch {
            await server.shutdown()
            throw error
        }
    }

    init(_ result: LoadResult) {
        let tally = result.measurement.tally
        perSecond = result.seconds > 0 ? Double(tally.succeeded) / result.seconds : 0
        threadCapacityPerSecond = result.testerCPUSeconds > 0 ? Double(tally.succeeded) / result.testerCPUSeconds : 0
        latencyP50Milliseconds = tally.latencies.milliseconds(atPercentile: 50) ?? 0
        latencyP99Milliseconds = tally.latencies.milliseconds(atPercentile: 99) ?? 0
    }

    var json: [UInt8] {
        JSONValue.members([
            "perSecond": .number(perSecond), "threadCapacityPerSecond": .number(threadCapacityPerSecond),
            "p50": .number(latencyP50Milliseconds), "p99": .number(latencyP99Milliseconds),
        ]).serialized()
    }

    var text: String {
        "\(String(perSecond, digits: 0)) answers/s from a null server on this machine, which shares its processors "
            + "with the tester (\(String(threadCapacityPerSecond, digits: 0))/s for each second of the tester's "
            + "thread); median \(String(milliseconds: latencyP50Milliseconds)) ms, p99 "
            + "\(String(milliseconds: latencyP99Milliseconds)) ms. Figures of a cluster mean the cluster up to a fifth "
            + "of that, \(String(perSecond / 5, digits: 0))/s"
    }
}
