import Directory
import PeerTransport
import RaftCore
import Telemetry
import Testing
import Tracing

@testable import Cluster

extension WaitingClusterSuites {
    @Suite("Traces over nodes")
    struct TraceTests {
        private static let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

        @Test("a request's spans join over the node that was asked and the one that leads", .timeLimit(.minutes(10)))
        func joined() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3) { settings in
                settings.tracer = NodeTracer(
                    ratio: 0, queue: SpanQueue(settings.metrics), random: { .random(in: 1 ... .max) }, clock: { 1 })
            }
            let first = try cluster.node(1)
            let group = first.map.group(of: Commands.zone)
            let leader = first.map.preferredLeader(of: group)
            let other = try #require(first.map.nodes.map { NodeID($0.id) }.first { $0 != leader })
            let node = try cluster.node(other.rawValue)
            _ = try await Commands.submit(Commands.installSchema(), to: node)
            while node.leader(of: group) != leader {
                try Task.checkCancellation()
                await Task.yield()
            }
            let tracer = try #require(node.settings.tracer)
            let leading = try #require(try cluster.node(leader.rawValue).settings.tracer)
            _ = (tracer.queue.takeAll(), leading.queue.takeAll())

            let request = try #require(tracer.request("records/modify", below: Self.header).span)
            try await ServiceContext.$current.withValue(request.context) {
                _ = try await Commands.submit(Commands.save("a", number: 1), to: node)
                #expect(try await Commands.lookup("a", on: node).contains("\"number\""))
            }
            request.finish()
            let here = tracer.queue.takeAll()
            // An answer may come before the span of the work that it is the answer to is in the queue.
            var there = leading.queue.takeAll()
            while there.count(where: { $0.kind == .server }) < 2 {
                try Task.checkCancellation()
                await Task.yield()
                there += leading.queue.takeAll()
            }
            #expect((here + there).allSatisfy { $0.context.trace == request.place.trace })
            func only(_ name: String, _ spans: [FinishedSpan], below parent: UInt64) throws -> UInt64 {
                let found = spans.filter { $0.name == name && $0.parent == parent }
                // Where the leader changes on the way, a part is done twice.
                return try #require(found.last, "\(spans.map(\.name))").context.span
            }
            let commit = try only("commit", here, below: request.place.span)
            let write = try only("peer", here, below: commit)
            let read = try only("read", here, below: request.place.span)
            let ask = try only("peer", here, below: read)
            let propose = try only("propose", there, below: write)
            for name in ["fsync", "replicate", "apply"] { _ = try only(name, there, below: propose) }
            let answer = try only("read", there, below: ask)
            for name in ["read index", "query"] { _ = try only(name, there, below: answer) }
            await cluster.stop()
        }

        @Test("without a trace nothing is recorded", .timeLimit(.minutes(10)))
        func nothing() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1) { settings in
                settings.tracer = NodeTracer(
                    ratio: 1, queue: SpanQueue(settings.metrics), random: { .random(in: 1 ... .max) }, clock: { 1 })
            }
            let node = try cluster.node(1)
            _ = try await Commands.submit(Commands.installSchema(), to: node)
            _ = try await Commands.submit(Commands.save("a", number: 1), to: node)
            #expect(node.settings.tracer?.queue.takeAll().isEmpty == true)
            await cluster.stop()
        }
    }
}
