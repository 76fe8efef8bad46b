import Certificates
import Foundation
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import Synchronization
import TestSupport
import Testing

@testable import WebServices

extension WaitingClusterSuites {
    @Suite("Handshakes that are allowed, and certificates that change", .timeLimit(.minutes(10)))
    struct HandshakeTests {
        /// A handshake that must fail on both listeners of a node.
        struct BadHandshake: Sendable {
            var name: String
            /// Arguments of `openssl s_client`, or what is sent without any TLS.
            var openssl: [String]?
            var bytes: [UInt8] = []
            /// The alert that the client port, and the peer port, must end the handshake with; nil for any end.
            var clientAlert: String?
            var peerAlert: String?

            init(
                _ name: String, _ openssl: [String], _ clientAlert: String = "handshake failure",
                peerAlert: String = "protocol version"
            ) {
                (self.name, self.openssl) = (name, openssl)
                (self.clientAlert, self.peerAlert) = (clientAlert, peerAlert)
            }

            init(name: String, bytes: [UInt8]) { (self.name, self.bytes) = (name, bytes) }
        }

        private static let hello: [UInt8] = [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3] + [UInt8](repeating: 7, count: 194)

        static let badHandshakes = [
            BadHandshake("TLS 1.0", ["-tls1", "-cipher", "ALL@SECLEVEL=0"], "protocol version"),
            BadHandshake("TLS 1.1", ["-tls1_1", "-cipher", "ALL@SECLEVEL=0"], "protocol version"),
            BadHandshake("CBC with SHA-1", ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"]),
            BadHandshake("CBC with SHA-256", ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"]),
            BadHandshake("CBC with SHA-384", ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA384"]),
            BadHandshake("no forward secrecy", ["-tls1_2", "-cipher", "AES256-GCM-SHA384"]),
            BadHandshake("no certificate of ours", ["-tls1_2", "-cipher", "ADH-AES128-GCM-SHA256:@SECLEVEL=0"]),
            BadHandshake("no encryption", ["-tls1_2", "-cipher", "ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0"]),
            BadHandshake("CCM", ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-CCM8"]),
            BadHandshake("finite fields", ["-tls1_3", "-groups", "ffdhe2048"], peerAlert: "handshake failure"),
            BadHandshake(
                "RSA signatures only", ["-tls1_3", "-sigalgs", "rsa_pss_rsae_sha256"], peerAlert: "handshake failure"),
            BadHandshake(
                "CCM in TLS 1.3", ["-tls1_3", "-ciphersuites", "TLS_AES_128_CCM_SHA256"], peerAlert: "handshake failure"
            ),
            BadHandshake(name: "plain HTTP", bytes: EdgeUnderTest.request),
            BadHandshake(name: "words", bytes: Array("hello, is it a node you are looking for?\r\n".utf8)),
            BadHandshake(name: "zeros", bytes: [UInt8](repeating: 0, count: 1_000)),
            BadHandshake(name: "a record that is too long", bytes: [22, 3, 1, 0xFF, 0xFF] + Self.hello),
            BadHandshake(name: "an empty record", bytes: [22, 3, 1, 0, 0] + Self.hello),
            BadHandshake(name: "data before the handshake", bytes: [23, 3, 3, 0, 5, 1, 2, 3, 4, 5]),
            BadHandshake(name: "an alert", bytes: [21, 3, 3, 0, 2, 2, 40]),
            BadHandshake(name: "a change of cipher first", bytes: [20, 3, 3, 0, 1, 1] + Self.hello),
            BadHandshake(name: "SSL 2", bytes: [0x80, 0x2E, 1, 0, 2, 0, 21, 0, 0, 0, 16] + Self.hello),
            BadHandshake(name: "a hello of nonsense", bytes: Self.hello),
            BadHandshake(name: "a hello of a server", bytes: [22, 3, 3, 0, 4, 2, 0, 0, 0]),
        ]

        @Test("what is allowed is allowed: TLS 1.2 and 1.3 with AEAD, no compression, no renegotiation")
        func goodHandshakes() async throws {
            try await EdgeUnderTest.run { edge in
                for suite in [
                    "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305",
                ] {
                    let answer = try OpenSSL.connect(edge.port, ["-tls1_2", "-cipher", suite])
                    #expect(answer.status == 0 && answer.text.contains("Cipher is \(suite)"), "\(answer.text)")
                    #expect(answer.text.contains("Compression: NONE"))
                    #expect(answer.text.contains("Secure Renegotiation IS supported"))
                }
                for (offer, choice) in [("http/1.1,h2", "h2"), ("http/1.1", "http/1.1")] {
                    let newest = try OpenSSL.connect(edge.port, ["-tls1_3", "-alpn", offer])
                    #expect(newest.status == 0 && newest.text.contains("ALPN protocol: \(choice)"), "\(newest.text)")
                }
                let again = try OpenSSL.connect(edge.port, ["-tls1_2", "-legacy_renegotiation"], saying: "R\n")
                #expect(again.status != 0 && again.text.contains("RENEGOTIATING"), "\(again.text)")
            }
        }

        @Test("a certificate that changes is used by new connections; one that is of no use is not")
        func reload() async throws {
            let folder = FileManager.default.temporaryDirectory.path + "/zonekeeper-reload-" + UUID().uuidString
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let certificates = try CertificateFolder.create(path: folder, now: Date())
            let files = try certificates.issueNode(nodeID: 1, now: Date())
            let log = LineLog()
            try await EdgeUnderTest.run(files: files, logger: log.logger) { edge in
                func serial() throws -> String { try OpenSSL.serial(port: edge.port) }
                let held = try await edge.client(saying: [])
                try await held.awaitHandshake()
                let first = try serial()
                #expect(try serial() == first)
                try certificates.renew(now: Date())
                let second = try serial()
                #expect(second != first)
                #expect(log.text.contains("info: the client certificate has changed"))
                // Of no use: no certificate, another key's, one that has expired.
                let good = try Data(contentsOf: URL(filePath: files.serverCertificatePath))
                let other = try Data(
                    contentsOf: URL(filePath: EdgeUnderTest.certificates.node(1).serverCertificatePath))
                try certificates.renew(now: Date() - 7_200, lifetime: 3_600)
                let expired = try Data(contentsOf: URL(filePath: files.serverCertificatePath))
                for (bad, problem) in [(Data("x".utf8), ""), (other, ""), (Data(), ""), (expired, "expired")] {
                    try bad.write(to: URL(filePath: files.serverCertificatePath))
                    #expect(try serial() == second)
                    #expect(log.lines.last?.hasPrefix("warning: the client certificate") == true, "\(log.text)")
                    #expect(problem.isEmpty || log.lines.last?.contains(problem) == true, "\(log.text)")
                    let said = log.lines.count
                    #expect(try serial() == second)
                    #expect(log.lines.count == said, "told once: \(log.text)")
                }
                try FileManager.default.removeItem(atPath: files.serverKeyPath)
                #expect(try serial() == second)
                try good.write(to: URL(filePath: files.serverCertificatePath))
                #expect(try serial() == second)
            }
        }

        @Test("`certs renew` is enough for a running cluster: both ports show what is new, and the nodes stay together")
        func renew() async throws {
            let cluster = try ProcessCluster(nodeCount: 2)
            try await cluster.startAll()
            let clientPort = cluster.clientPorts[0]
            let peerPort = try Self.peerPort(of: cluster)
            let before = (try OpenSSL.serial(port: clientPort), try OpenSSL.serial(port: peerPort))
            let renewed = try ServerProcess.run(["certs", "renew", "--config", cluster.configPath])
            try #require(renewed.status == 0, "\(renewed.errors)")
            try await awaitState("both ports show new certificates") {
                (try OpenSSL.serial(port: clientPort), try OpenSSL.serial(port: peerPort))
            } until: {
                $0.0 != before.0 && $0.1 != before.1
            }
            // A node that starts now, with the new ones, is let in by one that runs with them since a moment ago.
            cluster.kill(2)
            try cluster.start(2)
            try await cluster.awaitReady(2)
            try await cluster.awaitReady(1)
        }

        fileprivate static func peerPort(of cluster: ProcessCluster) throws -> Int {
            let text = try String(contentsOfFile: cluster.configPath, encoding: .utf8)
            let found = try #require(text.firstMatch(of: /"peerPort": (\d+)/))
            return try #require(Int(found.1))
        }
    }
}

extension ClusterSuites.Shared {
    @Suite("Handshakes that are refused")
    struct BadHandshakeTests {
        @Test("each bad handshake is refused on each listener of a node, which goes on serving")
        func bothListeners() async throws {
            let cluster = try await SharedCluster.tenant()
            let ports = try [
                (cluster.clientPorts[0], true), (WaitingClusterSuites.HandshakeTests.peerPort(of: cluster), false),
            ]
            for (port, isClient) in ports {
                for handshake in WaitingClusterSuites.HandshakeTests.badHandshakes {
                    let what = "\(handshake.name) on the \(isClient ? "client" : "peer") port"
                    guard let arguments = handshake.openssl else {
                        let client = try await RawClient(port: port, tls: nil, saying: handshake.bytes)
                        let answer = try await client.untilClosed()
                        // An alert, or nothing.
                        #expect(answer.isEmpty || answer.first == 21, "\(what): \(answer.prefix(40))")
                        continue
                    }
                    let answer = try OpenSSL.connect(port, arguments)
                    #expect(answer.status != 0, "\(what): \(answer.text)")
                    let alert = isClient ? handshake.clientAlert : handshake.peerAlert
                    #expect(answer.text.contains("alert \(alert ?? "")"), "\(what): \(answer.text)")
                }
            }
            // Nobody without a node's certificate gets past the peer port's handshake.
            let certs = cluster.folder + "/data/certs"
            let strangers: [(String, [String], String)] = [
                ("no certificate", [], "certificate required"),
                (
                    "a certificate of the client port",
                    ["-cert", certs + "/node-1/server.pem", "-key", certs + "/node-1/server.key"], "unknown ca"
                ),
            ]
            for (name, arguments, alert) in strangers {
                let answer = try OpenSSL.connect(ports[1].0, ["-tls1_3", "-ign_eof"] + arguments)
                #expect(answer.status != 0 && answer.text.contains("alert \(alert)"), "\(name): \(answer.text)")
            }
            try await awaitTrue("the node goes on serving") {
                try await cluster.client.get("/health/ready", node: 0).status == 200
            }
        }
    }
}

/// The system's `openssl`, as a client that is not made of what is tested.
enum OpenSSL {
    /// Does a handshake and ends, after saying a line if need be.
    static func connect(_ port: Int, _ arguments: [String], saying line: String = "") throws -> FinishedProgram {
        try FinishedProgram(["openssl", "s_client", "-connect", "127.0.0.1:\(port)"] + arguments, input: line)
    }

    /// The certificate that a port shows, in PEM form.
    static func serial(port: Int) throws -> String {
        let text = try connect(port, ["-tls1_3"]).text
        let found = text.firstMatch(of: /-----BEGIN CERTIFICATE-----[^-]+/)
        return try require(found.map { String($0.0) }, "no certificate: \(text)")
    }
}

/// Log lines with their levels.
final class LineLog: Sendable {
    private let all = Mutex<[String]>([])
    var lines: [String] { all.withLock { $0 } }
    var text: String { lines.joined(separator: "\n") }
    var logger: Logger { Logger(label: "lines") { _ in Handler(log: self) } }

    private struct Handler: LogHandler {
        let log: LineLog
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }
        func log(event: LogEvent) {
            log.all.withLock { $0.append("\(event.level): \(event.message)") }
        }
    }
}

/// A client that sends what a test wants, with or without TLS, and keeps what comes back.
final class RawClient: Sendable {
    private let channel: any Channel
    private let bytes: Ear.Shared

    /// - Parameters:
    ///   - isReading: false for a client that takes nothing.
    ///   - address: the client's own.
    init(
        port: Int, tls: TLSConfiguration?, saying greeting: [UInt8], isReading: Bool = true,
        from address: String = "127.0.0.1"
    ) async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let shared = Ear.Shared(loop)
        bytes = shared
        let context = try tls.map { try NIOSSLContext(configuration: $0) }
        channel = try await ClientBootstrap(group: loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let context {
                        try pipeline.addHandler(NIOSSLClientHandler(context: context, serverHostname: nil))
                    }
                    try pipeline.addHandler(Ear(shared, greeting: greeting, isReading: isReading, hasTLS: tls != nil))
                }
            }
            .bind(to: SocketAddress(ipAddress: address, port: 0))
            .connect(host: "127.0.0.1", port: port).get()
    }

    /// All that came, once the connection is closed.
    func untilClosed() async throws -> [UInt8] { try await bytes.closed.futureResult.get() }

    func awaitHandshake() async throws { try await bytes.handshake.futureResult.get() }

    /// Waits for the first bytes.
    func awaitBytes() async throws { try await bytes.first.futureResult.get() }

    func close() { channel.close(promise: nil) }

    func say(_ words: String) { channel.writeAndFlush(ByteBuffer(string: words), promise: nil) }

    /// Sends this again and again until the connection ends.
    func drip(_ drop: [UInt8]) {
        let channel = channel
        let task = channel.eventLoop.scheduleRepeatedTask(initialDelay: .milliseconds(20), delay: .milliseconds(20)) {
            _ in
            channel.writeAndFlush(ByteBuffer(bytes: drop), promise: nil)
        }
        channel.closeFuture.whenComplete { _ in task.cancel() }
    }

    private final class Ear: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        struct Shared: Sendable {
            let handshake: EventLoopPromise<Void>
            let first: EventLoopPromise<Void>
            let closed: EventLoopPromise<[UInt8]>

            init(_ loop: any EventLoop) {
                handshake = loop.makePromise()
                first = loop.makePromise()
                closed = loop.makePromise()
            }
        }

        private let shared: Shared
        private let greeting: [UInt8]
        private let isReading: Bool
        private let hasTLS: Bool
        private var bytes: [UInt8] = []

        init(_ shared: Shared, greeting: [UInt8], isReading: Bool, hasTLS: Bool) {
            self.shared = shared
            self.greeting = greeting
            self.isReading = isReading
            self.hasTLS = hasTLS
        }

        func channelActive(context: ChannelHandlerContext) {
            if !hasTLS { greet(context) }
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .handshakeCompleted = event as? TLSUserEvent {
                shared.handshake.succeed()
                greet(context)
                if !isReading {
                    context.channel.setOption(.autoRead, value: false).whenFailure { _ in }
                }
            }
        }

        private func greet(_ context: ChannelHandlerContext) {
            if !greeting.isEmpty { context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: greeting)), promise: nil) }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes += unwrapInboundIn(data).readableBytesView
            shared.first.succeed()
        }

        func channelInactive(context: ChannelHandlerContext) {
            shared.closed.succeed(bytes)
            shared.handshake.fail(ChannelError.eof)
            shared.first.fail(ChannelError.eof)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
