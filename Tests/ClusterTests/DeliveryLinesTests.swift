import PeerTransport
import RaftCore
import Testing

@testable import Cluster

@Suite("The order in which snapshots are sent")
struct DeliveryLinesTests {
    @Test("to a node one goes after another; other nodes, and the directory's, do not wait for it")
    func order() {
        var lines = DeliveryLines<String>()
        let (slow, other) = (NodeID(2), NodeID(3))
        let first = lines.join("first", of: GroupID(1), to: slow)
        let second = lines.join("second", of: GroupID(2), to: slow)
        let third = lines.join("third", of: GroupID(3), to: slow)
        #expect(first && !second && !third)
        let elsewhere = lines.join("elsewhere", of: GroupID(2), to: other)
        let directory = lines.join("directory", of: .directory, to: slow)
        #expect(elsewhere && directory)
        let next = lines.ended(of: GroupID(1), to: slow)
        #expect(next == "second")
        // One that failed waits behind those that were asked for before it is asked for again.
        let again = lines.join("again", of: GroupID(1), to: slow)
        #expect(!again)
        let rest = [GroupID(2), GroupID(3), GroupID(1)].map { lines.ended(of: $0, to: slow) }
        #expect(rest == ["third", "again", nil])
        let alone = lines.join("alone", of: GroupID(4), to: slow)
        #expect(alone, "the line is empty")
    }
}
