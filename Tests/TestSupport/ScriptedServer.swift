import NIOCore
package import NIOHTTP1
import NIOPosix
package import NIOSSL
import Synchronization

/// What a scripted server was asked.
package struct ScriptedRequest: Sendable {
    /// As it was on the wire.
    package var method: String
    /// The target as it was on the wire.
    package var target: String
    /// All of them.
    package var headers: HTTPHeaders
    /// The whole of it.
    package var body: [UInt8]

    /// The target without its parameters.
    package var path: String { target.split(separator: "?").first.map(String.init) ?? "" }

    /// A parameter as it was sent, still encoded.
    package func parameter(_ name: String) -> String? {
        guard let query = target.split(separator: "?", maxSplits: 1).dropFirst().first else { return nil }
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts[0] == name { return parts.count == 2 ? String(parts[1]) : "" }
        }
        return nil
    }
}

/// What it answers.
package struct ScriptedAnswer: Sendable {
    /// HTTP's.
    package var status: Int
    /// Beside the length.
    package var headers: [(String, String)]
    /// The whole of it.
    package var body: String
    /// Whether the connection is closed instead: the answer gets lost.
    package var isLost = false
    /// Whether it does not come before it is released.
    package var isKeptBack = false

    /// An empty object, unless something else is said.
    package init(status: Int = 200, headers: [(String, String)] = [], body: String = "{}") {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// An HTTP server on a port of this machine that answers from a script and keeps what it was asked.
package final class ScriptedServer: Sendable {
    private let requestLog = Mutex<[ScriptedRequest]>([])
    private let answer: @Sendable (ScriptedRequest, Int) -> ScriptedAnswer
    private let channel = Mutex<(any Channel)?>(nil)
    private let kept = Mutex<[@Sendable () -> Void]>([])

    /// - Parameter answer: the request, and how many came before it.
    private init(_ answer: @escaping @Sendable (ScriptedRequest, Int) -> ScriptedAnswer) { self.answer = answer }

    /// Runs `body` with a server, which is closed afterwards.
    /// - Parameters:
    ///   - host: an address of this machine.
    ///   - tls: with which it is an HTTPS server.
    package static func running<Value>(
        on host: String = "127.0.0.1", tls: NIOSSLContext? = nil,
        _ answer: @escaping @Sendable (ScriptedRequest, Int) -> ScriptedAnswer,
        _ body: (ScriptedServer) async throws -> Value
    ) async throws -> Value {
        let server = ScriptedServer(answer)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
                    }
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(ScriptedHandler(server))
                }
            }.bind(host: host, port: 0).get()
        server.channel.withLock { $0 = channel }
        do {
            let value = try await body(server)
            try await channel.close()
            return value
        } catch {
            try await channel.close()
            throw error
        }
    }

    /// Where it listens.
    package var url: String { "http://127.0.0.1:\(port)" }

    /// Where it listens.
    package var port: Int { channel.withLock { $0?.localAddress?.port } ?? 0 }

    /// What it was asked, in order.
    package var requests: [ScriptedRequest] { requestLog.withLock { $0 } }

    /// Sends what is kept back.
    package func release() {
        let answers = kept.withLock { kept in
            defer { kept = [] }
            return kept
        }
        for send in answers { send() }
    }

    fileprivate func keep(_ send: @escaping @Sendable () -> Void) { kept.withLock { $0.append(send) } }

    fileprivate func take(_ request: ScriptedRequest) -> ScriptedAnswer {
        let earlier = requestLog.withLock { log in
            log.append(request)
            return log.count - 1
        }
        return answer(request, earlier)
    }
}

private final class ScriptedHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let server: ScriptedServer
    private var request: ScriptedRequest?

    init(_ server: ScriptedServer) { self.server = server }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            request = ScriptedRequest(method: head.method.rawValue, target: head.uri, headers: head.headers, body: [])
        case .body(let bytes): request?.body += Array(bytes.readableBytesView)
        case .end:
            guard let request else { return }
            let answer = server.take(request)
            if answer.isLost { return context.close(promise: nil) }
            let channel = context.channel
            if answer.isKeptBack { return server.keep { Self.send(answer, on: channel) } }
            Self.send(answer, on: channel)
        }
    }

    private static func send(_ answer: ScriptedAnswer, on channel: any Channel) {
        var headers = HTTPHeaders(answer.headers)
        headers.add(name: "Content-Length", value: String(answer.body.utf8.count))
        let head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: answer.status), headers: headers)
        channel.write(HTTPServerResponsePart.head(head), promise: nil)
        channel.write(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: answer.body))), promise: nil)
        channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
    }
}
