import Testing

@testable import WebServices

@Suite("How slowly a file may come")
struct UploadPaceTests {
    private let pace = UploadPace(began: 0)

    private func problem(after bytes: UInt64, seconds: UInt64) -> String? {
        pace.problem(after: bytes, now: seconds * 1_000_000_000)
    }

    @Test("after half a minute it has to come with 16 KiB a second on the average")
    func average() {
        #expect(problem(after: 0, seconds: 30) == nil)
        #expect(problem(after: 1, seconds: 31)?.contains("16384 bytes a second") == true)
        #expect(problem(after: 31 * 16_384, seconds: 31) == nil)
        #expect(problem(after: 100 * 16_384, seconds: 100) == nil)
        #expect(problem(after: 100 * 16_384 - 17, seconds: 100) != nil)
    }

    @Test("no file takes more than an hour")
    func hour() {
        #expect(problem(after: 1 << 40, seconds: 3_600) == nil)
        #expect(problem(after: 1 << 40, seconds: 3_601)?.contains("3600 s") == true)
    }
}
