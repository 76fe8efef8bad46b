import Dispatch
import NIOCore
import PeerTransport
import Synchronization
import TestSupport
import Testing

@Suite("Requests and responses")
struct RequestTests {
    /// Node 1 connected to node 2, which serves.
    private func pair(
        serve: @escaping Serve, _ change: (inout PeerTransportConfiguration) -> Void = { _ in }
    ) async throws -> (TestNode, TestNode) {
        let (one, two) = (try TestNode(1, change), try TestNode(2, change, serve: serve))
        try await one.start(with: two)
        return (one, two)
    }

    private func failure(of future: EventLoopFuture<[UInt8]>) async -> PeerTransportError? {
        do {
            _ = try await future.get()
            return nil
        } catch {
            return error as? PeerTransportError
        }
    }

    @Test("each request gets its own answer, whatever the order, thread and channel of the replies")
    func answers() async throws {
        let queue = DispatchQueue(label: "replies", attributes: .concurrent)
        let (one, two) = try await pair { request, reply in queue.async { reply(.success(request + [255])) } }
        let requests = (0..<200).map { [UInt8($0), UInt8($0 / 2)] }
        let futures = requests.enumerated().map {
            one.transport.request($1, to: NodeID(2), channel: $0 % 2 == 0 ? .request : .bulk, timeout: .minutes(5))
        }
        for (request, future) in zip(requests, futures) { #expect(try await future.get() == request + [255]) }
        #expect(two.transport.counters.requestsServed == 200)
        for node in [one, two] { try await node.stop() }
    }

    @Test("a failure of the serving side tells whether the outcome is known")
    func failures() async throws {
        let (one, two) = try await pair { request, reply in
            switch request {
            case [1]: reply(.failure(.refused("not the leader")))
            case [2]: reply(.failure(.timedOut))
            case [3]: reply(.failure(.notConnected))
            default: reply(.success([UInt8](repeating: 0, count: 20_000)))
            }
        } _: {
            $0.frameBytesMax = 10_000
        }
        func ask(_ payload: [UInt8]) async -> PeerTransportError? {
            await failure(of: one.transport.request(payload, to: NodeID(2), timeout: .minutes(5)))
        }
        #expect(await ask([1]) == .refused("not the leader"))
        #expect(await ask([2]) == .responseLost(PeerTransportError.timedOut.description))
        #expect(await ask([3]) == .refused(PeerTransportError.notConnected.description))
        guard case .responseTooLarge(let bytes, bytesMax: 10_000) = await ask([4]), bytes > 20_000 else {
            throw TestFailure("an answer longer than a frame was not told of")
        }
        let tooLarge = await ask([UInt8](repeating: 0, count: 10_001))
        guard case .tooLarge(_, bytesMax: 10_000) = tooLarge else {
            throw TestFailure("a request longer than a frame was not refused: \(String(describing: tooLarge))")
        }
        for node in [one, two] { try await node.stop() }
    }

    @Test("a request that is never answered times out, and one whose peer goes away is told so")
    func silence() async throws {
        let (one, two) = try await pair { _, _ in }
        let brief = one.transport.request([1], to: NodeID(2), timeout: .milliseconds(20))
        #expect(await failure(of: brief) == .timedOut)
        #expect(one.transport.counters.requestsTimedOut == 1)
        let long = one.transport.request([2], to: NodeID(2), timeout: .minutes(5))
        try await two.events.wait(for: .served([2], NodeID(1), .request))
        try await two.stop()
        #expect(await failure(of: long) == .disconnected)
        try await one.events.wait(for: .disconnected(NodeID(2), .request))
        #expect(await failure(of: one.transport.request([3], to: NodeID(2), timeout: .minutes(5))) == .notConnected)
        #expect(await failure(of: one.transport.request([3], to: NodeID(9), timeout: .minutes(5))) == .notConnected)
        try await one.stop()
    }

    @Test("the second reply to a request is dropped, and so is one after the connection's end")
    func replies() async throws {
        let replies = Mutex<[@Sendable (Result<[UInt8], PeerTransportError>) -> Void]>([])
        let (one, two) = try await pair { _, reply in
            replies.withLock { $0.append(reply) }
            reply(.success([1]))
            reply(.success([2]))
        }
        #expect(try await one.transport.request([0], to: NodeID(2), timeout: .minutes(5)).get() == [1])
        #expect(try await one.transport.request([0], to: NodeID(2), timeout: .minutes(5)).get() == [1])
        for node in [one, two] { try await node.stop() }
        for reply in replies.withLock({ $0 }) { reply(.success([3])) }
        _ = try await two.onLoop { $0.counters }
    }

    @Test("requests beyond what may wait fail at once and were not sent; those beyond what is served are refused")
    func limits() async throws {
        let (one, two) = try await pair { _, _ in
        } _: {
            $0.frameBytesMax = 4_096
            $0.outboundBytesMax = 4_096
            $0.servedRequestsMax = 3
        }
        let futures = try await one.onLoop { transport in
            (0..<5).map { _ in
                transport.request(
                    [UInt8](repeating: 1, count: 1_000), to: NodeID(2), channel: .bulk, timeout: .minutes(5))
            }
        }
        #expect(await failure(of: futures[4]) == .outboundFull)
        let refused = await failure(of: futures[3])
        guard case .refused(let reason) = refused else {
            throw TestFailure("the fourth request was not refused: \(String(describing: refused))")
        }
        #expect(reason.contains("too many requests"))
        try await two.stop()
        #expect(await failure(of: futures[0]) == .disconnected)
        try await one.stop()
    }
}
