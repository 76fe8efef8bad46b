import Certificates
import Foundation
import NIOCore
import NIOPosix
import NIOSSL

/// A server over TLS that does nothing: what the load tester reaches against it is what the tester itself can do.
///
/// It answers each request with the same bytes, such as any operation of a load takes for a good answer, unless it is told otherwise.
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
                    try channel.pipeline.syncOperations.addHandlers(
                        [NIOSSLServerHandler(context: context), NullHandler(respond)]
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
                "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n"
                + body)
    }

    /// Closes it and removes its certificates.
    func shutdown() async {
        try? await channel.close()
        try? await group.shutdownGracefully()
        try? FileManager.default.removeItem(atPath: folder)
    }
}

/// Reads requests as far as their length, and answers each.
private final class NullHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private static let length = BytePattern("Content-Length: ")
    private static let headEnd = BytePattern("\r\n\r\n")
    private static let good = NullServer.answer("200 OK", goodBody)
    private let respond: NullServer.Responder?
    private var buffer = ByteBuffer()

    init(_ respond: NullServer.Responder?) { self.respond = respond }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        if buffer.readableBytes == 0 { buffer = bytes } else { buffer.writeBuffer(&bytes) }
        while let answer = takeRequest() { context.write(wrapOutboundOut(answer), promise: nil) }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// - Returns: the answer to the next request; nil until a whole one is there.
    private func takeRequest() -> ByteBuffer? {
        let sizes = buffer.withUnsafeReadableBytes { bytes -> (head: Int, body: Int)? in
            guard let end = Self.headEnd.firstMatch(in: bytes) else { return nil }
            let head = UnsafeRawBufferPointer(rebasing: bytes[..<end])
            guard let place = Self.length.firstMatch(in: head) ?? Self.lowerLength.firstMatch(in: head) else {
                return (end + Self.headEnd.count, 0)
            }
            let digits = bytes[(place + Self.length.count)...].prefix { (48...57).contains($0) }
            return (end + Self.headEnd.count, digits.reduce(0) { $0 * 10 + Int($1) - 48 })
        }
        guard let sizes, buffer.readableBytes >= sizes.head + sizes.body else { return nil }
        guard let respond else {
            buffer.moveReaderIndex(forwardBy: sizes.head + sizes.body)
            return Self.good
        }
        let words = (buffer.readString(length: sizes.head) ?? "").prefix { $0 != "\r\n" }.split(separator: " ")
        guard let body = buffer.readSlice(length: sizes.body), words.count >= 2 else { return Self.good }
        return respond(NullServer.Request(method: String(words[0]), path: String(words[1]), body: body)) ?? Self.good
    }
    private static let lowerLength = BytePattern("content-length: ")

    /// About as long as the answer to one record, with what each operation's answer must hold.
    private static let goodBody =
        #"{"records":[{"recordName":"load-0000000000","recordType":"Load","recordChangeTag":"1","fields":{"note":{"value":""#
        + LoadRecords.note(0) + #"","type":"STRING"}}}],"zones":[{"syncToken":"AAAA","moreComing":false}]}"#
}
