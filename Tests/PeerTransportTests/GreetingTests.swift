import NIOCore
import RaftCore
import Testing
import Wire

@testable import PeerTransport

@Suite("Greeting, back-off and names")
struct GreetingTests {
    private func hello(_ change: (inout Hello) -> Void = { _ in }) throws -> Hello {
        try Hello(decoding: helloBytes(change).dropFirst(Frame.headerBytes))
    }

    @Test("a peer is welcome only if certificate, claim, dialled node, cluster, version and channel agree")
    func judgement() throws {
        let incoming = Greeting(node: NodeID(1), clusterID: "test", build: PeerPresence.test.build)
        let outgoing = Greeting(
            node: NodeID(1), clusterID: "test", build: PeerPresence.test.build, dialled: (NodeID(2), .raft))
        let good = try hello()
        #expect(incoming.refusal(of: good, certificateNodes: [NodeID(2)]) == nil)
        #expect(outgoing.refusal(of: good, certificateNodes: [NodeID(2)]) == nil)
        #expect(incoming.refusal(of: good, certificateNodes: [NodeID(3), NodeID(2)]) == nil)

        func refusal(_ greeting: Greeting, _ nodes: [UInt64], _ change: (inout Hello) -> Void) throws -> String? {
            greeting.refusal(of: try hello(change), certificateNodes: nodes.map { NodeID($0) })
        }
        #expect(try refusal(incoming, []) { _ in }?.contains("names no node") == true)
        #expect(try refusal(incoming, [3]) { _ in }?.contains("names node 3") == true)
        #expect(try refusal(outgoing, [3]) { $0.node = NodeID(3) }?.contains("node 2 was dialled") == true)
        #expect(try refusal(incoming, [1]) { $0.node = NodeID(1) }?.contains("this node") == true)
        #expect(try refusal(incoming, [2]) { $0.clusterID = "Test" }?.contains("cluster") == true)
        #expect(try refusal(incoming, [2]) { ($0.versionMin, $0.versionMax) = (2, 3) }?.contains("versions") == true)
        #expect(try refusal(incoming, [2]) { ($0.versionMin, $0.versionMax) = (0, 0) }?.contains("versions") == true)
        #expect(try refusal(outgoing, [2]) { $0.channel = .bulk }?.contains("channel") == true)
        #expect(try refusal(incoming, [2]) { $0.build.levels = 1...1 }?.contains("it is too old") == true)
        #expect(try refusal(outgoing, [2]) { $0.build.levels = nil }?.contains("before feature levels") == true)
    }

    @Test(
        "builds fit whose feature levels overlap; else each side says which of the two is too old",
        arguments: [
            (2...5, 1...2, nil), (2...5, 5...9, nil), (3...3, 1...9, nil),
            (2...5, 1...1, "it is too old for this cluster"),
            (2...5, 6...9, "this node is too old for its cluster"),
        ] as [(ClosedRange<UInt64>, ClosedRange<UInt64>, String?)])
    func builds(own: ClosedRange<UInt64>, peer: ClosedRange<UInt64>, says: String?) throws {
        let (own, peer) = (PeerBuild(version: "1.4", levels: own), PeerBuild(version: "1.5", levels: peer))
        let (here, there) = (own.refusal(of: peer), peer.refusal(of: own))
        #expect((here == nil) == (there == nil))
        guard let says else { return #expect(here == nil) }
        #expect(here?.hasPrefix(says) == true && here?.contains("1.5") == true)
        #expect(there?.hasPrefix(says.hasPrefix("it") ? "this node" : "it is") == true)
    }

    @Test(
        "a clock differs by what is possible, however long the message was on its way",
        arguments: [
            (peer: 500, asked: 400, heard: 600, ahead: -100...100), (700, 400, 600, 100...300),
            (300, 400, 600, -300 ... -100),
            // This node's own clock was set back meanwhile.
            (500, 600, 400, -100...100), (700, 600, 400, 100...300), (.max, -5, 5, .max - 5 ... .max),
            (.max, -9, -5, .max ... .max), (.min, 5, 9, .min ... .min),
        ] as [(peer: Int64, asked: Int64, heard: Int64, ahead: ClosedRange<Int64>)])
    func clocks(peer: Int64, asked: Int64, heard: Int64, ahead: ClosedRange<Int64>) {
        #expect(PeerClockComparison.ahead(peer: peer, asked: asked, heard: heard) == ahead)
        #expect(ClockReading(wallMilliseconds: peer, asked: asked).ahead(heard: heard) == ahead)
        #expect(ClockReading(wallMilliseconds: peer).ahead(heard: heard) == nil)
    }

    @Test(
        "only the exact URI names a node",
        arguments: [
            ("zonekeeper://node/7", 7), ("zonekeeper://node/18446744073709551615", UInt64.max),
            ("zonekeeper://node/07", nil),
            ("zonekeeper://node/+7", nil), ("zonekeeper://node/", nil), ("zonekeeper://node/7/", nil),
            ("zonekeeper://nodes/7", nil), ("Zonekeeper://node/7", nil),
            ("zonekeeper://node/18446744073709551616", nil),
        ] as [(String, UInt64?)])
    func uris(uri: String, node: UInt64?) {
        #expect(PeerCertificate.node(inURI: uri)?.rawValue == node)
    }

    @Test("waits double from 100 ms to 2 s with at most half taken off, and begin again after success")
    func backoff() {
        var generator = SplitMix64(seed: 5)
        var backoff = Backoff()
        for full: Int64 in [100, 200, 400, 800, 1_600, 2_000, 2_000] {
            let wait = backoff.next(random: generator.next())
            #expect(wait >= .milliseconds(full / 2) && wait <= .milliseconds(full))
        }
        for _ in 0..<100 { #expect(backoff.next(random: generator.next()) >= .milliseconds(1_000)) }
        backoff.reset()
        #expect(backoff.next(random: generator.next()) <= .milliseconds(100))
        let spread = Set((0..<20).map { _ in backoff.next(random: generator.next()) })
        #expect(spread.count > 5)
    }
}
