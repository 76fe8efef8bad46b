import NIOCore
import RaftCore
import Testing

@testable import Cluster

extension ClusterSuites {
    @Suite("Callers that wait on a node")
    struct CallDeadlineTests {
        private typealias Answer = Result<[UInt8], ReplicaError>

        /// A call that waits, and what it will be answered.
        private static func waitingCall() async throws -> (PendingCall, Task<Answer, Never>) {
            let (calls, made) = AsyncStream.makeStream(of: PendingCall.self)
            let answer = Task {
                await withCheckedContinuation { made.yield(PendingCall($0, overdue: .readEnded)) }
            }
            return (try #require(await calls.first { _ in true }), answer)
        }

        @Test("are answered by their own deadlines, though one that has longer came before")
        func ownDeadline() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1)
            let context = try cluster.node(1).lane.context
            let (upload, uploaded) = try await Self.waitingCall()
            let (request, answered) = try await Self.waitingCall()
            try await context.eventLoop.submit {
                let begin = context.now
                context.expire(upload, at: begin.adding(milliseconds: 60_000))
                context.expire(request, at: begin.adding(milliseconds: 2_400))
                context.expireCalls(now: begin.adding(milliseconds: 2_400))
                // Too late for the request, whose time is over; the upload still waits.
                for call in [upload, request] { call.resume(.success([7])) }
            }.get()
            #expect(await answered.value == .failure(.readEnded))
            #expect(await uploaded.value == .success([7]))
            await cluster.stop()
        }

        @Test("are let go of once they are answered, however far their deadlines are")
        func answered() async throws {
            var deadlines = CallDeadlines()
            let (waiting, answer) = try await Self.waitingCall()
            deadlines.add(waiting, at: MonotonicTime(milliseconds: 60_000))
            for _ in 0..<1_000 {
                let (call, _) = try await Self.waitingCall()
                deadlines.add(call, at: MonotonicTime(milliseconds: 60_000))
                call.resume(.success([]))
            }
            #expect(deadlines.count < 200)
            var overdue: [PendingCall] = []
            while let call = deadlines.takeOverdue(now: MonotonicTime(milliseconds: 60_000)) { overdue.append(call) }
            #expect(overdue.contains { $0 === waiting }, "what waits is kept")
            waiting.resume(.success([7]))
            #expect(await answer.value == .success([7]))
        }
    }
}
