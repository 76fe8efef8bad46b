import Certificates
import Logging
import NIOCore
import NIOSSL
import Testing

@testable import PeerTransport

@Suite("Peers that are refused")
struct RefusalTests {
    private func started(
        _ node: UInt64 = 1, _ change: (inout PeerTransportConfiguration) -> Void = { _ in }
    ) async throws -> TestNode {
        let node = try TestNode(node, change)
        try await node.start()
        return node
    }

    /// A raw peer's bytes are refused: the node warns, naming the parts, tells the peer, and lets nothing through.
    private func expectRefusal(
        tls: TLSConfiguration, saying bytes: [UInt8], _ parts: String...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let node = try await started()
        let peer = try await RawPeer(port: node.transport.port ?? 0, tls: tls, saying: bytes)
        let goodbye = try #require(try await peer.goodbye(), sourceLocation: sourceLocation)
        try await node.events.wait(for: "a warning with \(parts)") { events in
            events.contains {
                guard case .log(.warning, let text) = $0 else { return false }
                return text.contains("127.0.0.1") && parts.allSatisfy { text.contains($0) }
            }
        }
        for part in parts { #expect(goodbye.contains(part), sourceLocation: sourceLocation) }
        #expect(node.transport.counters.connectionsRefused == 1, sourceLocation: sourceLocation)
        #expect(node.events.messages.isEmpty, sourceLocation: sourceLocation)
        try await node.stop()
    }

    private static func build(_ levels: ClosedRange<UInt64>?) -> PeerPresence {
        PeerPresence(build: PeerBuild(version: "1.0", levels: levels), wallMilliseconds: 0)
    }

    @Test("a peer whose feature levels do not overlap is refused, and both sides say which of the two is too old")
    func builds() async throws {
        let new = try await started { $0.presence = { Self.build(3...4) } }
        let old = try await started(2) { $0.presence = { Self.build(1...2) } }
        old.transport.update(peers: [new.address(as: 1)])
        try await new.events.wait(
            forLog: .warning, "refused", "it is too old for this cluster", "follows feature levels 1 to 2")
        try await old.events.wait(forLog: .warning, "saying: it is too old for this cluster")
        old.transport.update(peers: [])
        new.transport.update(peers: [old.address(as: 2)])
        try await old.events.wait(forLog: .warning, "refused", "this node is too old for its cluster")
        #expect(try await !new.onLoop { $0.isConnected(NodeID(2)) })
        try await old.stop()
        try await new.stop()
    }

    @Test("a peer of a build from before feature levels is refused, whoever dialled")
    func beforeLevels() async throws {
        try await expectRefusal(tls: peerTLS(2), saying: helloBytes { $0.build.levels = nil }, "before feature levels")
        let old = try await started(2) { $0.presence = { Self.build(nil) } }
        let node = try await started()
        node.transport.update(peers: [old.address(as: 2)])
        try await node.events.wait(forLog: .warning, "refused node 2", "before feature levels")
        try await old.stop()
        try await node.stop()
    }

    @Test("who dials hears how far the peer's clock is ahead: in the hello, and with each ping")
    func clocks() async throws {
        func presence(_ time: Int64) -> @Sendable () -> PeerPresence {
            { PeerPresence(build: PeerPresence.test.build, wallMilliseconds: time) }
        }
        let early = try await started { $0.presence = presence(1_000) }
        let late = try await started(2) {
            $0.presence = presence(91_000)
            $0.pingInterval = .milliseconds(10)
        }
        try await late.connect(to: early, as: 1)
        try await late.events.wait(for: "clocks of hellos and pings") { events in
            events.count { $0 == .clock(NodeID(1), ahead: -90_000 ... -90_000) } > 2 * PeerChannel.allCases.count
        }
        #expect(!early.events.all.contains { if case .clock = $0 { true } else { false } })
        try await late.stop()
        try await early.stop()
    }

    @Test("a peer whose certificate is of another authority is refused by both sides")
    func strangersAuthority() async throws {
        let node = try await started()
        // It trusts our authority, so only our side can refuse.
        let dialler = try await started(2) {
            $0.tls = Fixtures.tls(2, authority: Fixtures.ours, leaf: Fixtures.strangers)
        }
        dialler.transport.update(peers: [node.address(as: 1)])
        try await node.events.wait(forLog: .warning, "127.0.0.1", "peer CA")
        try await dialler.stop()

        // And the other way round: our node dials the stranger, and refuses it.
        let stranger = try await started(2) {
            $0.tls = Fixtures.tls(2, authority: Fixtures.ours, leaf: Fixtures.strangers)
        }
        node.transport.update(peers: [stranger.address(as: 2)])
        try await node.events.wait(forLog: .warning, "refused node 2", "peer CA")
        #expect(try await !node.onLoop { $0.isConnected(NodeID(2)) })
        try await node.stop()
        try await stranger.stop()
    }

    @Test("a peer without a certificate is refused")
    func noCertificate() async throws {
        let node = try await started()
        let peer = try await RawPeer(port: node.transport.port ?? 0, tls: try clientTLS(nil), saying: helloBytes())
        try await peer.events.wait(for: .closed)
        try await node.events.wait(forLog: .warning, "refused a peer connection from", "no certificate")
        #expect(try peer.frames().isEmpty)
        try await node.stop()
    }

    @Test("a certificate of the client port cannot act as a node")
    func clientPortCertificate() async throws {
        let node = try await started()
        let files = Fixtures.ours.node(2)
        let tls = try clientTLS((files.serverCertificatePath, files.serverKeyPath))
        let peer = try await RawPeer(port: node.transport.port ?? 0, tls: tls, saying: helloBytes())
        try await peer.events.wait(for: .closed)
        try await node.events.wait(forLog: .warning, "refused a peer connection from", "peer CA")
        #expect(try peer.frames().isEmpty)
        try await node.stop()
    }

    @Test("a peer that claims another node than its certificate names is refused")
    func otherNode() async throws {
        try await expectRefusal(
            tls: try peerTLS(3), saying: helloBytes(node: 2), "names node 3", "says that it is node 2")
    }

    @Test("a peer that claims to be this node is refused")
    func thisNode() async throws {
        try await expectRefusal(tls: try peerTLS(1), saying: helloBytes(node: 1), "node 1, which is this node")
    }

    @Test("an address where another node answers than was dialled is refused, and the other is told")
    func wrongAddress() async throws {
        let (one, three) = (try await started(1), try await started(3))
        one.transport.update(peers: [three.address(as: 2)])
        try await one.events.wait(forLog: .warning, "refused node 2", "it is node 3, but node 2 was dialled")
        try await three.events.wait(for: "the goodbye") { events in
            events.contains { if case .log(_, let text) = $0 { text.contains("node 2 was dialled") } else { false } }
        }
        #expect(try await !one.onLoop { $0.isConnected(NodeID(2)) })
        try await one.stop()
        try await three.stop()
    }

    @Test("a node of another cluster is refused, and both sides say why")
    func otherCluster() async throws {
        let (one, two) = (try await started(1), try await started(2) { $0.clusterID = "other" })
        two.transport.update(peers: [one.address(as: 1)])
        try await one.events.wait(forLog: .warning, "refused a peer connection from", "\"other\"", "\"test\"")
        try await two.events.wait(forLog: .warning, "node 1 at 127.0.0.1", "saying", "\"other\"", "\"test\"")
        #expect(!two.events.all.contains { if case .connected = $0 { true } else { false } })
        for node in [one, two] { try await node.stop() }
    }

    @Test("a peer that speaks only other versions is refused")
    func versions() async throws {
        let hello = helloBytes {
            $0.versionMin = 7
            $0.versionMax = 9
        }
        try await expectRefusal(tls: try peerTLS(2), saying: hello, "versions 7 to 9", "1 to 1")
    }

    @Test("a peer that also speaks newer versions is welcome")
    func newerVersions() async throws {
        let node = try await started()
        let hello = helloBytes { $0.versionMax = 9 }
        let peer = try await RawPeer(port: node.transport.port ?? 0, tls: try peerTLS(2), saying: hello)
        let identity = PeerIdentity(
            node: NodeID(2), incarnation: 7, bootCounter: 1, build: PeerPresence.test.build)
        try await node.events.wait(for: .introduced(identity, .raft))
        peer.close()
        try await node.stop()
    }

    @Test("a frame that is too long closes the connection with both sizes, before and after the hello")
    func oversize() async throws {
        let long: [UInt8] = [0, 0, 0, 1, FrameKind.raft.rawValue]
        try await expectRefusal(tls: try peerTLS(2), saying: long, "16777220 bytes", "limit is 16384")
        try await expectRefusal(tls: try peerTLS(2), saying: helloBytes() + long, "16777220 bytes", "limit is 8388608")
    }

    @Test(
        "bytes that are no frames, or frames out of place, close the connection",
        arguments: [
            ([0, 0, 0, 0, 1], "without a kind"),
            ([1, 0, 0, 0, 99], "unknown kind 99"),
            ([1, 0, 0, 0, FrameKind.raft.rawValue], "before its hello"),
            ([3, 0, 0, 0, FrameKind.hello.rawValue, 0xFF, 0xFF], "malformed hello"),
            (helloBytes() + [3, 0, 0, 0, FrameKind.raft.rawValue, 0xFF, 0xFF], "malformed raft frame"),
            (helloBytes() + [3, 0, 0, 0, FrameKind.request.rawValue, 8, 1], "request frame on a raft connection"),
            (helloBytes() + helloBytes(), "second hello"),
            (helloBytes(channel: .bulk) + [2, 0, 0, 0, FrameKind.request.rawValue, 8], "malformed request"),
        ] as [([UInt8], String)])
    func garbage(bytes: [UInt8], reason: String) async throws {
        try await expectRefusal(tls: try peerTLS(2), saying: bytes, reason)
    }

    @Test("bytes that are not TLS close the connection")
    func plainText() async throws {
        let node = try await started()
        let peer = try await RawPeer(
            port: node.transport.port ?? 0, tls: nil, saying: Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        try await peer.events.wait(for: .closed)
        try await node.events.wait(forLog: .warning, "refused a peer connection from", "does not speak TLS")
        try await node.stop()
    }

    @Test("TLS 1.2 is refused")
    func oldTLS() async throws {
        let node = try await started()
        var tls = try peerTLS(2)
        tls.maximumTLSVersion = .tlsv12
        let peer = try await RawPeer(port: node.transport.port ?? 0, tls: tls, saying: helloBytes())
        try await peer.events.wait(for: .closed)
        try await node.events.wait(forLog: .warning, "does not speak TLS 1.3")
        try await node.stop()
    }

    @Test("a refusal that repeats is logged once")
    func quiet() async throws {
        let node = try await started()
        for count in 1...5 {
            let peer = try await RawPeer(port: node.transport.port ?? 0, tls: try peerTLS(3), saying: helloBytes())
            _ = try await peer.goodbye()
            #expect(node.transport.counters.connectionsRefused == UInt64(count))
        }
        try await node.stop()
        let warnings = node.events.all.filter { if case .log(.warning, _) = $0 { true } else { false } }
        #expect(warnings.count == 1)
    }
}
