import PeerTransport
import RaftCore
import Testing

@testable import Cluster

@Suite("Who leads, as far as a node knows")
struct LeaderTableTests {
    private let group = GroupID(1)
    private let table = LeaderTable()

    @Test("An answer that is noted after its node stopped leading is forgotten with the first denial, whoever's it is")
    func lateAnswer() {
        let node = NodeID(1)
        table.set(node, of: group)
        table.set(nil, of: group)
        table.set(node, of: group)
        table.denied(by: node, hint: nil, of: group)
        #expect(table.leader(of: group) == nil)
    }

    @Test("Who denies may know better; a hint at itself is none")
    func hints() {
        table.denied(by: NodeID(2), hint: NodeID(3), of: group)
        #expect(table.leader(of: group) == NodeID(3))
        table.denied(by: NodeID(3), hint: NodeID(3), of: group)
        #expect(table.leader(of: group) == nil)
    }

    @Test("A denial by one node does not speak of another")
    func others() {
        table.set(NodeID(3), of: group)
        table.denied(by: NodeID(2), hint: nil, of: group)
        #expect(table.leader(of: group) == NodeID(3))
    }
}
