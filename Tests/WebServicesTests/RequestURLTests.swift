import RecordModel
import Testing

@testable import WebServices

@Suite("Requests as they come in")
struct RequestURLTests {
    @Test("path and parameters are taken apart and decoded")
    func parts() {
        let url = RequestURL(
            target: "/database/1/iCloud.x/development/public/records/query?ckAPIToken=a%2Bb%3D&x&y=1=2")
        #expect(url.segments == ["database", "1", "iCloud.x", "development", "public", "records", "query"])
        #expect(url["ckAPIToken"] == "a+b=")
        #expect(url["x"] == "")
        #expect(url["y"] == "1=2")
        #expect(url["z"] == nil)
    }

    @Test(
        "what is not well-formed stays as it is, and nothing traps",
        arguments: ["", "?", "/", "/%", "/%4", "/%zz?%=%", "//a//b/?&&=&", "/%ff%fe"])
    func malformed(target: String) {
        let url = RequestURL(target: target)
        _ = url["a"]
        #expect(url.segments.count <= 2)
    }

    @Test("names made by the server are UUIDs of version 7, in the order of time")
    func identifiers() throws {
        let first = UUIDv7.generate(now: 1_700_000_000_000)
        let second = UUIDv7.generate(now: 1_700_000_000_001)
        #expect(first < second)
        #expect(first.count == 36)
        #expect(try UUIDv7.parse(first, now: 1_700_000_000_000).count == 16)
    }

    @Test("an idempotency key is a recent UUID of version 7")
    func idempotencyKeys() {
        let now: Int64 = 1_700_000_000_000
        #expect(throws: RequestFailure.self) { try UUIDv7.parse("no uuid", now: now) }
        #expect(throws: RequestFailure.self) { try UUIDv7.parse("6ba7b810-9dad-41d1-80b4-00c04fd430c8", now: now) }
        #expect(throws: RequestFailure.self) { try UUIDv7.parse(UUIDv7.generate(now: now - 90_000_000), now: now) }
        #expect(throws: RequestFailure.self) { try UUIDv7.parse(UUIDv7.generate(now: now + 7_200_000), now: now) }
    }
}
