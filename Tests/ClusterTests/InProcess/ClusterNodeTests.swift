import Cluster
import Foundation
import PeerTransport
import RaftCore
import RecordModel
import RecordStore
import Testing

extension ClusterSuites {
    @Suite("A cluster's nodes, in one process")
    struct ClusterNodeTests {
        @Test("one node is groups of one voter, and keeps what it acknowledged over a restart")
        func oneNode() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1)
            #expect(try await Commands.submit(Commands.installSchema(), to: cluster.node(1)) == .schemaInstalled)
            for number in 0..<50 {
                let outcome = try await Commands.submit(
                    Commands.save("n\(number)", number: Int64(number)), to: cluster.node(1))
                guard case .records(let items) = outcome, case .saved = items[0] else {
                    Issue.record("not saved: \(outcome)")
                    return
                }
            }
            let stopped = try cluster.node(1)
            await cluster.stop()
            await #expect(throws: ClusterError.unavailable("the node is stopping")) {
                try await Commands.submit(Commands.save("late", number: 1), to: stopped)
            }
            try await cluster.start()
            try await cluster.awaitMaps()
            for number in 0..<50 {
                #expect(try await Commands.lookup("n\(number)", on: cluster.node(1)).contains(#""value":\#(number)"#))
            }
            await cluster.stop()
        }

        @Test("three nodes answer for any zone, and go on with two")
        func threeNodes() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3)
            #expect(try await Commands.submit(Commands.installSchema(), to: cluster.node(2)) == .schemaInstalled)
            for number in 0..<60 {
                let writer = try cluster.node(UInt64(number % 3 + 1))
                let reader = try cluster.node(UInt64((number + 1) % 3 + 1))
                _ = try await Commands.submit(Commands.save("n\(number)", number: Int64(number)), to: writer)
                #expect(try await Commands.lookup("n\(number)", on: reader).contains(#""value":\#(number)"#))
            }
            let group = try cluster.node(1).map.group(of: Commands.zone)
            let leader = try #require(try cluster.node(1).leader(of: group)).rawValue
            await cluster.stop([leader])
            let survivors = cluster.nodes.keys.sorted()
            var saved = false
            for _ in 0..<5 where !saved {
                do {
                    _ = try await Commands.submit(Commands.save("after", number: 7), to: cluster.node(survivors[0]))
                    saved = true
                } catch ClusterError.unavailable {
                    continue
                } catch ClusterError.outcomeUnknown {
                    continue
                }
            }
            #expect(saved)
            #expect(try await Commands.lookup("after", on: cluster.node(survivors[1])).contains(#""value":7"#))
            try await cluster.start([leader])
            #expect(try await Commands.lookup("n1", on: cluster.node(leader)).contains(#""value":1"#))
            await cluster.stop()
        }
    }
}
