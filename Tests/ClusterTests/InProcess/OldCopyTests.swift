import Foundation
import NIOCore
import PeerTransport
import RaftCore
import Testing
import Wire

@testable import Cluster

extension WaitingClusterSuites {
    @Suite("An old copy of a data folder")
    struct OldCopyTests {
        @Test(
            "takes no part while the disk has no room to note that it does not count, and begins anew then",
            .timeLimit(.minutes(10)))
        func unnoted() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3) { $0.shardCount = 1 }
            _ = try await Commands.submit(Commands.installSchema(), to: cluster.node(1))
            // Who follows acknowledges, and its leaders remember.
            let groups = [GroupID.directory, GroupID(1)]
            let leaders = try await Self.preferredLeaders(of: groups, in: cluster)
            let victim = try #require([1, 2, 3].first { !leaders.contains($0) })
            let path = cluster.dataPath(victim)
            for reserve in ["/reserve.free", "/log/reserve.free"] {
                try await yieldUntil { FileManager.default.fileExists(atPath: path + reserve) }
            }
            try FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
            for number: Int64 in 0..<20 {
                _ = try await Commands.submit(Commands.save("a", number: number), to: cluster.node(leaders[0]))
            }
            let end = try await Self.end(of: leaders[1], in: cluster)
            try await yieldUntil { try await Self.end(of: victim, in: cluster) >= end }
            await cluster.stop([victim])
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.moveItem(atPath: path + ".copy", toPath: path)

            // Nothing can be noted in the folder's account where a folder has the name of its draft.
            let obstacle = path + "/node.json.new"
            let (endings, continuation) = AsyncStream.makeStream(of: String.self)
            try await cluster.start([victim]) { _, reason in
                continuation.yield(reason)
            } opened: {
                try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
            }
            let node = try cluster.node(victim)
            try await yieldUntil { !node.participation.isAllowed }
            #expect(node.ending == nil)
            for number: Int64 in 0..<100 {
                _ = try await Commands.submit(Commands.save("b", number: number), to: cluster.node(leaders[0]))
            }
            let isHeld = try await node.lane.eventLoop.submit { [lane = node.lane] in lane.peers.trust.isHeld }.get()
            #expect(isHeld)
            let present = try await Self.end(of: victim, in: cluster)
            #expect(present < end)

            try FileManager.default.removeItem(atPath: obstacle)
            var reasons = endings.makeAsyncIterator()
            let reason = try #require(await reasons.next())
            #expect(reason.contains("the folder is an old copy"))
            await cluster.stop([victim])
            try await cluster.start([victim])
            try await yieldUntil { try await Self.end(of: victim, in: cluster) > end }
            await cluster.stop()
        }

        @Test("takes no snapshot before it knows that its folder counts", .timeLimit(.minutes(10)))
        func snapshot() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1)
            let node = try cluster.node(1)
            var chunk = SnapshotChunk.blank
            (chunk.group, chunk.term, chunk.leader) = (GroupID(1), Term(99), ReplicaID(2))
            let request = NodeRequest.snapshot(chunk).encoded()
            for (isHeld, metPeers) in [(true, nil), (false, [])] as [(Bool, Set<NodeID>?)] {
                let answer = try await node.lane.eventLoop.flatSubmit { [lane = node.lane] in
                    (lane.peers.trust.isHeld, lane.peers.trust.met) = (isHeld, metPeers)
                    let promise = lane.eventLoop.makePromise(of: [UInt8].self)
                    lane.serve(request, from: NodeID(2), channel: .bulk) { reply in
                        promise.completeWith(reply.mapError { $0 as any Error })
                    }
                    (lane.peers.trust.isHeld, lane.peers.trust.met) = (false, nil)
                    return promise.futureResult
                }.get()
                guard case .unavailable(let reason) = try NodeReply(decoding: answer) else {
                    Issue.record("\(answer)")
                    continue
                }
                #expect(reason.contains("folder may be old"))
            }
            await cluster.stop()
        }

        /// Waits until the preferred nodes lead.
        private static func preferredLeaders(of groups: [GroupID], in cluster: TestCluster) async throws -> [UInt64] {
            let node = try cluster.node(1)
            let preferred = groups.map { node.map.preferredLeader(of: $0) }
            try await yieldUntil { zip(groups, preferred).allSatisfy { node.leader(of: $0) == $1 } }
            return preferred.map(\.rawValue)
        }

        /// The last entry of the shard on a node.
        private static func end(of id: UInt64, in cluster: TestCluster) async throws -> LogIndex {
            let statuses = try await cluster.node(id).status()
            return statuses.first { $0.group == GroupID(1) }?.lastLog.index ?? .zero
        }
    }
}
