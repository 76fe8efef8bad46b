import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import NIOSSL
import RecordModel
import Testing

@testable import WebServices

extension ClusterSuites {
    @Suite("HTTP/2 on the client port", .timeLimit(.minutes(10)))
    struct HTTP2Tests {
        @Test("a client that can is spoken to in HTTP/2, with many requests side by side on one connection")
        func sideBySide() async throws {
            try await EdgeUnderTest.run({ $0.connectionsMax = 1 }) { edge in
                try await Self.withClient { client in
                    try await withThrowingTaskGroup(of: String.self) { group in
                        for count in 0..<40 {
                            group.addTask {
                                let request = Self.post(edge, [UInt8](repeating: 7, count: count * 5_000))
                                let response = try await client.execute(request, timeout: .seconds(20))
                                #expect(response.version == .http2 && response.status == .ok)
                                return String(buffer: try await response.body.collect(upTo: 1 << 20))
                            }
                        }
                        var answers: [String] = []
                        for try await answer in group { answers.append(answer) }
                        #expect(answers.sorted() == (0..<40).map { "127.0.0.1 \($0 * 5_000)" }.sorted())
                    }
                }
                #expect(edge.server.counters[.overLimit] == 0)
            }
        }

        @Test("requests are answered on their connection's event loop, large ones elsewhere", arguments: [true, false])
        func threads(isHTTP2: Bool) async throws {
            try await EdgeUnderTest.run { edge in
                try await Self.withClient(isHTTP2: isHTTP2) { client in
                    for (count, thread) in [(0, "event loop"), (65_536, "event loop"), (65_537, "pool")] {
                        let request = Self.post(edge, [UInt8](repeating: 7, count: count), "/thread")
                        let response = try await client.execute(request, timeout: .seconds(20))
                        #expect(String(buffer: try await response.body.collect(upTo: 100)) == thread)
                    }
                    var request = Self.post(edge, [], "/thread")
                    let (nothing, end) = AsyncStream.makeStream(of: ByteBuffer.self)
                    end.finish()
                    request.body = .stream(nothing, length: .unknown)
                    let response = try await client.execute(request, timeout: .seconds(20))
                    #expect(String(buffer: try await response.body.collect(upTo: 100)) == "pool")
                }
            }
        }

        @Test("a client that waits for a word before its body gets it, before the answer")
        func expected() async throws {
            try await EdgeUnderTest.run { edge in
                let client = try await StreamClient(edge)
                let answer = try await client.ask(.POST, "/", ["expect": "100-continue", "content-length": "0"])
                #expect(answer.told == [100] && answer.status == 200)
                #expect(try await client.ask(.POST, "/", ["content-length": "0"]).told.isEmpty)
            }
        }

        @Test("the rules for heads hold, and end the request only")
        func heads() async throws {
            try await EdgeUnderTest.run { edge in
                let client = try await StreamClient(edge)
                let long = String(repeating: "x", count: 9_000)
                let attacks: [(HTTPMethod, String, HTTPHeaders, UInt)] = [
                    (.GET, "/" + long, [:], 414), (.TRACE, "/", [:], 405),
                    (.GET, "/", HTTPHeaders((0..<200).map { ("f\($0)", "1") }), 431), (.GET, "/", [:], 200),
                ]
                for (method, uri, headers, status) in attacks {
                    let answer = try await client.ask(method, uri, headers)
                    #expect(answer.status == status, "\(uri.prefix(20)): \(answer)")
                    #expect((answer.allow == nil) == (status != 405), "\(answer)")
                    guard status != 200 else { continue }
                    #expect(try JSONParser.parse(answer.body)["serverErrorCode"]?.string == "BAD_REQUEST")
                }
                #expect(edge.server.counters[.badRequest] == 3)
            }
        }

        @Test("a body that does not come ends its request, while others of the connection are answered")
        func slowBody() async throws {
            try await EdgeUnderTest.run(EdgeUnderTest.impatient) { edge in
                let client = try await StreamClient(edge)
                async let slow = client.ask(.POST, "/", ["content-length": "9"], isEnding: false)
                for _ in 0..<3 { #expect(try await client.ask(.GET, "/").status == 200) }
                let answer = try await slow
                #expect(answer.status == 408)
                #expect(try JSONParser.parse(answer.body)["reason"]?.string?.contains("body") == true)
                #expect(try await client.ask(.GET, "/").status == 200)
                #expect(edge.server.counters[.slowBody] == 1)
            }
        }

        @Test(
            "a body that is given up is not taken for a whole one",
            arguments: [.noError, .cancel] as [HTTP2ErrorCode])
        func givenUp(code: HTTP2ErrorCode) async throws {
            try await EdgeUnderTest.run { edge in
                let client = try await StreamClient(edge)
                var ends = edge.writeEnds.makeAsyncIterator()
                try await client.giveUp("/upload", code) { #expect(await ends.next() == "began") }
                #expect(await ends.next() == "cut")
            }
        }

        @Test("who does not take an answer loses it, and the connection goes on")
        func slowReader() async throws {
            try await EdgeUnderTest.run(EdgeUnderTest.impatient) { edge in
                let client = try await StreamClient(edge)
                async let untaken = client.ask(.GET, "/endless", isReading: false)
                var ends = edge.writeEnds.makeAsyncIterator()
                #expect(await ends.next() == "failed")
                #expect(edge.server.counters[.slowReader] == 1)
                let answer = try? await untaken
                #expect(answer == nil)
                #expect(try await client.ask(.GET, "/").status == 200)
            }
        }

        @Test("a refusal that is not taken ends its request all the same")
        func untakenRefusal() async throws {
            try await EdgeUnderTest.run(EdgeUnderTest.impatient) { edge in
                let client = try await StreamClient(edge, windowBytes: 0)
                let head = try? await client.ask(.TRACE, "/")
                let body = try? await client.ask(.POST, "/", ["content-length": "9"], isEnding: false)
                #expect(head == nil && body == nil)
                #expect(edge.server.counters[.badRequest] == 1 && edge.server.counters[.slowBody] == 1)
            }
        }

        @Test("an answer that speaks of the connection arrives without that")
        func connectionField() async throws {
            try await EdgeUnderTest.run { edge in
                let answer = try await StreamClient(edge).ask(.GET, "/closing")
                #expect(answer.status == 200)
            }
        }

        @Test("a connection without a request ends, whatever frames come on it")
        func idle() async throws {
            try await EdgeUnderTest.run({ $0.idleTimeout = .seconds(1) }) { edge in
                let client = try await StreamClient(edge)
                #expect(try await client.ask(.GET, "/").status == 200)
                try await client.untilClosed()
                #expect(edge.server.counters[.idle] == 1)
            }
        }

        @Test("a connection over the limit is told so in HTTP/2 too")
        func overLimit() async throws {
            try await EdgeUnderTest.run({ $0.connectionsMax = 1 }) { edge in
                let held = try await StreamClient(edge)
                #expect(try await held.ask(.GET, "/").status == 200)
                let told = try await StreamClient(edge).ask(.GET, "/")
                #expect(told.status == 503)
                #expect(try JSONParser.parse(told.body)["serverErrorCode"]?.string == "TRY_AGAIN_LATER")
            }
        }

        @Test("a connection may ping as often as browsers do, and more, but not flood")
        func pings() async throws {
            try await EdgeUnderTest.run { edge in
                let client = try await StreamClient(edge)
                try await client.ping(500)
                try await client.untilSigns(500, .ping)
                #expect(try await client.ask(.GET, "/").status == 200)
                try await client.ping(1_000)
                try await client.untilClosed()
            }
        }

        @Test("a page may be left while much is asked, and again, on one connection")
        func manyGivenUp() async throws {
            try await EdgeUnderTest.run { edge in
                let client = try await StreamClient(edge)
                for _ in 0..<300 { try await client.giveUp("/", .cancel) {} }
                #expect(try await client.ask(.GET, "/").status == 200)
            }
        }

        @Test("what was asked before the node stops is answered, however far the goodbye is")
        func answeredBeforeTheEnd() async throws {
            try await EdgeUnderTest.run { edge in
                let client = try await StreamClient(edge)
                var requests = edge.held.makeAsyncIterator()
                async let first = client.ask(.GET, "/held")
                async let second = client.ask(.GET, "/held")
                let older = try await edge.client(saying: Array("GET /held HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                var held: [CheckedContinuation<Void, Never>] = []
                while held.count < 3 { held.append(try #require(await requests.next())) }
                await edge.stop()
                // The second goodbye names the last request that is answered.
                try await client.untilSigns(2, .goodbye)
                for request in held { request.resume() }
                for answer in [try await first, try await second] {
                    #expect(answer.status == 200 && !answer.body.isEmpty, "\(answer)")
                }
                try await client.untilClosed()
                let text = String(decoding: try await older.untilClosed(), as: UTF8.self)
                #expect(text.hasPrefix("HTTP/1.1 200") && text.hasSuffix("127.0.0.1 0"), "\(text)")
            }
        }

        private static func post(_ edge: EdgeUnderTest, _ body: [UInt8], _ path: String = "/") -> HTTPClientRequest {
            var request = HTTPClientRequest(url: "https://127.0.0.1:\(edge.port)\(path)")
            request.method = .POST
            request.body = .bytes(body)
            return request
        }

        private static func withClient(
            isHTTP2: Bool = true, _ body: (HTTPClient) async throws -> Void
        ) async throws {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.certificateVerification = .none
            var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
            configuration.httpVersion = isHTTP2 ? .automatic : .http1Only
            let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
            do {
                try await body(client)
            } catch {
                try await client.shutdown()
                throw error
            }
            try await client.shutdown()
        }
    }
}

/// One HTTP/2 connection whose streams can misbehave.
private struct StreamClient {
    struct Answer: Sendable {
        var status: UInt
        /// The statuses that came before it.
        var told: [UInt] = []
        var allow: String?
        var body: [UInt8]
    }
    struct Cut: Error {}

    private let channel: any Channel
    private let multiplexer: NIOHTTP2Handler.AsyncStreamMultiplexer<Void>
    /// What came that is of no stream.
    private let signs: AsyncStream<Sign>

    /// - Parameter windowBytes: how much of each answer is taken unasked.
    init(_ edge: EdgeUnderTest, windowBytes: Int = 65_535) async throws {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        tls.applicationProtocols = ["h2"]
        let context = try NIOSSLContext(configuration: tls)
        let (signs, sign) = AsyncStream.makeStream(of: Sign.self)
        self.signs = signs
        (channel, multiplexer) = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: edge.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLClientHandler(context: context, serverHostname: nil))
                    var configuration = NIOHTTP2Handler.Configuration()
                    configuration.connection.initialSettings = [
                        HTTP2Setting(parameter: .initialWindowSize, value: windowBytes)
                    ]
                    configuration.stream.targetWindowSize = windowBytes
                    // For answers to pings.
                    configuration.connection.controlFrameRateLimit.maximumCount = 1_000_000
                    let multiplexer = try pipeline.configureAsyncHTTP2Pipeline(
                        mode: .client, configuration: configuration
                    ) {
                        $0.eventLoop.makeSucceededVoidFuture()
                    }
                    try pipeline.addHandler(SignHandler(sign))
                    return (channel, multiplexer)
                }
            }
        // A stream opened before would have another window here than there.
        try await untilSigns(1, .settingsTaken)
    }

    /// - Parameters:
    ///   - isEnding: whether the request is sent to its end.
    ///   - isReading: whether the answer is taken.
    func ask(
        _ method: HTTPMethod, _ uri: String, _ headers: HTTPHeaders = [:], isEnding: Bool = true, isReading: Bool = true
    ) async throws -> Answer {
        let stream = try await multiplexer.openStream { stream in
            stream.setOption(.autoRead, value: isReading).flatMapThrowing {
                try stream.pipeline.syncOperations.addHandler(HTTP2FramePayloadToHTTP1ClientCodec(httpProtocol: .https))
                return try NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>(
                    wrappingChannelSynchronously: stream)
            }
        }
        var head = HTTPRequestHead(version: .http2, method: method, uri: uri, headers: headers)
        head.headers.add(name: "host", value: "a")
        let (request, isOver) = (head, isEnding)
        return try await stream.executeThenClose { inbound, outbound in
            try await outbound.write(.head(request))
            if isOver { try await outbound.write(.end(nil)) }
            guard isReading else {
                try await stream.channel.closeFuture.get()
                throw Cut()
            }
            var answer = Answer(status: 0, allow: nil, body: [])
            for try await part in inbound {
                switch part {
                case .head(let head):
                    if answer.status != 0 { answer.told.append(answer.status) }
                    answer.status = head.status.code
                    answer.allow = head.headers.first(name: "allow")
                case .body(let buffer): answer.body += buffer.readableBytesView
                case .end: return answer
                }
            }
            throw Cut()
        }
    }

    /// Sends a head and a part of its body, and gives the request up once `body` returns.
    func giveUp(_ uri: String, _ code: HTTP2ErrorCode, once body: () async -> Void) async throws {
        let stream = try await multiplexer.openStream { stream in
            stream.eventLoop.makeCompletedFuture {
                try stream.pipeline.syncOperations.addHandler(
                    HTTP2FramePayloadToHTTP1ClientCodec(httpProtocol: .https))
                return try NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>(
                    wrappingChannelSynchronously: stream)
            }
        }
        try await stream.executeThenClose { _, outbound in
            try await outbound.write(
                .head(HTTPRequestHead(version: .http2, method: .POST, uri: uri, headers: ["host": "a"])))
            try await outbound.write(.body(.byteBuffer(ByteBuffer(repeating: 7, count: 100))))
            await body()
            try await stream.channel.eventLoop.submit {
                let codec = try stream.channel.pipeline.syncOperations.context(
                    handlerType: HTTP2FramePayloadToHTTP1ClientCodec.self)
                codec.writeAndFlush(NIOAny(HTTP2Frame.FramePayload.rstStream(code)), promise: nil)
            }.get()
            try? await stream.channel.closeFuture.get()
        }
    }

    /// Sends pings, without a wait for what comes of them.
    func ping(_ count: Int) async throws {
        try await channel.eventLoop.submit {
            let frames = try channel.pipeline.syncOperations.context(handlerType: SignHandler.self)
            for number in 0..<count {
                let data = HTTP2PingData(withInteger: UInt64(number))
                frames.write(NIOAny(HTTP2Frame(streamID: .rootStream, payload: .ping(data, ack: false))), promise: nil)
            }
            frames.flush()
        }.get()
    }

    func untilClosed() async throws { try await channel.closeFuture.get() }

    func untilSigns(_ count: Int, _ expected: Sign) async throws {
        var seen = 0
        for await sign in signs where sign == expected {
            seen += 1
            if seen == count { return }
        }
        throw Cut()
    }
}

/// What a server says of a connection.
private enum Sign: Sendable {
    case settingsTaken, goodbye, ping
}

private final class SignHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias InboundOut = HTTP2Frame

    private let sign: AsyncStream<Sign>.Continuation

    init(_ sign: AsyncStream<Sign>.Continuation) { self.sign = sign }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data).payload {
        case .goAway: sign.yield(.goodbye)
        case .settings(.ack): sign.yield(.settingsTaken)
        case .ping(_, ack: true): sign.yield(.ping)
        default: break
        }
        context.fireChannelRead(data)
    }

    func channelInactive(context: ChannelHandlerContext) {
        sign.finish()
        context.fireChannelInactive()
    }
}
