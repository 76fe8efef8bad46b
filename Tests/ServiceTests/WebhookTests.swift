import Admission
import RecordModel
import Testing
import Wire

@testable import Service

@Suite("Webhooks: what is decided")
struct WebhookTests {
    private static let day: Int64 = 86_400_000
    private static let begin: Int64 = 1_790_000_000_000

    private static func attempt(_ id: String, at time: Int64, reason: String = "HTTP 500") -> WebhookProgress.Attempt {
        WebhookProgress.Attempt(id: id, count: 1, time: time, milliseconds: 3, status: 500, reason: reason)
    }

    private static func progress() -> WebhookProgress {
        var progress = WebhookProgress()
        progress.begin(of: "w", through: 7, count: 2, end: [9])
        return progress
    }

    @Test("a delivery keeps its id until it is over, and the next one has another")
    func ids() throws {
        var progress = Self.progress()
        #expect(progress.current?.id == "w-1" && progress.position == [])
        #expect(progress.fail(Self.attempt("w-1", at: Self.begin)) == .retry)
        progress = try WebhookProgress(decoding: progress.encoded())
        #expect(progress.current?.id == "w-1" && progress.current?.through == 7)
        progress.succeed(Self.attempt("w-1", at: Self.begin + 1, reason: ""))
        #expect(progress.current == nil && progress.position == [9])
        progress.begin(of: "w", through: 8, count: 1, end: [10])
        #expect(progress.current?.id == "w-2")
        #expect(progress.attempts.map(\.reason) == ["HTTP 500", ""])
    }

    @Test("pauses double from 5 seconds to an hour, and after three days it is disabled")
    func pauses() {
        var progress = Self.progress()
        var now = Self.begin
        var pauses: [Int64] = []
        var consequence = progress.fail(Self.attempt("w-1", at: now))
        while consequence == .retry {
            pauses.append(progress.wait(at: now))
            now += pauses.last ?? 0
            #expect(progress.wait(at: now) == 0)
            consequence = progress.fail(Self.attempt("w-1", at: now))
        }
        #expect(pauses.prefix(4) == [5_000, 10_000, 20_000, 40_000])
        #expect(pauses.max() == 3_600_000)
        #expect(now - Self.begin >= 3 * Self.day && now - Self.begin < 3 * Self.day + 3_600_000)
        #expect(consequence == .disable(reason: "deliveries failed for three days, the last one: HTTP 500"))
        #expect(progress.attempts.count == WebhookProgress.attemptsMax)
    }

    @Test("time in which no node tried a delivery does not count: only three days of attempts disable")
    func untried() {
        var progress = Self.progress()
        #expect(progress.fail(Self.attempt("w-1", at: Self.begin)) == .retry)
        var now = Self.begin + 5 * Self.day
        #expect(progress.fail(Self.attempt("w-1", at: now)) == .retry)
        #expect(progress.current?.failingSince == now - 5_000)
        while progress.fail(Self.attempt("w-1", at: now)) == .retry { now += progress.wait(at: now) }
        #expect(now - Self.begin >= 8 * Self.day - 5_000)
    }

    @Test("another configuration begins the three days anew")
    func revision() {
        var progress = Self.progress()
        _ = progress.fail(Self.attempt("w-1", at: Self.begin))
        progress.begin(revision: 2)
        #expect(progress.wait(at: Self.begin) == 0 && progress.current?.failures == 0)
        #expect(progress.fail(Self.attempt("w-1", at: Self.begin + 4 * Self.day)) == .retry)
    }

    @Test("a clock that went back neither disables nor delays for long")
    func clock() {
        var progress = Self.progress()
        _ = progress.fail(Self.attempt("w-1", at: Self.begin + 9 * Self.day))
        #expect(progress.wait(at: Self.begin) == 0)
        #expect(progress.fail(Self.attempt("w-1", at: Self.begin)) == .retry)
        #expect(progress.current?.failingSince == Self.begin)
        #expect(progress.wait(at: Self.begin) == 10_000)
    }

    @Test("what was lost is told in place of the delivery that cannot be made any more")
    func loss() {
        var progress = Self.progress()
        progress.lose(of: "w")
        progress.lose(of: "w")
        #expect(progress.current?.id == "w-2" && progress.current?.isLoss == true)
        progress.succeed(nil)
        #expect(progress.position == [] && progress.current == nil)
    }

    @Test("what is kept is bounded, whatever receivers answer")
    func bounded() {
        var progress = Self.progress()
        for _ in 0..<100 {
            _ = progress.fail(Self.attempt("w-1", at: Self.begin, reason: String(repeating: "é", count: 9_000)))
        }
        #expect(progress.encoded().count < 8 << 10)
    }

    @Test("a subscription that another node has deleted already is no failure of the change that was to delete it")
    func deletedTwice() {
        let gone = ServiceError(.notFound, "no subscription 'Note'")
        #expect(WebhookSubscriptions.failure(in: [nil, gone]) == nil)
        let full = ServiceError(.tryAgainLater, "too much waits", retryAfterSeconds: 5)
        #expect(WebhookSubscriptions.failure(in: [gone, full, nil]) == full)
    }

    @Test("a delivery is signed over its id, its time and the bytes that are sent, with each secret")
    func signature() {
        let secret = WebhookSecret(key: (0..<32).map { UInt8($0) })
        #expect(secret.text == "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
        let body = Array(#"{"id":"a-1"}"#.utf8)
        let headers = WebhookSecret.headers(
            id: "a-1", timestamp: 1_790_000_000, body: body,
            secrets: [secret, WebhookSecret(key: [1])])
        func header(_ name: String) -> String { headers.first { $0.name == name }?.value ?? "" }
        #expect(header("webhook-id") == "a-1" && header("webhook-timestamp") == "1790000000")
        let signatures = header("webhook-signature").split(separator: " ")
        // Made by Python's hmac.
        #expect(signatures.first == "v1,nGFLkbGWUiKefo1BajYPwY+DfKclkwRc0gwG9bzTOkA=")
        #expect(signatures.count == 2 && signatures[0] != signatures[1])
    }

    @Test(
        "no address of a private or special network is taken",
        arguments: [
            [127, 0, 0, 1], [10, 1, 2, 3], [172, 16, 0, 1], [172, 31, 255, 255], [192, 168, 1, 1],
            [169, 254, 169, 254],
            [100, 64, 0, 1], [0, 0, 0, 0], [192, 0, 0, 8], [198, 19, 0, 1], [224, 0, 0, 1], [240, 0, 0, 1],
            [255, 255, 255, 255], [203, 0, 113, 9],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1],
            [0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1],
            [0x20, 0x02, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [0x20, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [1, 2, 3],
        ] as [[UInt8]])
    func special(bytes: [UInt8]) {
        var settings = WebhookSettings()
        #expect(!settings.allows(bytes))
        settings.allowsPrivateAddresses = true
        #expect(settings.allows(bytes))
    }

    @Test(
        "addresses of the public Internet are taken",
        arguments: [
            [1, 1, 1, 1], [172, 15, 255, 255], [172, 32, 0, 0], [100, 128, 0, 0], [192, 0, 1, 0], [223, 255, 255, 255],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 1, 1, 1, 1],
            [0x26, 0x06, 0x47, 0, 0x47, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x11],
            [0x2A, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        ] as [[UInt8]])
    func common(bytes: [UInt8]) { #expect(WebhookSettings().allows(bytes)) }

    @Test(
        "only https without a user or a fragment is taken",
        arguments: [
            "http://a.example/", "ftp://a.example", "https://u:p@a.example/", "https://a.example/#f", "a.example",
            "https://", "https://a.example:0/", "https://a b/",
        ])
    func refused(url: String) {
        #expect(throws: RequestFailure.self) { try WebhookSettings().address(of: url) }
    }

    @Test("http is taken where the operator allows it")
    func plain() throws {
        var settings = WebhookSettings()
        settings.allowsPlainHTTP = true
        #expect(try settings.address(of: "http://a.example:8080/x?y").port == 8_080)
        #expect(try WebhookSettings().address(of: "https://A.example/X").host == "a.example")
    }
}
