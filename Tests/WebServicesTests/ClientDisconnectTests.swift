import HTTPTypes
import HummingbirdCore
import NIOCore
import NIOPosix
import RecordModel
import Service
import Synchronization
import Testing

@testable import WebServices

@Suite("Clients that go away")
struct ClientDisconnectTests {
    /// A connection of this process to itself: the server's end and the client's.
    private func connection(
        _ group: MultiThreadedEventLoopGroup
    ) async throws -> (listener: any Channel, server: any Channel, client: any Channel) {
        let (channels, found) = AsyncStream.makeStream(of: (any Channel).self)
        let listener = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                found.yield(channel)
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let address = try #require(listener.localAddress)
        let client = try await ClientBootstrap(group: group).connect(to: address).get()
        for await server in channels { return (listener, server, client) }
        throw ServiceError(.internalError, "no connection")
    }

    @Test("the work of a request is cancelled when its client closes the connection")
    func leaving() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let (listener, server, client) = try await connection(group)
        let clientDisconnect: ClientDisconnect? = ClientDisconnect(of: server)
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        async let wasCancelled = clientDisconnect.whileClientStays { () async throws(RequestFailure) -> Bool in
            start.yield()
            while !Task.isCancelled { await Task.yield() }
            return true
        }
        for await _ in started { break }
        try await client.close()
        #expect(try await wasCancelled)
        try await listener.close()
        try await group.shutdownGracefully()
    }

    @Test("work ends by itself where the client stays, with its result or its error, and without a client")
    func staying() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let (listener, server, client) = try await connection(group)
        for clientDisconnect in [ClientDisconnect(of: server), nil] {
            for number in 0..<3 {
                #expect(try await clientDisconnect.whileClientStays { () throws(RequestFailure) in number } == number)
            }
            await #expect(throws: RequestFailure.self) {
                try await clientDisconnect.whileClientStays { () throws(RequestFailure) -> Int in
                    throw RequestFailure(.badRequest, "no")
                }
            }
        }
        try await client.close()
        try await listener.close()
        try await group.shutdownGracefully()
    }

    /// Gives parts to a loop, as the writers of connections do, and counts those that wait before it.
    private struct LoopWriter: ResponseBodyWriter {
        final class Count: Sendable {
            let waiting = Atomic(0)
            let most = Atomic(0)
        }

        let loop: any EventLoop
        let count: Count

        mutating func write(_ buffer: ByteBuffer) async throws {
            let waiting = count.waiting.add(1, ordering: .sequentiallyConsistent).newValue
            count.most.max(waiting, ordering: .sequentiallyConsistent)
            loop.execute { [count] in
                // Slower than parts come.
                for _ in 0..<10_000 { count.most.max(0, ordering: .sequentiallyConsistent) }
                count.waiting.subtract(1, ordering: .sequentiallyConsistent)
            }
        }

        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    @Test("parts of an answer do not pile up before a slow loop")
    func pacing() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let (listener, server, client) = try await connection(group)
        let clientDisconnect: ClientDisconnect? = ClientDisconnect(of: server)
        let (parts, part) = AsyncStream.makeStream(of: ByteBuffer.self)
        for _ in 0..<100 { part.yield(ByteBuffer(repeating: 7, count: 5)) }
        part.finish()
        let count = LoopWriter.Count()
        var writer: any ResponseBodyWriter = LoopWriter(loop: server.eventLoop, count: count)
        var bytes = 0
        try await clientDisconnect.write(parts, to: &writer) { bytes += $0 }
        #expect(bytes == 500)
        #expect(count.most.load(ordering: .sequentiallyConsistent) == 1)
        try await client.close()
        try await listener.close()
        try await group.shutdownGracefully()
    }
}
