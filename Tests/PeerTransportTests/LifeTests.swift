import Logging
import NIOCore
import Testing
import Wire

@testable import PeerTransport

@Suite("Start, time limits and stop")
struct LifeTests {
    @Test("a port in use is told with its number and what to do")
    func portInUse() async throws {
        let one = try TestNode(1)
        try await one.start()
        let port = one.transport.port ?? 0
        let two = try TestNode(2) { $0.listenPort = port }
        let error = await #expect(throws: PeerTransportError.self) { try await two.start() }
        #expect(error?.description.contains("port \(port)") == true)
        #expect(error?.description.contains("another process uses the port") == true)
        try await two.stop()
        try await one.stop()
    }

    @Test("certificate files that are missing, or of another node, are told by name")
    func certificates() throws {
        let missing = #expect(throws: PeerTransportError.self) {
            try TestNode(1) { $0.tls.authorityPath = "/nowhere/peer-ca.pem" }
        }
        #expect(missing?.description.contains("/nowhere/peer-ca.pem") == true)
        let other = #expect(throws: PeerTransportError.self) { try TestNode(1) { $0.tls = Fixtures.tls(2) } }
        #expect(other?.description.contains("it names node 2, and this is node 1") == true)
        let mixed = #expect(throws: PeerTransportError.self) {
            try TestNode(1) { $0.tls.keyPath = Fixtures.tls(2).keyPath }
        }
        #expect(mixed?.description.contains("does not go with") == true)
    }

    @Test("a connection that does not greet in time is closed")
    func handshakeTimeout() async throws {
        let node = try TestNode(1) { $0.handshakeTimeout = .milliseconds(50) }
        try await node.start()
        let plain = try await RawPeer(port: node.transport.port ?? 0, tls: nil)
        try await plain.events.wait(for: .closed)
        let silent = try await RawPeer(port: node.transport.port ?? 0, tls: try peerTLS(2))
        try await silent.events.wait(for: .closed)
        try await node.stop()
    }

    @Test("incoming connections that have not authenticated are limited, and room comes back")
    func unauthenticated() async throws {
        let node = try TestNode(1) { $0.unauthenticatedMax = 2 }
        try await node.start()
        let port = node.transport.port ?? 0
        let held = [try await RawPeer(port: port, tls: nil), try await RawPeer(port: port, tls: nil)]
        let third = try await RawPeer(port: port, tls: nil)
        try await third.events.wait(for: .closed)
        try await node.events.wait(forLog: .warning, "2 others have not authenticated")
        #expect(node.transport.counters.connectionsOverLimit == 1)
        for peer in held { peer.close() }
        for peer in held { try await peer.events.wait(for: .closed) }
        // The node hears of the end a moment after the peer, and says so at debug level.
        try await node.events.wait(for: "both ends") { events in
            2 <= events.count { if case .log(.debug, let text) = $0 { text.contains("ended") } else { false } }
        }
        let peer = try await RawPeer(port: port, tls: try peerTLS(2), saying: helloBytes())
        try await node.events.wait(for: "the introduction") {
            $0.contains { if case .introduced = $0 { true } else { false } }
        }
        peer.close()
        try await node.stop()
    }

    @Test("a peer that goes silent without closing is dropped")
    func silentPeer() async throws {
        let node = try TestNode(1) {
            $0.pingInterval = .milliseconds(20)
            $0.silentIntervalsMax = 4
        }
        try await node.start()
        let peer = try await RawPeer(port: node.transport.port ?? 0, tls: try peerTLS(2), saying: helloBytes())
        try await peer.events.wait(for: .closed)
        try await node.events.wait(for: "the reason") { events in
            events.contains { if case .log(_, let text) = $0 { text.contains("nothing came for 4") } else { false } }
        }
        try await node.stop()
    }

    @Test("connections on which nothing is said stay, because pings are answered")
    func pings() async throws {
        let change: (inout PeerTransportConfiguration) -> Void = {
            $0.pingInterval = .milliseconds(10)
            $0.silentIntervalsMax = 250
        }
        let (one, two) = (try TestNode(1, change), try TestNode(2, change))
        try await one.start(with: two)
        // Time is what this is about, and it is measured in pongs: on each of three channels half as many again as
        // silence is borne for. Without pongs the loop ends by the disconnection.
        let pongsMin = one.transport.counters.framesReceived + 3 * 375
        func isDisconnected() -> Bool { one.events.all.contains { if case .disconnected = $0 { true } else { false } } }
        while one.transport.counters.framesReceived < pongsMin, !isDisconnected() {
            _ = try await one.eventLoop.scheduleTask(in: .milliseconds(5)) {}.futureResult.get()
        }
        #expect(!isDisconnected())
        for node in [one, two] { try await node.stop() }
    }

    @Test("a ping is answered with a pong at once, which has the node's clock")
    func pong() async throws {
        let node = try TestNode(1)
        try await node.start()
        let peer = try await RawPeer(port: node.transport.port ?? 0, tls: try peerTLS(2), saying: helloBytes())
        peer.say([1, 0, 0, 0, FrameKind.ping.rawValue])
        let clock = ClockReading(wallMilliseconds: PeerPresence.test.wallMilliseconds).encoded()
        let pong: [UInt8] = [UInt8(1 + clock.count), 0, 0, 0, FrameKind.pong.rawValue] + clock
        try await peer.events.wait(for: "the pong") { events in
            let bytes = events.flatMap { if case .bytes(let bytes) = $0 { bytes } else { [UInt8]() } }
            return bytes.suffix(pong.count) == pong
        }
        peer.close()
        try await node.stop()
    }

    @Test("a peer that is taken off the list is let go, and its requests fail")
    func removed() async throws {
        let (one, two) = (try TestNode(1), try TestNode(2, serve: { _, _ in }))
        try await one.start(with: two)
        let future = one.transport.request([1], to: NodeID(2), timeout: .minutes(5))
        try await two.events.wait(for: .served([1], NodeID(1), .request))
        one.transport.update(peers: [])
        await #expect(throws: PeerTransportError.disconnected) { try await future.get() }
        for channel in PeerChannel.allCases { try await one.events.wait(for: .disconnected(NodeID(2), channel)) }
        #expect(one.transport.counters.dials == 3)
        for node in [one, two] { try await node.stop() }
    }

    @Test("stopping twice is harmless, and a stopped node says goodbye")
    func stop() async throws {
        let (one, two) = (try TestNode(1), try TestNode(2))
        try await one.start(with: two)
        try await two.stop()
        try await two.stop()
        try await one.events.wait(for: "the goodbye") { events in
            events.contains { if case .log(_, let text) = $0 { text.contains("the node stops") } else { false } }
        }
        try await one.stop()
    }
}
