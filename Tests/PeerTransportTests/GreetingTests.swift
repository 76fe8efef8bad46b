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
        let incoming = Greeting(node: NodeID(1), clusterID: "test")
        let outgoing = Greeting(node: NodeID(1), clusterID: "test", dialled: (NodeID(2), .raft))
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
            let wait = backoff.next(using: &generator)
            #expect(wait >= .milliseconds(full / 2) && wait <= .milliseconds(full))
        }
        for _ in 0..<100 { #expect(backoff.next(using: &generator) >= .milliseconds(1_000)) }
        backoff.reset()
        #expect(backoff.next(using: &generator) <= .milliseconds(100))
        let spread = Set((0..<20).map { _ in backoff.next(using: &generator) })
        #expect(spread.count > 5)
    }
}
