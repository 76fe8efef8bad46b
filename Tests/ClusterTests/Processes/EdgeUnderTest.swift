import Certificates
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import RecordModel
import ServiceLifecycle
import Synchronization
import Testing

@testable import WebServices

/// A client port in this process with an echo behind it.
struct EdgeUnderTest: Sendable {
    static let certificates: CertificateFolder = {
        let path = FileManager.default.temporaryDirectory.path + "/zonekeeper-edge-" + UUID().uuidString
        do {
            let folder = try CertificateFolder.create(path: path, now: Date())
            try folder.issueNode(nodeID: 1, now: Date())
            return folder
        } catch { fatalError("no certificates for the tests: \(error)") }
    }()
    static let request = Array("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8)

    let server: WebServer
    let port: Int
    /// How writes of the large and the endless answer ended, and bodies that were sent to `/upload`.
    let writeEnds: AsyncStream<String>
    /// Requests to `/held`, each of which is answered once it is resumed.
    let held: AsyncStream<CheckedContinuation<Void, Never>>
    /// What the edge refused.
    let refusals: Refusals
    private let group: ServiceGroup

    final class Refusals: Sendable {
        private let refused = Mutex<[(refusal: EdgeRefusal, id: UUIDv7)]>([])

        var all: [(refusal: EdgeRefusal, id: UUIDv7)] { refused.withLock(\.self) }

        func add(_ refusal: EdgeRefusal, _ id: UUIDv7) { refused.withLock { $0.append((refusal, id)) } }
    }

    static func run(
        _ change: (inout EdgeLimits) -> Void = { _ in },
        files: NodeCertificates = certificates.node(1),
        logger: Logger = Logger(label: "edge") { _ in SwiftLogNoOpLogHandler() },
        pass: @escaping EdgePass = { _, _ in false },
        _ body: (EdgeUnderTest) async throws -> Void
    ) async throws {
        var settings = WebServerSettings(
            host: "127.0.0.1", port: 0, certificatePath: files.serverCertificatePath, keyPath: files.serverKeyPath)
        settings.certificateCheckInterval = .zero
        settings.limits.lingerTimeout = .milliseconds(100)
        change(&settings.limits)
        let (writeEnds, ended) = AsyncStream.makeStream(of: String.self)
        let (ports, listening) = AsyncStream.makeStream(of: Int.self)
        let (held, holding) = AsyncStream.makeStream(of: CheckedContinuation<Void, Never>.self)
        let responder = EchoResponder(ended: ended, holding: holding)
        let refusals = Refusals()
        let server = try WebServer(
            settings, responder: responder, logger: logger, pass: pass,
            onRefusal: { refusal, id, _ in refusals.add(refusal, id) }
        ) { listening.yield($0) }
        let group = ServiceGroup(configuration: ServiceGroupConfiguration(services: [server], logger: logger))
        async let running: Void = group.run()
        var iterator = ports.makeAsyncIterator()
        let port = try #require(await iterator.next())
        let result: Result<Void, any Error>
        let edge = EdgeUnderTest(
            server: server, port: port, writeEnds: writeEnds, held: held, refusals: refusals, group: group)
        do { result = .success(try await body(edge)) } catch { result = .failure(error) }
        await group.triggerGracefulShutdown()
        try await running
        try result.get()
    }

    /// Small time-outs, for tests of clients that run into them. Whatever else a test does with a client would fail
    /// where the machine stands still for so long.
    static func impatient(_ limits: inout EdgeLimits) {
        limits.handshakeTimeout = .seconds(3)
        limits.headersTimeout = .seconds(1)
        limits.bodyWindow = .seconds(1)
        limits.writeWindow = .seconds(1)
    }

    /// Begins to stop the server, as a signal does.
    func stop() async { await group.triggerGracefulShutdown() }

    func client(
        saying bytes: [UInt8], isReading: Bool = true, from address: String = "127.0.0.1"
    ) async throws -> RawClient {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        return try await RawClient(port: port, tls: tls, saying: bytes, isReading: isReading, from: address)
    }

    /// A connection that has been answered once, and thus has its place.
    func ready(from address: String = "127.0.0.1") async throws -> RawClient {
        let client = try await client(saying: Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8), from: address)
        try await client.awaitBytes()
        return client
    }
}

/// Answers with the client's address and the number of bytes that it sent; on `/thread` with the kind of thread.
struct EchoResponder: HTTPResponder {
    typealias Context = EdgeContext
    static let largeBytes = 64 << 20

    let ended: AsyncStream<String>.Continuation
    let holding: AsyncStream<CheckedContinuation<Void, Never>>.Continuation

    func respond(to request: Request, context: EdgeContext) async throws -> Response {
        if request.head.path == "/large" || request.head.path == "/endless" {
            // Many parts may be taken from here before the loop has a turn and says to wait: small ones where nothing
            // says how many, or the edge would end the answer for what waits, and not for its reader.
            let isEndless = request.head.path == "/endless"
            let body = ResponseBody(contentLength: isEndless ? nil : Self.largeBytes) { writer in
                do {
                    let part = ByteBuffer(repeating: 0x61, count: isEndless ? 1 << 10 : 64 << 10)
                    for _ in 0..<(isEndless ? Int.max : Self.largeBytes >> 16) { try await writer.write(part) }
                    try await writer.finish(nil)
                    ended.yield("done")
                } catch {
                    ended.yield("failed")
                    throw error
                }
            }
            return Response(status: .ok, headers: [:], body: body)
        }
        if request.head.path == "/upload" {
            do {
                for try await _ in request.body { ended.yield("began") }
                ended.yield("whole")
            } catch {
                ended.yield("cut")
                throw error
            }
        }
        if request.head.path == "/held" { await withCheckedContinuation { _ = holding.yield($0) } }
        let body = try await request.body.collect(upTo: 1 << 20)
        let headers: HTTPFields = request.head.path == "/closing" ? [.connection: "close"] : [:]
        let thread = MultiThreadedEventLoopGroup.currentEventLoop == nil ? "pool" : "event loop"
        let text =
            request.head.path == "/thread" ? thread : "\(context.remoteAddress ?? "nobody") \(body.readableBytes)"
        return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}
