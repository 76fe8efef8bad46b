import PeerTransport
import RaftCore
import Testing

@testable import Cluster

@Suite("Who leads, as far as a node knows")
struct LeaderTableTests {
    private let group = GroupID(1)
    private let node = NodeID(1)
    private let other = NodeID(2)
    private let third = NodeID(3)
    private let table = LeaderTable(nodeID: NodeID(1))

    @Test("A former leader's answer or denial that comes late does not speak against this node, which leads now")
    func lateAnswerOfAnother() {
        table.roleChanged(isLeading: false, leader: other, of: group)
        // A request to the other node is held there. Meanwhile leadership comes here.
        table.roleChanged(isLeading: true, leader: node, of: group)
        table.answered(by: other, of: group)
        #expect(table.leads(group) && table.leader(of: group) == node)
        table.denied(by: other, hint: third, of: group)
        #expect(table.leads(group) && table.leader(of: group) == node)
        // Nor does it come up once this node stops leading.
        table.roleChanged(isLeading: false, leader: nil, of: group)
        #expect(!table.leads(group) && table.leader(of: group) == nil)
    }

    @Test("This node's own answer that comes late, or another node's hint at it, does not make it lead")
    func lateOwnAnswer() {
        table.roleChanged(isLeading: true, leader: node, of: group)
        table.roleChanged(isLeading: false, leader: nil, of: group)
        table.answered(by: node, of: group)
        table.denied(by: other, hint: node, of: group)
        #expect(!table.leads(group) && table.leader(of: group) == nil)
    }

    @Test("An answer says who leads where that is unknown, and nothing against what was heard since")
    func answers() {
        table.answered(by: other, of: group)
        #expect(table.leader(of: group) == other)
        table.roleChanged(isLeading: false, leader: third, of: group)
        table.answered(by: other, of: group)
        #expect(table.leader(of: group) == third)
    }

    @Test("Who denies may know better; a hint at itself is none")
    func hints() {
        table.denied(by: other, hint: third, of: group)
        #expect(table.leader(of: group) == third)
        table.denied(by: third, hint: third, of: group)
        #expect(table.leader(of: group) == nil)
    }

    @Test("A denial by one node does not speak of another")
    func others() {
        table.answered(by: third, of: group)
        table.denied(by: other, hint: nil, of: group)
        #expect(table.leader(of: group) == third)
    }
}
