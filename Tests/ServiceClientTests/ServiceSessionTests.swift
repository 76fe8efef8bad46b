import Foundation
import NIOHTTP1
import RecordModel
import Synchronization
import TestSupport
import Testing

@testable import ServiceClient

/// A clock that stands still but for the waits, which it keeps.
final class TestClock: Sendable {
    private let state = Mutex<[Duration]>([])
    var pauses: [Duration] { state.withLock { $0 } }
    var waiting: Waiting {
        Waiting(now: { self.pauses.reduce(.zero, +) }, sleep: { pause in self.state.withLock { $0.append(pause) } })
    }
}

@Suite("An account's session")
struct ServiceSessionTests {
    private static let refusal = ScriptedAnswer(
        status: 421, body: #"{"serverErrorCode":"AUTHENTICATION_REQUIRED","reason":"request needs authorization"}"#)

    private func configuration(_ server: ScriptedServer, file: String? = nil) -> ZonekeeperConfiguration {
        ZonekeeperConfiguration(
            urls: [server.url], container: "c d", apiToken: "api", webAuthToken: file == nil ? "one" : nil,
            webAuthTokenFile: file)
    }

    @Test("Requests go to the container's paths with both tokens; what changes something carries a key")
    func requests() async throws {
        try await ScriptedServer.running({ _, _ in ScriptedAnswer(body: #"{"userRecordName":"_u"}"#) }) { server in
            let session = try ServiceSession(configuration(server))
            _ = try await session.send(database: "private", action: "zones/list", body: Array("{}".utf8))
            _ = try await session.keyValues("set", body: Array("{}".utf8))
            _ = try await session.keyValues("changes", body: Array("{}".utf8))
            #expect(try await session.userRecordName() == "_u")
            #expect(try await session.userRecordName() == "_u")
            #expect(
                server.requests.map(\.path) == [
                    "/database/1/c%20d/development/private/zones/list", "/kv/1/c%20d/development/set",
                    "/kv/1/c%20d/development/changes", "/database/1/c%20d/development/public/users/caller",
                ])
            #expect(server.requests.allSatisfy { $0.parameter("ckWebAuthToken") == "one" })
            #expect(
                server.requests.map { $0.headers.first(name: "Idempotency-Key") != nil } == [false, true, false, false])
        }
    }

    @Test("A failure carries the server's code, reason and time; a throttled request waits exactly as long")
    func failure() async throws {
        let body = #"{"serverErrorCode":"THROTTLED","reason":"slow down","retryAfter":4,"uuid":"u"}"#
        try await ScriptedServer.running({ _, _ in ScriptedAnswer(status: 429, body: body) }) { server in
            let clock = TestClock()
            let session = try ServiceSession(configuration(server), waiting: clock.waiting)
            let failure = await #expect(throws: ServiceFailure.self) {
                try await session.send(database: "private", action: "records/query", body: Array("{}".utf8))
            }
            #expect(failure?.code == "THROTTLED" && failure?.retryAfterSeconds == 4 && failure?.uuid == "u")
            #expect(clock.pauses == [.seconds(4), .seconds(4)])
        }
    }

    /// Knows the sessions `one`, `two` and `three` by their tokens; the first two are one user's.
    private static func answer(_ request: ScriptedRequest, _ valid: [String]) -> ScriptedAnswer {
        let token = request.parameter("ckWebAuthToken") ?? ""
        guard valid.contains(token) else { return refusal }
        return ScriptedAnswer(body: #"{"userRecordName":"\#(token == "three" ? "_bob" : "_ada")"}"#)
    }

    @Test("A token that another program has renewed in the file is taken from there, before it is refused and after")
    func sharedFile() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder + "/session"
            try PrivateFile.create(path, "one\n")
            let valid = Mutex(["one"])
            try await ScriptedServer.running({ request, _ in Self.answer(request, valid.withLock { $0 }) }) { server in
                let session = try ServiceSession(configuration(server, file: path))
                func send() async throws {
                    _ = try await session.send(database: "private", action: "zones/list", body: Array("{}".utf8))
                }
                try await send()
                try PrivateFile.replace(path, with: "two\n")
                valid.withLock { $0 = ["two"] }
                try await send()
                #expect(!isRefused(session))
                valid.withLock { $0 = [] }
                await #expect(throws: ServiceFailure.self) { try await send() }
                #expect(isRefused(session))
                #expect(
                    server.requests.map { "\($0.parameter("ckWebAuthToken") ?? "") \($0.path.hasSuffix("caller"))" }
                        == [
                            "one true", "one false", "two true", "two false", "two false",
                        ])
            }
        }
    }

    @Test("What was meant for one user does not go out as another's who has signed in meanwhile")
    func otherUser() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder + "/session"
            try PrivateFile.create(path, "one\n")
            try await ScriptedServer.running({ request, _ in Self.answer(request, ["one", "three"]) }) { server in
                let session = try ServiceSession(configuration(server, file: path))
                let heard = Mutex<[String]>([])
                let observation = ZonekeeperConfiguration.observeAccount { change in
                    switch change {
                    case .signedOut(let other) where other === session: heard.withLock { $0.append("out") }
                    case .signedIn(let other) where other === session: heard.withLock { $0.append("in") }
                    default: break
                    }
                }
                func send() async throws {
                    _ = try await session.send(
                        database: "private", action: "records/modify", body: Array("{}".utf8), idempotencyKey: "k")
                }
                try await send()
                #expect(try await session.userRecordName() == "_ada")
                try PrivateFile.replace(path, with: "three\n")
                let failure = await #expect(throws: ServiceFailure.self) { try await send() }
                #expect(failure?.isSignedOut == true && failure?.reason.contains("another user") == true)
                #expect(heard.withLock { $0 } == ["out", "in"])
                #expect(server.requests.filter { $0.path.hasSuffix("modify") }.count == 1)
                try await send()
                #expect(try await session.userRecordName() == "_bob")
                observation.cancel()
            }
        }
    }

    @Test("An answer that comes late brings no older token back")
    func lateAnswers() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder + "/session"
            try PrivateFile.create(path, "t0\n")
            let token = try WebAuthTokenSource(path: path).token()
            token.replaced(by: "t2", after: "t0")
            token.replaced(by: "t1", after: "t0")
            #expect(token.current == "t2")
            token.replaced(by: "t3", after: "t2")
            #expect(try SecretFile.read(path) == "t3")
            // Another program's is newer than what an answer brings now.
            try PrivateFile.replace(path, with: "theirs\n")
            token.replaced(by: "t4", after: "t3")
            #expect(token.current == "theirs")
            #expect(try SecretFile.read(path) == "theirs")
            #expect(try WebAuthTokenSource(path: path).token() === token)
        }
    }

    @Test("A request whose answer got lost is sent again where that does no harm, with one node too, and not else")
    func lostAnswers() async throws {
        var lost = ScriptedAnswer()
        lost.isLost = true
        try await ScriptedServer.running({ [lost] _, earlier in earlier % 2 == 0 ? lost : ScriptedAnswer() }) {
            server in
            let clock = TestClock()
            let session = try ServiceSession(configuration(server), waiting: clock.waiting)
            _ = try await session.send(
                database: "private", action: "records/modify", body: Array("{}".utf8), idempotencyKey: "k")
            _ = try await session.send(database: "private", action: "records/query", body: Array("{}".utf8))
            #expect(server.requests.count == 4 && clock.pauses.count == 2)
            #expect(server.requests.prefix(2).map { $0.headers.first(name: "Idempotency-Key") } == ["k", "k"])
            let error = await #expect(throws: ServiceUnreachable.self) {
                try await session.client.send(ServiceRequest(.post, "/x"))
            }
            #expect(error?.wasSent == true && error?.isOutcomeUnknown == true)
            #expect(server.requests.count == 5)
        }
    }

    @Test("The node that answered last is asked first; one that failed comes last for some seconds")
    func nodes() {
        let nodes = NodeOrder(count: 3)
        #expect(nodes.order(now: .zero) == [0, 1, 2])
        nodes.answered(0, isServing: false, now: .zero)
        #expect(nodes.order(now: .seconds(1)) == [1, 2, 0])
        nodes.answered(1, isServing: true, now: .seconds(1))
        #expect(nodes.order(now: .seconds(2)) == [1, 2, 0])
        #expect(nodes.order(now: .seconds(6)) == [1, 2, 0])
        nodes.answered(2, isServing: true, now: .seconds(6))
        #expect(nodes.order(now: .seconds(7)) == [2, 0, 1])
        for place in 0..<3 { nodes.answered(place, isServing: false, now: .seconds(8)) }
        #expect(nodes.order(now: .seconds(9)).count == 3)
    }

    @Test("Whoever listens hears once that the session ended, and once that it goes on")
    func accountChanges() async throws {
        try await ScriptedServer.running({ _, earlier in earlier == 1 || earlier == 2 ? Self.refusal : ScriptedAnswer()
        }
        ) { server in
            let session = try ServiceSession(configuration(server))
            let heard = Mutex<[String]>([])
            let observation = ZonekeeperConfiguration.observeAccount { change in
                switch change {
                case .signedOut(let other) where other === session: heard.withLock { $0.append("out") }
                case .signedIn(let other) where other === session: heard.withLock { $0.append("in") }
                default: break
                }
            }
            for _ in 0..<5 {
                _ = try? await session.send(database: "private", action: "zones/list", body: Array("{}".utf8))
            }
            #expect(heard.withLock { $0 } == ["out", "in"])
            observation.cancel()
        }
    }

    @Test("A stream's events come one by one until the node ends it; a refusal is the first thing that comes")
    func watch() async throws {
        let stream = ScriptedAnswer(
            headers: [
                ("Content-Type", "text/event-stream; charset=utf-8"), ("X-Apple-CloudKit-Web-Auth-Token", "next"),
            ],
            body: ": hello\n\nid: t1\nevent: changes\ndata: {}\n\nid: t2\ndata: 2\n\n")
        try await ScriptedServer.running({ _, earlier in earlier == 0 ? stream : Self.refusal }) { server in
            let session = try ServiceSession(configuration(server))
            var events: [ServerSentEvent] = []
            for try await event in session.watchKeyValues(syncToken: "t/0") { events.append(event) }
            #expect(
                events == [
                    ServerSentEvent(id: "t1", name: "changes", data: "{}"), ServerSentEvent(id: "t2", data: "2"),
                ])
            #expect(server.requests[0].method == "GET" && server.requests[0].parameter("syncToken") == "t%2F0")
            #expect(server.requests[0].headers.first(name: "Accept") == "text/event-stream")
            let failure = await #expect(throws: ServiceFailure.self) {
                for try await _ in session.watchKeyValues(syncToken: nil) {}
            }
            #expect(failure?.isSignedOut == true)
            #expect(server.requests[1].parameter("ckWebAuthToken") == "next")
        }
    }

    @Test("Where nobody listens, and where the task was cancelled, is told apart")
    func unreachable() async throws {
        let configuration = ZonekeeperConfiguration(
            urls: ["http://127.0.0.1:\(try FreePorts.take(1)[0])"], container: "c", apiToken: "api")
        let session = try ServiceSession(configuration)
        let error = await #expect(throws: ServiceUnreachable.self) {
            try await session.send(database: "public", action: "records/query", body: Array("{}".utf8))
        }
        #expect(error?.isRefused == true && error?.wasSent == false && error?.isOutcomeUnknown == false)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try await session.send(database: "public", action: "records/query", body: Array("{}".utf8))
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test("Of a pause of the client's own choice a portion is taken; what the server names is kept to")
    func portions() {
        var pauses = RetryPauses(patienceSeconds: 10)
        #expect(pauses.next(named: nil, elapsed: 0, portion: 0.5) == 0.05)
        #expect(pauses.next(named: nil, elapsed: 0, portion: 0.5) == 0.1)
        #expect(pauses.next(named: 0.337, elapsed: 0, portion: 0.5) == 0.337)
    }
}

private func isRefused(_ session: ServiceSession) -> Bool { session.state.withLock(\.isRefused) }
