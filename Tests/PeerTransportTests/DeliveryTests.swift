import Logging
import NIOCore
import PeerTransport
import RaftCore
import Testing

@Suite("Delivery between transports")
struct DeliveryTests {
    @Test("three nodes connect on every channel and learn incarnation and boot counter of each other")
    func mesh() async throws {
        let nodes = try [1, 2, 3].map { try TestNode($0) }
        for node in nodes { try await node.start() }
        let addresses = nodes.enumerated().map { $1.address(as: UInt64($0 + 1)) }
        for node in nodes { node.transport.update(peers: addresses) }
        for (index, node) in nodes.enumerated() {
            for other in 1...3 where other != index + 1 {
                try await node.connected(to: UInt64(other))
                let identity = PeerIdentity(
                    node: NodeID(UInt64(other)), incarnation: UInt64(other) * 100, bootCounter: 1,
                    build: PeerPresence.test.build)
                #expect(node.events.all.contains(.connected(identity, .raft)))
                try await node.events.wait(for: .introduced(identity, .bulk))
            }
        }
        #expect(try await nodes[0].onLoop { $0.isConnected(NodeID(3)) })
        #expect(try await !nodes[0].onLoop { $0.isConnected(NodeID(4)) })
        for node in nodes { try await node.stop() }
    }

    @Test("messages arrive complete and in order; those of one tick share a frame")
    func order() async throws {
        let (one, two) = (try TestNode(1), try TestNode(2))
        try await one.start(with: two)
        var expected: [PeerMessage] = []
        for tick in 0..<20 {
            let burst = (0..<50).map { message(UInt64(tick * 50 + $0), bytes: $0 == 7 ? 3_000 : 0) }
            expected += burst
            try await one.onLoop { transport in
                for message in burst { transport.send([message], to: NodeID(2)) }
            }
        }
        try await two.events.wait(for: "all messages") { [count = expected.count] events in
            count <= events.reduce(0) { if case .raft(let messages, _) = $1 { $0 + messages.count } else { $0 } }
        }
        #expect(two.events.messages == expected)
        let frames = two.events.all.filter { if case .raft(_, NodeID(2)) = $0 { true } else { false } }
        #expect(frames.isEmpty, "messages come from node 1")
        let sizes = two.events.all.compactMap {
            if case .raft(let messages, NodeID(1)) = $0 { messages.count } else { nil }
        }
        #expect(sizes == Array(repeating: 50, count: 20))
        #expect(one.transport.counters.messagesSent == 1_000)
        #expect(two.transport.counters.messagesReceived == 1_000)
        for node in [one, two] { try await node.stop() }
    }

    @Test("a peer that stops and starts again is found again, with its new boot counter")
    func restart() async throws {
        // Nobody else takes this address's port while the peer is away.
        let host = "127.0.57.2"
        let one = try TestNode(1)
        let two = try TestNode(2) { $0.listenHost = host }
        try await one.start(with: two)
        let port = two.transport.port ?? 0
        try await two.stop()
        for channel in PeerChannel.allCases { try await one.events.wait(for: .disconnected(NodeID(2), channel)) }
        #expect(try await !one.onLoop { $0.isConnected(NodeID(2)) })
        try await one.onLoop { $0.send([message(1)], to: NodeID(2)) }
        #expect(one.transport.counters.messagesDroppedNotConnected == 1)

        let again = try TestNode(2) {
            ($0.listenHost, $0.listenPort) = (host, port)
            $0.bootCounter = 2
        }
        try await again.start()
        let identity = PeerIdentity(
            node: NodeID(2), incarnation: 200, bootCounter: 2, build: PeerPresence.test.build)
        try await one.events.wait(for: .connected(identity, .raft))
        try await one.onLoop { $0.send([message(2)], to: NodeID(2)) }
        try await again.events.wait(for: .raft([message(2)], NodeID(1)))
        try await one.stop()
        try await again.stop()
    }

    @Test("a newer connection of the same peer and channel takes the place of the older")
    func replacement() async throws {
        let one = try TestNode(1)
        try await one.start()
        let port = one.transport.port ?? 0
        let older = try await RawPeer(port: port, tls: try peerTLS(2), saying: helloBytes())
        try await one.events.wait(for: "the first") { $0.contains { if case .introduced = $0 { true } else { false } } }
        let newer = try await RawPeer(port: port, tls: try peerTLS(2), saying: helloBytes())
        #expect(try await older.goodbye()?.contains("newer connection") == true)
        #expect(newer.channel.isActive)
        newer.close()
        try await one.stop()
    }

    @Test("a frame of the greatest size goes through, and one byte more is dropped and counted")
    func greatest() async throws {
        let limit: (inout PeerTransportConfiguration) -> Void = { $0.frameBytesMax = 100_000 }
        let (one, two) = (try TestNode(1, limit), try TestNode(2, limit))
        try await one.start(with: two)
        // A raft frame has 5 bytes of header; a record 4 of length and 1 of group; the rest is the message's own.
        let overhead = 5 + 5 + message(1, bytes: 99_000).message.encodedCount - 99_000
        let fitting = message(1, bytes: 100_000 - overhead)
        let tooLong = message(1, bytes: 100_001 - overhead)
        try await one.onLoop { $0.send([tooLong, fitting], to: NodeID(2)) }
        try await two.events.wait(for: .raft([fitting], NodeID(1)))
        #expect(one.transport.counters.messagesDroppedTooLarge == 1)
        try await one.events.wait(forLog: .error, "100001", "100000")
        for node in [one, two] { try await node.stop() }
    }

    @Test("messages beyond what may wait for a connection are dropped and counted")
    func full() async throws {
        let (one, two) = (
            try TestNode(1) {
                $0.frameBytesMax = 4_096
                $0.outboundBytesMax = 4_096
            }, try TestNode(2)
        )
        try await one.start(with: two)
        let burst = (0..<10).map { message(UInt64($0), bytes: 1_000) }
        try await one.onLoop { $0.send(burst, to: NodeID(2)) }
        try await two.events.wait(for: .raft(Array(burst.prefix(3)), NodeID(1)))
        #expect(one.transport.counters.messagesDroppedFull == 7)
        for node in [one, two] { try await node.stop() }
    }
}
