import RecordModel
import Testing

@testable import Service

@Suite("Uploads that no record has")
struct UnsavedUploadsTests {
    private static let least: Int64 = 65_536
    private let uploads = UnsavedUploads(uploadsMax: 64)
    private let owner = UnsavedUploads.Owner(container: "c", user: "_u")
    private let other = UnsavedUploads.Owner(container: "c", user: "_v")

    private func asset(_ number: UInt8, _ size: UInt64) -> AssetReference {
        AssetReference(sha256: [UInt8](repeating: number, count: 32), size: size)
    }

    /// A whole upload.
    private func upload(_ number: UInt8, _ size: Int, limit: Int64, now: Int64 = 0) throws(RequestFailure) {
        try uploads.begin(owner, limit: limit, now: now)
        do throws(RequestFailure) {
            if size > 0 { try uploads.grow(owner, by: size, to: UInt64(size), limit: limit) }
        } catch {
            uploads.end(owner, size: 0)
            throw error
        }
        uploads.end(owner, size: UInt64(size))
        uploads.heard(news([asset(number, UInt64(size))], until: now + 100))
    }

    private func news(_ assets: [AssetReference], of user: String = "_u", until time: Int64? = nil) -> SavedAssets {
        SavedAssets(container: "c", user: user, assets: assets, unsavedUntil: time)
    }

    private func expectRefusal(_ code: ErrorCode, _ body: () throws -> Void) {
        let failure = #expect(throws: RequestFailure.self, performing: body)
        #expect(failure?.error.code == code)
    }

    @Test("each file counts for its bytes, the smallest for 64 KiB; the same file counts once")
    func counted() throws {
        try upload(1, 0, limit: 3 * Self.least)
        try upload(1, 0, limit: 3 * Self.least)
        try upload(2, 100_000, limit: 3 * Self.least)
        expectRefusal(.quotaExceeded) { try upload(3, 0, limit: 3 * Self.least) }
        expectRefusal(.quotaExceeded) { try upload(3, 200_000, limit: 4 * Self.least) }
        try uploads.begin(other, limit: Self.least, now: 0)
    }

    @Test("what is saved, or a day old, or was cut counts no more")
    func freed() throws {
        try upload(1, 10, limit: Self.least)
        expectRefusal(.quotaExceeded) { try upload(2, 10, limit: Self.least) }
        uploads.heard(news([asset(1, 10)], of: "_v"))
        expectRefusal(.quotaExceeded) { try upload(2, 10, limit: Self.least) }
        uploads.heard(news([asset(1, 10), asset(9, 9)]))
        try upload(2, 10, limit: Self.least)
        try upload(3, 10, limit: Self.least, now: 100)
        uploads.heard(news([asset(3, 10)]))
        try uploads.begin(owner, limit: Self.least, now: 100)
        uploads.end(owner, size: 0)
        try upload(4, 10, limit: Self.least, now: 100)
    }

    @Test("what another node took counts here, until any node saved it")
    func elsewhere() throws {
        uploads.heard(news([asset(1, 10)], until: 100))
        expectRefusal(.quotaExceeded) { try upload(2, 10, limit: Self.least) }
        uploads.heard(news([asset(1, 10)]))
        try upload(2, 10, limit: Self.least)
    }

    @Test("a user has so many uploads under way at once")
    func open() throws {
        for _ in 0..<uploads.userOpenMax { try uploads.begin(owner, limit: .max, now: 0) }
        expectRefusal(.throttled) { try uploads.begin(owner, limit: .max, now: 0) }
        #expect(uploads.use(of: "_u", in: "c", now: 0).open == uploads.userOpenMax)
        try uploads.begin(other, limit: .max, now: 0)
        #expect(uploads.use(of: "_v", in: "c", now: 0).open == 1 && uploads.open(in: "c") == uploads.userOpenMax + 1)
        uploads.end(owner, size: 0)
        try uploads.begin(owner, limit: .max, now: 0)
    }

    @Test("a container has half of the uploads that a node takes at once, however many users they are of")
    func container() throws {
        func user(_ number: Int, of container: String = "c") -> UnsavedUploads.Owner {
            UnsavedUploads.Owner(container: container, user: "_\(number)")
        }
        for number in 0..<32 { try uploads.begin(user(number), limit: .max, now: 0) }
        expectRefusal(.throttled) { try uploads.begin(user(32), limit: .max, now: 0) }
        for number in 0..<32 { try uploads.begin(user(number, of: "d"), limit: .max, now: 0) }
        uploads.end(user(7), size: 10)
        try uploads.begin(user(32), limit: .max, now: 0)
        expectRefusal(.throttled) { try uploads.begin(user(7), limit: .max, now: 0) }
    }
}
