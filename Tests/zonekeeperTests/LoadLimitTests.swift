import ArgumentParser
import Foundation
import NIOCore
import NIOPosix
import RecordModel
import Synchronization
import Testing

@testable import zonekeeper

/// The limit that a run sets is put back, whatever happens; and no run waits for a node for ever.
@Suite("Load: limits that a run sets, and nodes that hang", .serialized)
struct LoadLimitTests {
    private static let records = LoadMix(.create)

    private static func with<Value>(
        _ node: LimitsNode, _ urls: (NullServer) -> [String] = { [$0.url] },
        _ body: (LoadClient, NullServer) async throws -> Value
    ) async throws -> Value {
        let server = try await NullServer.start(answering: node.responder)
        let targets = try urls(server).map { text throws(CommandFailure) in try LoadTarget(text) }
        let client = try LoadClient(targets: targets, authority: server.authority, timeoutSeconds: 300)
        let result: Result<Value, any Error>
        do { result = .success(try await body(client, server)) } catch { result = .failure(error) }
        try await client.shutdown()
        await server.shutdown()
        return try result.get()
    }

    private static func change(_ client: LoadClient, patience: Duration = .seconds(600)) -> LimitChange {
        var change = LimitChange(client: client, administrator: "secret", container: "c")
        change.patience = patience
        change.pause = .milliseconds(5)
        return change
    }

    @Test("what was set before is put back, and the container's growth with it")
    func putBack() async throws {
        let node = LimitsNode()
        node.state.withLock { $0.values = ["requestsPerSecond": .integer(70)] }
        try await Self.with(node, { [$0.url] }) { client, _ in
            let stop = LoadStop()
            var change = Self.change(client)
            try await change.set(40, for: Self.records, stop: stop)
            #expect(
                node.state.withLock { $0.values } == [
                    "requestsPerSecond": .integer(40), "requestsPer100kUsers": .integer(0),
                ])
            #expect(stop.exitNotice?.contains("requestsPerSecond=70 requestsPer100kUsers=default") == true)
            try await change.putBack(stop: stop)
            #expect(node.state.withLock { $0.values } == ["requestsPerSecond": .integer(70)])
            #expect(stop.exitNotice == nil, "nothing is left behind")
        }
    }

    @Test("a first node that is down, and answers that say to come again, do not keep the limit from being put back")
    func otherNodes() async throws {
        let gone = try await NullServer.start()
        await gone.shutdown()
        let node = LimitsNode()
        node.state.withLock { $0.faults = [nil, "503 Service Unavailable", "429 Too Many Requests", nil] }
        try await Self.with(node, { [gone.url, $0.url] }) { client, _ in
            let stop = LoadStop()
            var change = Self.change(client)
            try await change.set(40, for: Self.records, stop: stop)
            node.state.withLock { $0.patches = [] }
            try await change.putBack(stop: stop)
            #expect(node.state.withLock { $0.patches.count } == 3)
            #expect(node.state.withLock { $0.values }.isEmpty && stop.exitNotice == nil)
        }
    }

    @Test(
        "a limit that may have been set, though its answer was lost, is put back; if that fails too, the error says how"
    )
    func unknownOutcome() async throws {
        let node = LimitsNode()
        node.state.withLock { $0.faults = ["503 Service Unavailable"] }
        try await Self.with(node, { [$0.url] }) { client, _ in
            let stop = LoadStop()
            var change = Self.change(client, patience: .zero)
            await #expect(throws: CommandFailure.self) { try await change.set(40, for: Self.records, stop: stop) }
            #expect(node.state.withLock { $0.values }.isEmpty && stop.exitNotice == nil)
            #expect(node.state.withLock { $0.patches.count } == 2)

            node.state.withLock { $0.faults = Array(repeating: "503 Service Unavailable", count: 9) }
            let error = await #expect(throws: CommandFailure.self) {
                try await change.set(40, for: Self.records, stop: stop)
            }
            #expect(error?.message.contains("limits set --container c`: requestsPerSecond=default") == true)
            #expect(stop.exitNotice != nil)
        }
    }

    @Test("a refusal for good changes nothing, is not repeated, and is told as it is")
    func refusal() async throws {
        let node = LimitsNode()
        node.state.withLock { $0.faults = ["403 Forbidden"] }
        try await Self.with(node, { [$0.url] }) { client, _ in
            let stop = LoadStop()
            var change = Self.change(client)
            await #expect(throws: CommandFailure.self) { try await change.set(40, for: Self.records, stop: stop) }
            #expect(node.state.withLock { $0.patches.count } == 1 && stop.exitNotice == nil)
        }
    }

    /// A node that takes connections and says nothing.
    private static func withSilentNode<Value>(_ body: (String) async throws -> Value) async throws -> Value {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let result: Result<Value, any Error>
        do { result = .success(try await body("https://127.0.0.1:\(channel.localAddress?.port ?? 0)")) } catch {
            result = .failure(error)
        }
        try await channel.close()
        return try result.get()
    }

    private static func run(_ server: NullServer, _ silent: String, stop: LoadStop, count: Int) throws -> LoadRun {
        let place = LoadPlace(container: "c", environment: "development", database: "private", zones: ["_defaultZone"])
        let settings = LoadSettings(
            mix: LoadMix(.kvSet), pace: .open(rate: 200, spacing: .even, outstandingMax: 64),
            bound: LoadBound(count: count), place: place, connections: 4, timeoutSeconds: 300)
        var run = LoadRun(
            settings: settings, targets: [try LoadTarget(server.url), try LoadTarget(silent)],
            sessions: [LoadTokens(apiToken: "a", webAuthToken: "w")], authority: server.authority, stop: stop)
        run.handshakeTimeout = .seconds(300)
        return run
    }

    @Test("a node that takes connections and does not shake hands is counted as unanswered, and the run ends")
    func noHandshake() async throws {
        let server = try await NullServer.start()
        try await Self.withSilentNode { silent in
            var run = try Self.run(server, silent, stop: LoadStop(), count: 4)
            // It passes twice here; the other server has it for its handshakes.
            run.handshakeTimeout = .seconds(5)
            let result = try await run.run()
            #expect(result.measurement.byTarget[0].accepted == 2)
            #expect(result.measurement.byTarget[1].unanswered == 2)
            #expect(result.measurement.firstSent != nil)
        }
        await server.shutdown()
    }

    @Test("a run that is stopped while connections are made does not wait for them")
    func stopWhileConnecting() async throws {
        let server = try await NullServer.start()
        try await Self.withSilentNode { silent in
            let stop = LoadStop()
            stop.set()
            let run = try Self.run(server, silent, stop: stop, count: 20)
            let result = try await run.run()
            #expect(result.wasInterrupted && result.measurement.sent == 0)
        }
        await server.shutdown()
    }

    @Test("preparing goes on after THROTTLED and TRY_AGAIN_LATER, and the sessions made are revoked")
    func preparation() async throws {
        let seen = LimitsNode()
        let server = try await NullServer.start { request in
            // Each request is refused before it is done, in both ways.
            let attempt = seen.state.withLock { state in
                state.patches.append([.init(request.method, .string(request.path))])
                return state.patches.count
            }
            if request.method == "POST", attempt % 3 != 0 {
                return NullServer.answer(
                    attempt % 3 == 1 ? "429 Too Many Requests" : "503 Service Unavailable",
                    #"{"serverErrorCode":"TRY_AGAIN_LATER","retryAfter":0.001}"#)
            }
            if request.path.hasPrefix("/admin/1/users") {
                return NullServer.answer("409 Conflict", #"{"serverErrorCode":"EXISTS"}"#)
            }
            return request.path.hasPrefix("/admin/1/tokens")
                ? NullServer.answer("200 OK", #"{"id":"id-\#(attempt)","secret":"s"}"#) : nil
        }
        let client = try LoadClient(
            targets: [try LoadTarget(server.url)], authority: server.authority, timeoutSeconds: 300)
        let place = LoadPlace(container: "c", environment: "development", database: "public", zones: ["_defaultZone"])
        let settings = LoadSettings(
            mix: LoadMix(.kvSet), pace: .closed(concurrency: 1), bound: LoadBound(), place: place, connections: 1,
            users: 2)
        let preparation = LoadPreparation(
            settings: settings, client: client, tokens: LoadTokens(apiToken: "a", administrator: "secret"),
            stop: LoadStop())
        let sessions = try await preparation.prepare()
        #expect(sessions.map(\.sessionID) == ["id-6", "id-12"])
        await preparation.revoke(sessions)
        let revoked = seen.state.withLock { $0.patches }.flatMap(\.self).filter { $0.key == "DELETE" }
        #expect(
            revoked.compactMap(\.value.string).sorted() == ["/admin/1/tokens?id=id-12", "/admin/1/tokens?id=id-6"])
        try await client.shutdown()
        await server.shutdown()
    }

    @Test("A signal that was ignored before, as SIGHUP is under nohup, ends no run")
    func ignoredSignals() {
        signal(SIGUSR1, SIG_IGN)
        let signals = LoadSignals(LoadStop(), signals: [SIGUSR1, SIGWINCH])
        #expect(signals.watched == [SIGWINCH])
        signals.cancel()
        for number in [SIGUSR1, SIGWINCH] { signal(number, SIG_DFL) }
    }
}
