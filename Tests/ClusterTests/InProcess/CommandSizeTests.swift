import NIOCore
import PeerTransport
import RaftCore
import Testing
import Wire

@testable import Cluster

extension ClusterSuites {
    @Suite("What is too large for the nodes of a cluster")
    struct CommandSizeTests {
        /// A command of so many bytes, encoded. No machine can read it, so it is applied as a refusal.
        private static func command(bytes: Int) -> GroupCommand {
            // A key of one byte and a length of four come before it.
            .machine([UInt8](repeating: 0xFF, count: bytes - 5))
        }

        @Test("the largest command is applied from any node, one byte more is refused at once, and its group goes on")
        func largestCommand() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3) { settings in
                settings.shardCount = 1
                settings.requestDeadlineMilliseconds = 120_000
            }
            let bytesMax = Entry.commandBytesMax
            let (largest, larger) = (Self.command(bytes: bytesMax), Self.command(bytes: bytesMax + 1))
            #expect(largest.encoded().count == bytesMax)
            let excess = Oversize(.request, bytes: bytesMax + 1, bytesMax: bytesMax)
            for node in [cluster.nodes[1], cluster.nodes[2], cluster.nodes[3]] {
                let node = try #require(node)
                _ = try await node.router.submit(largest, to: .shard(0), by: node.deadline())
                for group in [GroupID.shard(0), .directory] {
                    await #expect(throws: ClusterError.tooLarge(excess)) {
                        try await node.router.submit(larger, to: group, by: node.deadline())
                    }
                }
                // What does not come through the router is held to it as well.
                let result = await withCheckedContinuation { continuation in
                    node.lane.eventLoop.execute {
                        node.lane.runner.propose(larger.encoded(), to: .shard(0)) { continuation.resume(returning: $0) }
                    }
                }
                #expect(result == .failure(.tooLarge(excess)))
                _ = try await Commands.submit(Commands.installSchema(), to: node)
            }
            await cluster.stop()
        }

        private static func ask(_ node: ClusterNode) async -> Result<[UInt8], ClusterError> {
            do throws(ClusterError) {
                return .success(try await node.router.confer([], with: .shard(0), by: node.deadline()))
            } catch {
                return .failure(error)
            }
        }

        @Test("an answer that does not fit a frame is an error at once, not a silence until the deadline")
        func answer() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3) { settings in
                settings.shardCount = 1
                settings.requestDeadlineMilliseconds = 3_600_000
            }
            var answers = 0
            let services = Verbose()
            for node in cluster.nodes.values { node.serve(services) }
            for node in cluster.nodes.values {
                switch await Self.ask(node) {
                case .success(let bytes): answers += bytes.count
                case .failure(.tooLarge(let size)):
                    #expect(size.part == .answer && size.bytes > Verbose.answerBytes && size.bytesMax == 8 << 20)
                case .failure(let error): Issue.record("\(error)")
                }
            }
            // The leader's own question crosses no connection.
            #expect(answers == Verbose.answerBytes)
            await cluster.stop()
            withExtendedLifetime(services) {}
        }
    }
}

/// Answers everything at length.
private final class Verbose: NodeServices {
    static let answerBytes = 9 << 20

    func confer(_ request: [UInt8], as leadership: Leadership, reply: @escaping @Sendable ([UInt8]) -> Void) {
        reply([UInt8](repeating: 0, count: Self.answerBytes))
    }

    func hear(_ message: [UInt8], from node: NodeID) {}

    func answer(_ question: [UInt8], reply: @escaping @Sendable ([UInt8]?) -> Void) { reply(nil) }
}
