import Directory
import PeerTransport
import RaftCore
import Testing

@testable import Cluster

@Suite("who holds a file: the count of a group's voters")
struct AssetTallyTests {
    private static func ids(_ numbers: UInt64...) -> [ReplicaID] {
        numbers.map { ReplicaID(.init(node: $0, generation: 0)) }
    }

    private let three = Configuration(voters: ids(1, 2, 3))

    @Test("a majority is enough, whatever the others say later")
    func majority() async {
        let tally = AssetTally(three)
        tally.add(NodeID(1), nil)
        tally.add(NodeID(2), .diskFull)
        tally.add(NodeID(3), nil)
        #expect(await tally.result() == nil)
    }

    @Test("a minority is not: the outcome is known as soon as no majority is possible")
    func minority() async {
        let tally = AssetTally(three)
        tally.add(NodeID(1), nil)
        tally.add(NodeID(2), .missing)
        tally.add(NodeID(3), .diskFull)
        #expect(await tally.result() == .diskFull)
        let lost = AssetTally(three)
        lost.add(NodeID(2), .missing)
        lost.add(NodeID(3), .missing)
        #expect(await lost.result() == .missing)
    }

    @Test("while members change, both majorities must hold it")
    func joint() async {
        let joint = Configuration(voters: Self.ids(3, 4, 5), outgoing: Self.ids(1, 2, 3))
        let tally = AssetTally(joint)
        for node in [3, 4] as [UInt64] { tally.add(NodeID(node), nil) }
        for node in [1, 2] as [UInt64] { tally.add(NodeID(node), .unavailable("away")) }
        #expect(await tally.result() == .unavailable("away"))
        let both = AssetTally(joint)
        for node in [1, 3, 4] as [UInt64] { both.add(NodeID(node), nil) }
        #expect(await both.result() == nil)
    }

    @Test("who waits is told once the count is decided")
    func waits() async {
        let tally = AssetTally(three)
        async let result = tally.result()
        tally.add(NodeID(1), nil)
        tally.add(NodeID(2), nil)
        #expect(await result == nil)
    }

    @Test("who waits is told when the time is over, unless the count is decided")
    func over() async {
        let tally = AssetTally(three)
        tally.add(NodeID(1), nil)
        async let result = tally.result()
        tally.expire()
        guard case .unavailable = await result else {
            Issue.record("a minority is taken for a majority")
            return
        }
        tally.add(NodeID(3), nil)
        #expect(await tally.result() == nil)
    }

    @Test("one file is fetched once at a time, and a few files at once")
    func pulls() async {
        let pulls = AssetPulls<[UInt8]>(runningMax: 2)
        #expect(await pulls.enter([1]))
        #expect(await pulls.enter([2]))
        async let third = pulls.enter([3])
        async let again = pulls.enter([1])
        while pulls.load.waiting < 2 { await Task.yield() }
        pulls.leave([2])
        #expect(await third)
        #expect(pulls.load.running == 2 && pulls.load.waiting == 1)
        pulls.leave([1])
        #expect(await again)
        #expect(pulls.load.running == 2 && pulls.load.waiting == 0)
        // Who does not wait gets a place that is free, for a file that nobody fetches.
        #expect(!pulls.enterNow([4]))
        pulls.leave([3])
        #expect(!pulls.enterNow([1]) && pulls.enterNow([4]))
        await pulls.awaitEnd(of: [3])
        async let end: Void = pulls.awaitEnd(of: [4])
        while pulls.load.waiting < 1 { await Task.yield() }
        pulls.leave([4])
        await end
        #expect(pulls.load.running == 1 && pulls.load.waiting == 0)
    }
}
