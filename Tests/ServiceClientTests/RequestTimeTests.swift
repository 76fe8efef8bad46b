import NIOCore
import NIOPosix
import RecordModel
import TestSupport
import Testing

@testable import ServiceClient

/// Takes connections and never says anything.
private struct SilentServer {
    let url: String

    static func running<Value>(_ body: (SilentServer) async throws -> Value) async throws -> Value {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        do {
            let value = try await body(SilentServer(url: "http://127.0.0.1:\(channel.localAddress?.port ?? 0)"))
            try await channel.close()
            return value
        } catch {
            try await channel.close()
            throw error
        }
    }
}

@Suite("The time that a request may take")
struct RequestTimeTests {
    /// A session whose clock stands still, so that what a busy machine takes is not taken from a request's time.
    private func session(_ urls: [String]) throws -> ServiceSession {
        try ServiceSession(
            ZonekeeperConfiguration(urls: urls, container: "c", apiToken: "api"), waiting: TestClock().waiting)
    }

    private func ask(_ session: ServiceSession, limit: Duration?) async throws {
        _ = try await session.send(database: "public", action: "records/query", body: Array("{}".utf8), limit: limit)
    }

    @Test("Where all of a request has a limit, a silent node is given up in that time, and not in its own")
    func silence() async throws {
        try await SilentServer.running { server in
            let session = try session([server.url])
            let error = await #expect(throws: ServiceUnreachable.self) { try await ask(session, limit: .seconds(3)) }
            #expect(error?.wasSent == true && error?.problems.first?.text == "no answer in time")
        }
    }

    @Test("An attempt has its own time or what is left of the limit, and half of that while there is another node")
    func shares() {
        var request = ServiceRequest(.get, "/x")
        func seconds(elapsed: Double, isLast: Bool) -> Double {
            ServiceClient.secondsForAttempt(request, elapsed: elapsed, isLast: isLast)
        }
        #expect(request.timeoutSeconds == 30 && seconds(elapsed: 100, isLast: false) == 30)
        request.limitSeconds = 4
        #expect(seconds(elapsed: 0, isLast: false) == 2 && seconds(elapsed: 0, isLast: true) == 4)
        #expect(seconds(elapsed: 2, isLast: false) == 1 && seconds(elapsed: 2, isLast: true) == 2)
        #expect(seconds(elapsed: 5, isLast: true) == -1)
        request.limitSeconds = 100
        #expect(seconds(elapsed: 0, isLast: false) == 30 && seconds(elapsed: 0, isLast: true) == 30)
    }

    @Test("After a silent node's share of the time the next one is asked")
    func nextNode() async throws {
        try await SilentServer.running { silent in
            try await ScriptedServer.running({ _, _ in ScriptedAnswer() }) { server in
                try await ask(try session([silent.url, server.url]), limit: .seconds(8))
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test("What is left of the limit is what an attempt gets; without one it has its own time")
    func rest() async throws {
        let body = #"{"serverErrorCode":"THROTTLED","reason":"slow down","retryAfter":4}"#
        try await ScriptedServer.running({ _, _ in ScriptedAnswer(status: 429, body: body) }) { server in
            let clock = TestClock()
            let configuration = ZonekeeperConfiguration(urls: [server.url], container: "c", apiToken: "api")
            let session = try ServiceSession(configuration, waiting: clock.waiting)
            await #expect(throws: ServiceFailure.self) { try await ask(session, limit: .seconds(7)) }
            #expect(clock.pauses == [.seconds(4)], "a second pause of 4 s would end too late")
            await #expect(throws: ServiceFailure.self) { try await ask(session, limit: nil) }
            #expect(clock.pauses.count == 3, "the patience is 10 s")
        }
    }

    @Test("Keys of requests are UUIDs of version 7 with the time in front, each another")
    func keys() {
        let key = IdempotencyKeys.make(now: 0x0123_4567_89AB)
        #expect(key.hasPrefix("01234567-89AB-7") && key.count == 36)
        let groups = key.split(separator: "-").map(\.count)
        #expect(groups == [8, 4, 4, 4, 12] && "89AB".contains(key.dropFirst(19).prefix(1)))
        #expect(key.allSatisfy { $0 == "-" || $0.isHexDigit && !$0.isLowercase })
        #expect(Set((0..<100).map { _ in IdempotencyKeys.make(now: 0) }).count == 100)
    }

    @Test("Text in a URL: what is plain stays, every other byte is encoded")
    func percents() {
        #expect(PercentCoding.encode("iCloud.com-a_b~9") == "iCloud.com-a_b~9")
        #expect(PercentCoding.encode("") == "")
        #expect(PercentCoding.encode("a b/ü+\u{1}") == "a%20b%2F%C3%BC%2B%01")
        var request = ServiceRequest(.get, "/x", parameters: [(name: "a&", value: "1=2")])
        #expect(request.target == "/x?a%26=1%3D2")
        request.credentials = .tokens(api: "k", user: WebAuthToken("t+"))
        #expect(request.target == "/x?a%26=1%3D2&ckAPIToken=k&ckWebAuthToken=t%2B")
        #expect(ServiceRequest(.get, "/x").target == "/x")
    }
}
