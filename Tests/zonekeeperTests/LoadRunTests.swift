import ArgumentParser
import NIOCore
import RecordModel
import ServiceClient
import Synchronization
import TestSupport
import Testing

@testable import zonekeeper

/// Whole runs over TLS against a server of the test's own. What is checked leaves room for a machine that stalls.
@Suite("Load: whole runs against a server with a limit", .serialized)
struct LoadRunTests {
    private static func settings(_ pace: LoadPace, seconds: Double? = nil, count: Int? = nil) -> LoadSettings {
        let place = LoadPlace(
            container: "c", environment: "development", database: "private", zones: [LoadPlace.defaultZone])
        return LoadSettings(
            mix: LoadMix(.kvSet), pace: pace, bound: LoadBound(seconds: seconds, count: count), place: place,
            connections: 8)
    }

    private static func run(_ settings: LoadSettings, _ server: NullServer) async throws -> LoadResult {
        try await LoadRun(
            settings: settings, targets: [try LoadTarget(server.url)],
            sessions: [LoadTokens(apiToken: "a", webAuthToken: "w")], authority: server.authority, stop: LoadStop()
        ).run()
    }

    private static func withServer<Value>(
        _ limit: GCRALimit? = nil, announcing quota: Int = 0, _ body: (NullServer) async throws -> Value
    ) async throws -> Value {
        let server = try await NullServer.start(answering: limit.map { NullServer.limited($0, announcing: quota) })
        do {
            let value = try await body(server)
            await server.shutdown()
            return value
        } catch {
            await server.shutdown()
            throw error
        }
    }

    /// - Parameter token: a file with a token, which does for both.
    private static func command(_ server: NullServer, token: String, _ arguments: String) throws -> LoadCommand {
        try LoadCommand.parse(
            [
                "--url", server.url, "--ca", server.authority, "--container", "c", "--api-token-file", token,
                "--web-auth-token-file", token,
            ]
                + ["--quiet"] + arguments.split(separator: " ").map(String.init))
    }

    private static func withToken(_ body: (String) async throws -> Void) async throws {
        try await TemporaryFolder.with { folder in
            let token = folder + "/token"
            try PrivateFile.create(token, "t\n")
            try await body(token)
        }
    }

    @Test("a closed loop sends as many requests as were asked for, each answered once")
    func closed() async throws {
        try await Self.withServer { server in
            let result = try await Self.run(Self.settings(.closed(concurrency: 8), count: 500), server)
            #expect(result.measurement.tally.succeeded == 500 && result.measurement.sent == 500)
            #expect(result.measurement.timeline.seconds.reduce(0) { $0 + $1.accepted } == 500)
            #expect(result.testerCPUSeconds > 0 && !result.wasInterrupted)
        }
    }

    private final class TakenFiles: Sendable {
        let all = Mutex<[[UInt8]]>([])
    }

    /// A server that takes files at two URLs, and gives files of some bytes.
    private static func files(_ taken: TakenFiles, given: Int) -> NullServer.Responder {
        { request in
            let path = request.path
            if path.contains("/assets/upload") {
                let tokens = (0..<16).map { #"{"url":"https://elsewhere/up/\#($0)?s=1"}"# }.joined(separator: ",")
                return NullServer.answer("200 OK", #"{"tokens":[\#(tokens)]}"#)
            }
            if path.hasPrefix("/up/") {
                taken.all.withLock { $0.append(Array(request.body.readableBytesView)) }
                return NullServer.answer("200 OK", #"{"singleFile":{"receipt":"r","fileChecksum":"c","size":1000}}"#)
            }
            if path.contains("/records/lookup") {
                let value = #"{"fields":{"photo":{"value":{"downloadURL":"https://elsewhere/down/1?s=1"}}}}"#
                let records = [String](repeating: value, count: 16).joined(separator: ",")
                return NullServer.answer("200 OK", #"{"records":[\#(records)]}"#)
            }
            guard path.hasPrefix("/down/") else { return nil }
            return NullServer.answer("200 OK", request.method == "GET" ? String(repeating: "x", count: given) : "")
        }
    }

    @Test("files that are sent are of the size asked for, and all different")
    func uploads() async throws {
        let taken = TakenFiles()
        let server = try await NullServer.start(answering: Self.files(taken, given: 0))
        try await Self.withToken { token in
            try await Self.command(
                server, token: token, "--operation asset-upload --asset-size 1kB --count 50"
            ).run()
        }
        await server.shutdown()
        let files = taken.all.withLock { $0 }
        #expect(files.count == 50 && files.allSatisfy { $0.count == 1_000 } && Set(files).count == 50)
    }

    @Test("files that are fetched count where they are whole")
    func downloads() async throws {
        for (given, isGood) in [(1_000, true), (999, false)] {
            let taken = TakenFiles()
            let server = try await NullServer.start(answering: Self.files(taken, given: given))
            try await Self.withToken { token in
                let command = try Self.command(
                    server, token: token, "--operation asset-download --asset-size 1kB --count 50")
                if isGood {
                    try await command.run()
                } else {
                    await #expect(throws: ExitCode(1)) { try await command.run() }
                }
            }
            await server.shutdown()
            #expect(taken.all.withLock { $0.count } == 16, "the files that are fetched were sent before")
        }
    }

    @Test("what a limited server accepted is limit x time, and --expect-limit's exit code says so, both ways")
    func expectLimit() async throws {
        let limit = GCRALimit(perSecond: 50, burst: 20)
        try await Self.withToken { token in
            try await Self.withServer(limit, announcing: 50) { server in
                // The burst makes up for what a busy machine misses.
                try await Self.command(
                    server, token: token,
                    "--operation kv-set --rate 400 --duration 2 --expect-limit 50 --tolerance 60%"
                ).run()
                let wrong = try Self.command(
                    server, token: token,
                    "--operation kv-set --rate 400 --duration 1 --expect-limit 25 --tolerance 10%")
                await #expect(throws: ExitCode(1)) { try await wrong.run() }
                let low = try Self.command(
                    server, token: token, "--operation kv-set --rate 5 --duration 1.5 --expect-limit 50")
                await #expect(throws: ExitCode(3)) { try await low.run() }
            }
        }
    }

    @Test("clients that honour retryAfter send again then and get through; those that ignore it lose what is refused")
    func retries() async throws {
        try await Self.withServer(GCRALimit(perSecond: 60, burst: 2), announcing: 60) { server in
            var settings = Self.settings(.open(rate: 100, spacing: .even, outstandingMax: 64), seconds: 1.5)
            settings.behaviours = WeightedChoice([(.honour, 1), (.ignore, 1)])
            let result = try await Self.run(settings, server)
            let measurement = result.measurement
            #expect(measurement.retryAfter.answered > 0)
            #expect(measurement.retryAfter.refusalsWithTime == measurement.retryAfter.refusals)
            let (honour, ignore) = (measurement.byBehaviour[0], measurement.byBehaviour[1])
            #expect(honour.attempts > honour.requests && ignore.attempts == ignore.requests)
            #expect((honour.acceptedShare ?? 0) > (ignore.acceptedShare ?? 1))
            #expect(measurement.sent == honour.attempts + ignore.attempts)
            #expect(measurement.budget?.rate == 60)
        }
    }

    @Test("a node that does not listen is counted as unanswered at once, and the run goes on with the others")
    func down() async throws {
        try await Self.withServer { server in
            let gone = try await NullServer.start()
            await gone.shutdown()
            var settings = Self.settings(.open(rate: 200, spacing: .even, outstandingMax: 64), count: 100)
            // Who waited for it would be noticed, also where the machine is busy for minutes.
            settings.timeoutSeconds = 3_600
            let run = LoadRun(
                settings: settings, targets: [try LoadTarget(server.url), try LoadTarget(gone.url)],
                sessions: [LoadTokens(apiToken: "a", webAuthToken: "w")], authority: server.authority, stop: LoadStop())
            let result = try await run.run()
            #expect(result.measurement.byTarget[0].accepted == 50)
            #expect(result.measurement.byTarget[1].unanswered == 50)
            #expect(result.seconds < 1_800)
        }
    }

    @Test("answers with a length, in chunks, with headers in any case, and the last ones of a connection are counted")
    func answers() async throws {
        let texts = [
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\n"
                + "RateLimit-Policy: \"requests\";q=40;w=1\r\nRATELIMIT: \"requests\";r=0;t=0.5\r\n"
                + "Content-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 204 No Content\r\n\r\n",
        ]
        let sent = Mutex(0)
        let server = try await NullServer.start { _ in
            let number = sent.withLock { sent in
                defer { sent += 1 }
                return sent
            }
            return ByteBuffer(string: texts[number % texts.count])
        }
        let result = try await Self.run(Self.settings(.closed(concurrency: 1), count: 20), server)
        await server.shutdown()
        let measurement = result.measurement
        #expect(measurement.sent == 20 && measurement.tally.unanswered == 0)
        #expect(measurement.tally.succeeded == 10 && measurement.tally.throttled == 5)
        #expect(measurement.tally.errorsByStatus == [429: 5, 204: 5])
        #expect(measurement.budget?.rate == 40 && measurement.budget?.remaining == 0)
        #expect(measurement.budget?.resetSeconds == 0.5)
        #expect(measurement.retryAfter.refusalsWithTime == 5)
        #expect(measurement.retryAfter.asked.maxNanoseconds == 2_000_000_000)
    }

    @Test(
        "bytes that are no answer end the connection instead of being waited on",
        arguments: [
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
        ])
    func badAnswers(text: String) async throws {
        let server = try await NullServer.start { _ in ByteBuffer(string: text) }
        var settings = Self.settings(.closed(concurrency: 1), count: 2)
        settings.timeoutSeconds = 3_600
        let result = try await Self.run(settings, server)
        await server.shutdown()
        #expect(result.measurement.tally.unanswered == 2)
        #expect(result.measurement.tally.errorsByTransport.keys.allSatisfy { $0.contains("answer") })
    }

    @Test("a run that is asked to stop ends with what it has")
    func stop() async throws {
        try await Self.withServer { server in
            let stop = LoadStop()
            let run = LoadRun(
                settings: Self.settings(.closed(concurrency: 2), seconds: 600), targets: [try LoadTarget(server.url)],
                sessions: [LoadTokens(apiToken: "a", webAuthToken: "w")], authority: server.authority, stop: stop)
            let result = try await run.run { _ in stop.set() }
            #expect(result.wasInterrupted)
        }
    }

    @Test("--calibrate measures the tester against a server that does nothing")
    func calibrate() async throws {
        let settings = Self.settings(.closed(concurrency: 8))
        let calibration = try await Calibration.measure(settings, seconds: 0.3, stop: LoadStop())
        #expect(calibration.perSecond > 0)
        #expect(calibration.text.contains("answers/s from a null server"))
    }

    @Test("a live view shows every kind of count, on lines of equal number and no wider than the terminal")
    func view() async throws {
        try await Self.withServer(GCRALimit(perSecond: 50, burst: 5), announcing: 50) { server in
            let settings = Self.settings(.open(rate: 300, spacing: .even, outstandingMax: 64), seconds: 1.3)
            let result = try await Self.run(settings, server)
            let tally = result.measurement.tally
            var snapshot = LoadSnapshot(
                seconds: result.seconds, dueRate: 300, sent: result.measurement.sent, accepted: tally.succeeded,
                throttled: tally.throttled, failed: 0, outstanding: 0, waitingToRetry: 2, notIssued: 0,
                lately: Array(result.measurement.timeline.seconds.prefix(1)),
                latencies: result.measurement.byTarget[0].latencies, errors: [("THROTTLED", tally.throttled)],
                budget: result.measurement.budget)
            let frame = LiveFrame(snapshot: snapshot, secondsMax: 2, limit: nil)
            let lines = frame.lines(width: 80)
            #expect(lines.allSatisfy { $0.count <= 80 })
            #expect(lines.contains { $0.hasPrefix("throttled") && $0.hasSuffix("\(tally.throttled)") })
            #expect(lines.contains { $0.contains("limit 50/s, 0 left") })
            #expect(lines.contains { $0.contains("THROTTLED \(tally.throttled)") })
            #expect(frame.line.contains("/s throttled"))
            snapshot.lately = []
            snapshot.errors = []
            snapshot.budget = nil
            #expect(LiveFrame(snapshot: snapshot, secondsMax: nil, limit: nil).lines(width: 30).count == lines.count)
        }
        #expect(LiveFrame.sparkline([0, 1, 2, 8], width: 3) == "▁▂█")
    }
}
