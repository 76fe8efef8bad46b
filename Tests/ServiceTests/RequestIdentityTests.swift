import RecordModel
import Testing

@testable import Service

@Suite("What makes two requests one")
struct RequestIdentityTests {
    private static let now: Int64 = 1_700_000_000_000

    private static func key(madeAt milliseconds: Int64) -> String {
        UUIDv7(milliseconds: milliseconds, random: (1, 2)).text
    }

    @Test("an idempotency key is a recent UUID of version 7")
    func keys() throws {
        let text = Self.key(madeAt: Self.now)
        #expect(try RequestIdentity.key(text, now: Self.now) == UUIDv7(text)?.bytes)
        #expect(throws: RequestFailure.self) { try RequestIdentity.key("no uuid", now: Self.now) }
        #expect(throws: RequestFailure.self) {
            try RequestIdentity.key("6ba7b810-9dad-41d1-80b4-00c04fd430c8", now: Self.now)
        }
        #expect(throws: RequestFailure.self) {
            try RequestIdentity.key(Self.key(madeAt: Self.now - 90_000_000), now: Self.now)
        }
        #expect(throws: RequestFailure.self) {
            try RequestIdentity.key(Self.key(madeAt: Self.now + 7_200_000), now: Self.now)
        }
    }
}
