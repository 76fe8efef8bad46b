import ArgumentParser
import AsyncHTTPClient
import NIOHTTP1
import RecordModel
import ServiceClient
import Synchronization
import TestSupport
import Testing

@testable import zonekeeper

/// A clock that stands still but for the waits, which it keeps.
private final class TestClock: Sendable {
    private let state = Mutex<[Duration]>([])

    var pauses: [Duration] { state.withLock { $0 } }

    var waiting: Waiting {
        Waiting(
            now: { self.pauses.reduce(.zero, +) }, sleep: { pause in self.state.withLock { $0.append(pause) } })
    }
}

@Suite("Coming back when the cluster says so")
struct RetryTests {
    private static func refusal(_ status: Int, _ retryAfter: String? = nil, reason: String = "busy") -> ScriptedAnswer {
        let member = retryAfter.map { #","retryAfter":\#($0)"# } ?? ""
        return ScriptedAnswer(
            status: status, body: #"{"uuid":"u","serverErrorCode":"THROTTLED","reason":"\#(reason)"\#(member)}"#)
    }

    /// Sends a request to a server that answers from a list, then with success.
    private func send(
        _ request: ServiceRequest, to answers: [ScriptedAnswer]
    ) async throws -> (response: ServiceResponse, pauses: [Duration], requests: [ScriptedRequest]) {
        try await ScriptedServer.running({ _, earlier in earlier < answers.count ? answers[earlier] : ScriptedAnswer() }
        ) { server in
            let clock = TestClock()
            let http = try ServiceClient.http(authority: nil)
            let client = ServiceClient(
                http: http, urls: [server.url], administratorSecret: nil, waiting: clock.waiting)
            let response = try await client.send(request)
            try await http.shutdown()
            return (response, clock.pauses, server.requests)
        }
    }

    @Test("A pause that the server names is kept to exactly; others double, and none ends past the patience")
    func pauses() {
        var pauses = RetryPauses(patienceSeconds: 10)
        #expect(pauses.next(named: 0.337, elapsed: 0) == 0.337)
        #expect(pauses.next(named: nil, elapsed: 0) == 0.1)
        #expect(pauses.next(named: nil, elapsed: 0) == 0.2)
        #expect(pauses.next(named: 9, elapsed: 0.5) == 9)
        #expect(pauses.next(named: 9.5, elapsed: 0.5) == nil)
        #expect((0..<5).map { _ in pauses.next(named: nil, elapsed: 0) } == [0.4, 0.8, 1.6, 2, 2])
        #expect(pauses.next(named: 0, elapsed: 0) == 2)
        var none = RetryPauses(patienceSeconds: 0)
        #expect(none.next(named: 0, elapsed: 0) == nil)
    }

    @Test("A throttled request is sent again exactly when it may be")
    func throttled() async throws {
        let (response, pauses, requests) = try await send(
            ServiceRequest(.post, "/x"), to: [Self.refusal(429, "0.25"), Self.refusal(429, "3")])
        #expect(response.status == 200)
        #expect(pauses == [.seconds(0.25), .seconds(3)])
        #expect(requests.count == 3)
    }

    @Test("Where the body names no time, the header does")
    func header() async throws {
        let answer = ScriptedAnswer(status: 503, headers: [("Retry-After", "2")], body: "no JSON")
        let (response, pauses, _) = try await send(ServiceRequest(.get, "/x"), to: [answer])
        #expect(response.status == 200)
        #expect(pauses == [.seconds(2)])
    }

    @Test("A pause longer than the patience is not begun, and the error says when to come back")
    func impatient() async throws {
        var request = ServiceRequest(.post, "/x")
        request.patienceSeconds = 5
        let (response, pauses, requests) = try await send(
            request, to: [Self.refusal(429, "3"), Self.refusal(429, "2.5")])
        #expect(response.status == 429)
        #expect(pauses == [.seconds(3)])
        #expect(requests.count == 2)
        let error = #expect(throws: CommandFailure.self) { try response.checked() }
        #expect(error?.message == "THROTTLED: busy (try again in 2.5 s)")
    }

    @Test("What may have been done is not done again, unless a repeat does no harm or the server says that nothing was")
    func unsafe() async throws {
        let answers = [Self.refusal(503, "1")]
        let plain = ServiceRequest(.post, "/x")
        #expect(try await send(plain, to: answers).response.status == 503)
        var keyed = plain
        keyed.idempotencyKey = "k"
        let repeated = try await send(keyed, to: answers)
        #expect(repeated.response.status == 200)
        #expect(repeated.requests.map { $0.headers.first(name: "Idempotency-Key") } == ["k", "k"])
        let read = ServiceRequest(.post, "/x", isRepeatable: true)
        #expect(try await send(read, to: answers).response.status == 200)
        let nothingDone = [Self.refusal(503, "1", reason: "nothing was done: no leader")]
        #expect(try await send(plain, to: nothingDone).response.status == 200)
        #expect(try await send(read, to: [Self.refusal(500, "1")]).response.status == 500)
    }

    @Test("A refusal of the last attempt does not hide that an earlier one may have been done")
    func uncertainty() async throws {
        var request = ServiceRequest(.post, "/x")
        request.idempotencyKey = "key"
        request.patienceSeconds = 2
        let (lost, refused) = (
            Self.refusal(503, "1", reason: "it is not known"), Self.refusal(503, "5", reason: "nothing was done: full")
        )
        let (doubtful, _, _) = try await send(request, to: [lost, refused])
        #expect(doubtful.followsUncertainty && doubtful.isOutcomeUnknown)
        let failure = #expect(throws: CommandFailure.self) { try doubtful.checked() }
        #expect(failure?.isOutcomeUnknown == true && failure?.message.contains("may have been done") == true)
        // Judged under its key it was not done before; and who sent nothing before is sure.
        let (judged, _, _) = try await send(request, to: [lost, Self.refusal(409)])
        #expect(!judged.isOutcomeUnknown)
        // Who asks is looked at before the key is.
        let (stranger, _, _) = try await send(request, to: [lost, Self.refusal(401)])
        #expect(stranger.isOutcomeUnknown)
        let (sure, _, _) = try await send(request, to: [refused])
        #expect(!sure.isOutcomeUnknown)
        request.isRepeatable = true
        let (read, _, _) = try await send(request, to: [lost, refused])
        #expect(!read.isOutcomeUnknown)
    }

    @Test("Nor does the refusal of another node, where the first one's answer got lost")
    func uncertaintyOfAnotherNode() async throws {
        var lost = ScriptedAnswer()
        lost.isLost = true
        let refused = Self.refusal(503, "50", reason: "nothing was done: full")
        var request = ServiceRequest(.post, "/x")
        request.idempotencyKey = "key"
        try await ScriptedServer.running({ [lost] _, _ in lost }) { [request] silent in
            try await ScriptedServer.running({ _, _ in refused }) { full in
                let http = try ServiceClient.http(authority: nil)
                let client = ServiceClient(
                    http: http, urls: [silent.url, full.url], administratorSecret: nil, waiting: TestClock().waiting)
                let response = try await client.send(request)
                try await http.shutdown()
                #expect(response.status == 503 && response.isOutcomeUnknown)
            }
        }
    }

    @Test("Each attempt is signed anew, so that it is no replay")
    func signed() async throws {
        let key = try ServerKeyFile(text: OpenSSL.samplePrivateKey, id: "ab", path: "key.pem")
        var request = ServiceRequest(.post, "/database/1/c/development/public/records/query", body: Array("{}".utf8))
        request.credentials = .key(key)
        let (_, _, requests) = try await send(request, to: [Self.refusal(429, "0.5")])
        let signatures = requests.map { $0.headers.first(name: "X-Apple-CloudKit-Request-SignatureV1") ?? "" }
        #expect(signatures.count == 2)
        #expect(signatures[0] != signatures[1])
        #expect(requests.allSatisfy { $0.headers.first(name: "X-Apple-CloudKit-Request-KeyID") == "ab" })
        #expect(requests.allSatisfy { $0.parameter("ckAPIToken") == nil })
    }

    @Test("Requests carry the newest token, attempts of one request too, and its file is kept up to date")
    func rotation() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder + "/session"
            try PrivateFile.create(path, "one\n")
            try PrivateFile.create(folder + "/api", "api\n")
            // The second answer is a refusal that brings a token as well; the fourth brings none.
            let answers: @Sendable (ScriptedRequest, Int) -> ScriptedAnswer = { _, earlier in
                var answer = earlier == 1 ? Self.refusal(429, "0") : ScriptedAnswer()
                if earlier < 3 { answer.headers = [("X-Apple-CloudKit-Web-Auth-Token", "next+\(earlier)/=")] }
                return answer
            }
            try await ScriptedServer.running(answers) { server in
                let options = try ClientOptions.parse([
                    "--url", server.url, "--container", "c", "--api-token-file", folder + "/api",
                    "--web-auth-token-file", path,
                ])
                try await options.withConnection { connection in
                    for _ in 0..<4 {
                        _ = try await connection.send(connection.request("private", "zones/list", .object([])))
                            .checked()
                    }
                }
                #expect(
                    server.requests.map { $0.parameter("ckWebAuthToken") } == [
                        "one", "next%2B0%2F%3D", "next%2B1%2F%3D", "next%2B2%2F%3D", "next%2B2%2F%3D",
                    ])
                #expect(server.requests.allSatisfy { $0.parameter("ckAPIToken") == "api" })
            }
            #expect(try SecretFile.read(path) == "next+2/=")
            #expect(try OpenSSL.mode(of: path) == 0o600)
        }
    }
}
