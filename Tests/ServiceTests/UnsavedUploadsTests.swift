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
        uploads.end(other, size: 0)
        uploads.end(owner, size: 0)
        try uploads.begin(owner, limit: .max, now: 0)
    }

    /// Begins uploads of users of a container until one is refused.
    /// - Parameter each: how many uploads each user tries.
    /// - Returns: how many began.
    private func fill(_ container: String, users: Int, each: Int) throws -> Int {
        var begun = 0
        for user in 0..<users {
            for _ in 0..<each {
                let owner = UnsavedUploads.Owner(container: container, user: "_\(user)")
                if (try? uploads.begin(owner, limit: .max, now: 0)) != nil { begun += 1 }
            }
        }
        return begun
    }

    @Test("a container has half of the uploads that a node takes at once, however many users they are of")
    func container() throws {
        func user(_ number: Int) -> UnsavedUploads.Owner {
            UnsavedUploads.Owner(container: "c", user: "_\(number)")
        }
        #expect(try fill("c", users: 40, each: 1) == 32)
        uploads.end(user(7), size: 10)
        try uploads.begin(user(32), limit: .max, now: 0)
        expectRefusal(.throttled) { try uploads.begin(user(7), limit: .max, now: 0) }
    }

    @Test("once half of the places is taken a container gets a quarter, and the last eighth is for new ones")
    func sharedByContainers() throws {
        #expect(try fill("c", users: 40, each: 1) == 32)
        #expect(try fill("d", users: 40, each: 1) == 16)
        #expect(try fill("e", users: 40, each: 1) == 8, "seven eighths are taken")
        #expect(try fill("f", users: 40, each: 1) == 1)
        for _ in 0..<8 { uploads.end(UnsavedUploads.Owner(container: "c", user: "_0"), size: 0) }
        #expect(try fill("c", users: 40, each: 1) == 0, "it has more than a quarter")
        #expect(try fill("f", users: 40, each: 1) == 7)
    }

    @Test("two users take three quarters of a container's places at most, and another user finds one")
    func sharedByUsers() throws {
        #expect(try fill("c", users: 2, each: 32) == 24)
        #expect(try fill("c", users: 3, each: 32) == 4, "the third one's, before the last eighth")
        try uploads.begin(UnsavedUploads.Owner(container: "c", user: "_9"), limit: .max, now: 0)
        expectRefusal(.throttled) {
            try uploads.begin(UnsavedUploads.Owner(container: "c", user: "_9"), limit: .max, now: 0)
        }
    }
}
