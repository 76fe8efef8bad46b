import Foundation
import NIOCore
import RecordModel
import Testing

@testable import WebServices

extension ClusterSuites {
    @Suite("Clients that are slow, or ask for too much, are refused on the client port", .timeLimit(.minutes(10)))
    struct SlowClientTests {
        /// What a client does after its handshake, and what it gets.
        struct Attack: Sendable {
            var name: String
            var says: String
            /// Sent byte for byte for ever after.
            var drips: String?
            /// The status of the last answer; nil for none at all.
            var status: Int?
            /// Part of the reason.
            var reason = ""
        }

        private static let long = String(repeating: "x", count: 9_000)
        private static let fields = (0..<200).map { "f\($0): 1\r\n" }.joined()

        static let attacks = [
            Attack(name: "nothing", says: "", status: nil),
            Attack(name: "a word of a request", says: "GET", status: 408, reason: "head"),
            Attack(name: "a request line", says: "GET / HTTP/1.1\r\n", status: 408, reason: "head"),
            Attack(name: "a head without end", says: "GET / HTTP/1.1\r\nHost: a\r\n", status: 408, reason: "head"),
            Attack(
                name: "a head that drips", says: "GET / HTTP/1.1\r\nHost: a\r\nX: ", drips: "x", status: 408,
                reason: "head"),
            Attack(
                name: "a body that does not come", says: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n",
                status: 408, reason: "body"),
            Attack(
                name: "a body that stops", says: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n\(long)",
                status: 408, reason: "body"),
            Attack(
                name: "a body that drips", says: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n",
                drips: "x", status: 408, reason: "body"),
            Attack(
                name: "chunks without end",
                says: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", status: 408,
                reason: "body"),
            Attack(
                name: "a chunk without a size",
                says: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", status: 400),
            Attack(
                name: "a request, and half of another",
                says: "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT", drips: "T", status: 400),
            Attack(
                name: "a long target", says: "GET /\(long) HTTP/1.1\r\nHost: a\r\n\r\n", status: 414, reason: "9001"),
            Attack(
                name: "a very long target", says: "GET /\(String(repeating: long, count: 20))", status: 431,
                reason: "8192"),
            Attack(
                name: "a long header", says: "GET / HTTP/1.1\r\nHost: a\r\nX: \(long)\r\nY: \(long)\r\n\r\n",
                status: 431, reason: "16384"),
            Attack(
                name: "a header without end", says: "GET / HTTP/1.1\r\nHost: a\r\nX: \(long)", drips: long, status: 431),
            Attack(name: "many headers", says: "GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n", status: 431),
            Attack(name: "no host", says: "GET / HTTP/1.1\r\n\r\n", status: 400, reason: "0 Host"),
            Attack(
                name: "two hosts", says: "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", status: 400, reason: "2 Host"),
            Attack(name: "a tunnel", says: "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", status: 405),
            Attack(name: "no HTTP", says: "hello\r\n\r\n", status: 400),
            Attack(name: "an unknown method", says: "EXPLODE / HTTP/1.1\r\nHost: a\r\n\r\n", status: 400),
            Attack(name: "HTTP/2", says: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", status: 400),
            Attack(name: "another TLS within", says: "\u{16}\u{3}\u{1}\u{0}\u{5}hello", status: 400),
            Attack(
                name: "a length and chunks",
                says:
                    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET",
                status: 400),
            Attack(
                name: "two lengths",
                says: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
                status: 400),
            Attack(
                name: "a negative length", says: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", status: 400
            ),
            Attack(
                name: "a hundred requests at once",
                says: String(repeating: "GET / HTTP/1.1\r\nHost: a\r\n\r\n", count: 100), status: 503, reason: "32"),
            Attack(name: "no more of HTTP/1.0", says: "GET / HTTP/1.0\r\n\r\n", status: 200),
            Attack(
                name: "an upgrade", says: "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
                status: 200),
            Attack(
                name: "a wish to close", says: "GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n", status: 200),
        ]

        @Test("each attack ends, and with an answer where HTTP allows one")
        func attacks() async throws {
            let change: @Sendable (inout EdgeLimits) -> Void = {
                EdgeUnderTest.impatient(&$0)
                $0.idleTimeout = .seconds(1)
            }
            try await EdgeUnderTest.run(change) { edge in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for attack in Self.attacks { group.addTask { try await attempt(attack, on: edge) } }
                    try await group.waitForAll()
                }
                #expect(edge.server.counters[.slowBody] == 4)
                #expect(edge.server.counters[.headersTimeout] == 4)
                #expect(edge.server.counters[.idle] == 1)
                #expect(edge.server.counters[.pipelined] == 1)
            }
        }

        private func attempt(_ attack: Attack, on edge: EdgeUnderTest) async throws {
            let client = try await edge.client(saying: Array(attack.says.utf8))
            if let drops = attack.drips {
                try await client.awaitHandshake()
                client.drip(Array(drops.utf8))
            }
            let text = String(decoding: try await client.untilClosed(), as: UTF8.self)
            guard let status = attack.status else {
                #expect(text.isEmpty, "\(attack.name): \(text)")
                return
            }
            let answers = text.split(separator: /HTTP\/1\.1 (?=\d\d\d )/)
            let last = try #require(answers.last.map(String.init), "\(attack.name): no answer")
            #expect(last.hasPrefix("\(status) "), "\(attack.name): \(text.prefix(2_000))")
            #expect(last.contains("Connection: close"), "\(attack.name): \(last)")
            if attack.name.hasPrefix("a hundred") { #expect(answers.count == 33) }
            let methods = "\r\nAllow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"
            #expect(last.contains(methods) == (status == 405), "\(attack.name): \(last)")
            guard status != 200 else { return }
            let body = try #require(last.components(separatedBy: "\r\n\r\n").dropFirst().first)
            let json = try JSONParser.parse(Array(body.utf8))
            #expect(json["uuid"]?.string?.count == 36 && json["serverErrorCode"]?.string != nil, "\(body)")
            let reason = json["reason"]?.string ?? ""
            #expect(
                !reason.isEmpty && (attack.reason.isEmpty || reason.contains(attack.reason)), "\(attack.name): \(body)")
        }

        @Test("a client that never finishes its handshake is dropped, wherever it stops")
        func handshakes() async throws {
            try await EdgeUnderTest.run({ $0.handshakeTimeout = .milliseconds(300) }) { edge in
                // The beginning of a record with a ClientHello of 200 bytes.
                let hello: [UInt8] = [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3] + [UInt8](repeating: 7, count: 194)
                let counts = [0, 1, 4, 5, 11, 60, 200]
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for count in counts {
                        group.addTask {
                            let client = try await RawClient(
                                port: edge.port, tls: nil, saying: Array(hello.prefix(count)))
                            #expect(try await client.untilClosed().isEmpty, "\(count) bytes")
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(edge.server.counters[.handshakeTimeout] == counts.count)
            }
        }

        @Test("who does not take the answer is dropped, and the service hears of it")
        func slowReader() async throws {
            try await EdgeUnderTest.run(EdgeUnderTest.impatient) { edge in
                let client = try await edge.client(
                    saying: Array("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n".utf8), isReading: false)
                var ends = edge.writeEnds.makeAsyncIterator()
                #expect(await ends.next() == "failed")
                #expect(edge.server.counters[.slowReader] == 1)
                client.close()
                // Who takes it gets all of it.
                let reader = try await edge.client(
                    saying: Array("GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8))
                let bytes = try await reader.untilClosed()
                #expect(bytes.count > EchoResponder.largeBytes)
                #expect(await ends.next() == "done")
            }
        }

        @Test("an address that leaves too many answers untaken is cut off; one that takes them gets all")
        func untakenAnswers() async throws {
            let large = Array("GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8)
            // One part is more than what may wait.
            try await EdgeUnderTest.run({ $0.unsentBytesPerAddressMax = 16 << 10 }) { edge in
                let client = try await edge.client(saying: large)
                #expect(try await client.untilClosed().count < EchoResponder.largeBytes)
                #expect(edge.server.counters[.unsent] > 0)
            }
            // One answer may wait whole, but not two: what was taken must not count any more.
            try await EdgeUnderTest.run({ $0.unsentBytesPerAddressMax = EchoResponder.largeBytes / 2 }) { edge in
                for _ in 0..<2 {
                    let reader = try await edge.client(saying: large)
                    #expect(try await reader.untilClosed().count > EchoResponder.largeBytes)
                }
                #expect(edge.server.counters[.unsent] == 0)
            }
        }

        @Test("connections over the limits are told so, then closed at once, and room comes back")
        func connections() async throws {
            func ask(_ edge: EdgeUnderTest) async throws -> String {
                let client = try await edge.client(saying: EdgeUnderTest.request)
                return String(decoding: try await client.untilClosed(), as: UTF8.self)
            }
            for isPerAddress in [false, true] {
                let change: @Sendable (inout EdgeLimits) -> Void = {
                    if isPerAddress { $0.connectionsPerAddressMax = 2 } else { $0.connectionsMax = 2 }
                    $0.toldConnectionsMax = 1
                }
                try await EdgeUnderTest.run(change) { edge in
                    let held = [try await edge.ready(), try await edge.ready()]
                    let told = try await ask(edge)
                    #expect(told.hasPrefix("HTTP/1.1 503") && told.contains("TRY_AGAIN_LATER"), "\(told)")
                    #expect(told.contains(isPerAddress ? "your address" : "this node has 2"), "\(told)")
                    #expect(told.contains("Retry-After: 5"))
                    let refused = try #require(edge.refusals.all.first, "the log of requests hears of it")
                    #expect(refused.refusal.rule == (isPerAddress ? "connectionsPerAddress" : "connections"))
                    #expect(refused.refusal.limit == 2 && told.contains(refused.id.text))
                    // One that is told and stays: there is no room to tell another.
                    let waiting = try await Self.told(edge)
                    #expect(try await ask(edge).isEmpty)
                    #expect(edge.server.counters[.overLimit] >= 3)
                    for client in held + [waiting] {
                        client.close()
                        _ = try await client.untilClosed()
                    }
                    // The node hears of the ends a moment later.
                    var answer = ""
                    for _ in 0..<200 where !answer.hasPrefix("HTTP/1.1 200") { answer = try await ask(edge) }
                    #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
                }
            }
        }

        @Test(
            "where all places are taken, an idle connection of the address that has most makes room for another address"
        )
        func crowdedOut() async throws {
            try await EdgeUnderTest.run({ $0.connectionsMax = 3 }) { edge in
                let modest = try await edge.ready(from: "127.0.0.7")
                let oldest = try await edge.ready(from: "127.0.0.8")
                let newest = try await edge.ready(from: "127.0.0.8")
                let other = try await edge.client(saying: EdgeUnderTest.request, from: "127.0.0.9")
                let answer = String(decoding: try await other.untilClosed(), as: UTF8.self)
                #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
                _ = try await oldest.untilClosed()
                #expect(edge.server.counters[.crowdedOut] == 1)
                for client in [modest, newest] {
                    client.say("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    let bytes = try await client.untilClosed()
                    #expect(String(decoding: bytes, as: UTF8.self).split(separator: "HTTP/1.1 200").count == 2)
                }
            }
        }

        @Test(
            "beyond the limits, a request that is to pass is answered, and the next one of its connection is looked at")
        func passed() async throws {
            let change: @Sendable (inout EdgeLimits) -> Void = { $0.connectionsPerAddressMax = 1 }
            try await EdgeUnderTest.run(
                change,
                pass: { target, authorization in
                    target == "/health" || authorization == "Bearer good"
                }
            ) { edge in
                let held = try await edge.ready()
                for words in ["GET /health HTTP/1.1\r\n", "GET / HTTP/1.1\r\nAuthorization: Bearer good\r\n"] {
                    let client = try await edge.client(
                        saying: Array("\(words)Host: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                    let text = String(decoding: try await client.untilClosed(), as: UTF8.self)
                    #expect(text.hasPrefix("HTTP/1.1 200") && text.contains("HTTP/1.1 503"), "\(text)")
                }
                held.close()
            }
        }

        /// A connection that is to be told. The node hears a moment later that the one before it is gone.
        private static func told(_ edge: EdgeUnderTest) async throws -> RawClient {
            for _ in 0..<1_000 {
                let client = try await edge.client(saying: [])
                if (try? await client.awaitHandshake()) != nil { return client }
            }
            throw ChannelError.eof
        }

        @Test("the watch holds each part of a connection against its own time, and only on the client's turn")
        func watch() {
            func at(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(seconds) }
            func looked(
                _ watch: inout ConnectionTimeouts, _ seconds: Int64, isReading: Bool = true, unsent: Int = 0,
                sent: Int = 0, sharing: Int = 1
            ) -> ConnectionTimeouts.Verdict? {
                watch.looked(
                    .init(
                        now: at(seconds), isReading: isReading, unsentBytes: unsent, sentBytes: sent,
                        requestsSharing: sharing))
            }
            var watch = ConnectionTimeouts(limits: EdgeLimits(), now: at(0))
            #expect(looked(&watch, 9) == nil)
            var late = watch
            #expect(looked(&late, 10) == .drop(.handshakeTimeout))
            watch.handshakeCompleted(now: at(9))
            #expect(looked(&watch, 83) == nil)
            late = watch
            #expect(looked(&late, 84) == .drop(.idle))
            // A byte each second does not make a head any younger.
            for second in 80..<90 { watch.bytesArrived(1, now: at(Int64(second))) }
            late = watch
            #expect(looked(&watch, 89) == nil)
            #expect(looked(&late, 90) == .refuse(.headersTimeout))
            watch.headEnded(now: at(90))
            // While the node does not read, a body cannot come.
            #expect(looked(&watch, 150, isReading: false) == nil)
            watch.bytesArrived(10_239, now: at(155))
            late = watch
            #expect(looked(&late, 160) == .refuse(.slowBody))
            late = watch
            #expect(looked(&late, 160, sharing: 2) == nil)
            #expect(looked(&late, 170, sharing: 100) == .refuse(.slowBody))
            watch.bytesArrived(1, now: at(159))
            #expect(looked(&watch, 160) == nil)
            // What came early does not count for the next window.
            late = watch
            #expect(looked(&late, 170) == .refuse(.slowBody))
            watch.requestEnded(now: at(165))
            // The node's turn, however long.
            #expect(looked(&watch, 999) == nil)
            #expect(looked(&watch, 1_000, unsent: 99_999) == nil)
            late = watch
            #expect(looked(&late, 1_030, unsent: 90_000, sent: 30_719) == .drop(.slowReader))
            #expect(looked(&watch, 1_030, unsent: 90_000, sent: 30_720) == nil)
            watch.responseEnded(now: at(1_040))
            #expect(looked(&watch, 1_041) == nil)
            #expect(looked(&watch, 1_114) == nil)
            #expect(looked(&watch, 1_115) == .drop(.idle))
            watch.inputEnded()
            #expect(looked(&watch, 9_999) == nil)
        }

        @Test("a client that waits for a word before its body gets it once the body is wanted")
        func expected() async throws {
            try await EdgeUnderTest.run { edge in
                func client(_ path: String, _ version: String, body: String) async throws -> RawClient {
                    try await edge.client(
                        saying: Array(
                            ("POST \(path) HTTP/\(version)\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n"
                                + "Expect: 100-Continue\r\n\r\n\(body)").utf8))
                }
                let waiting = try await client("/", "1.1", body: "")
                try await waiting.awaitBytes()
                waiting.say("abc")
                let text = String(decoding: try await waiting.untilClosed(), as: UTF8.self)
                #expect(text.hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"), "\(text)")
                #expect(text.hasSuffix("127.0.0.1 3"))
                // One that could not know the word does without.
                let old = String(
                    decoding: try await client("/", "1.0", body: "abc").untilClosed(), as: UTF8.self)
                #expect(old.hasPrefix("HTTP/1.1 200") && old.hasSuffix("127.0.0.1 3"), "\(old)")
                let refused = String(
                    decoding: try await client("/" + Self.long, "1.1", body: "").untilClosed(), as: UTF8.self)
                #expect(refused.hasPrefix("HTTP/1.1 414"), "\(refused)")
            }
        }

        @Test("a request's address is known")
        func address() async throws {
            try await EdgeUnderTest.run { edge in
                let client = try await edge.client(saying: EdgeUnderTest.request)
                #expect(String(decoding: try await client.untilClosed(), as: UTF8.self).hasSuffix("127.0.0.1 0"))
            }
        }

        @Test("addresses count as what one client has")
        func clientAddresses() throws {
            func address(_ text: String) throws -> ClientAddress {
                ClientAddress(try SocketAddress(ipAddress: text, port: 1))
            }
            #expect(try address("10.0.0.1") == address("::ffff:10.0.0.1"))
            #expect(try address("10.0.0.1") != address("10.0.0.2"))
            #expect(try address("2001:db8::1") == address("2001:db8::ffff:1"))
            #expect(try address("2001:db8::1") != address("2001:db8:0:1::1"))
            #expect(EdgeContext.text(of: try SocketAddress(ipAddress: "::ffff:10.0.0.1", port: 1)) == "10.0.0.1")
            var limits = EdgeLimits()
            #expect(limits.fitted(toDescriptors: 1_024).connectionsMax == 448)
            limits.connectionsMax = 10
            #expect(limits.fitted(toDescriptors: 1_024).connectionsMax == 10)
        }
    }
}
