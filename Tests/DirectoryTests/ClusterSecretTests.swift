import Directory
import RecordModel
import Testing

@Suite("The cluster's secret")
struct ClusterSecretTests {
    private static let key = (0..<32).map { UInt8($0) }
    private let secret = ClusterSecret(key: key, clearUntil: 0)

    @Test("what is sealed opens for its purpose only, and not where a byte differs")
    func seals() {
        let payload: [UInt8] = [1, 2, 3]
        let sealed = secret.seal(payload, purpose: "a")
        #expect(ClusterSecret.isSealed(sealed) && !ClusterSecret.isSealed(payload))
        #expect(secret.open(sealed, purpose: "a") == payload)
        #expect(secret.seal(payload, purpose: "a") == sealed)
        #expect(secret.open(sealed, purpose: "b") == nil)
        #expect(ClusterSecret(key: Self.key.reversed(), clearUntil: 0).open(sealed, purpose: "a") == nil)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(secret.open(changed, purpose: "a") == nil)
            #expect(secret.open(Array(sealed[..<index]), purpose: "a") == nil)
        }
        #expect(secret.open(secret.seal([], purpose: "a"), purpose: "a") == [])
    }

    @Test("a code is of its bytes and its purpose")
    func codes() {
        let code = secret.code(of: [1, 2], purpose: "a")
        #expect(code.count == 32)
        #expect(secret.isCode(code, of: [1, 2], purpose: "a"))
        #expect(!secret.isCode(code, of: [1, 3], purpose: "a"))
        #expect(!secret.isCode(code, of: [1, 2], purpose: "b"))
        #expect(!secret.isCode([], of: [1, 2], purpose: "a"))
    }

    @Test("what it was used for makes no other secret of it")
    func equal() {
        let used = ClusterSecret(key: Self.key, clearUntil: 0)
        _ = used.seal([1], purpose: "a")
        #expect(used == secret && Set([used, secret]).count == 1)
        #expect(used != ClusterSecret(key: Self.key, clearUntil: 1))
        #expect(used != ClusterSecret(key: Self.key.reversed(), clearUntil: 0))
        // Once derived, a key gives what it gave when it was derived.
        #expect(used.code(of: [1], purpose: "a") == secret.code(of: [1], purpose: "a"))
        #expect(used.code(of: [1], purpose: "a") != used.code(of: [1], purpose: "b"))
    }

    @Test("it is made once, and no log shows it")
    func made() throws {
        let directory = try TestDirectory()
        #expect(try directory.refusal(of: .makeSecret(key: [1], time: 5)) == "BAD_REQUEST")
        let (_, changes) = try directory.apply(.makeSecret(key: Self.key, time: 5))
        #expect(changes == [.secret(secret)])
        #expect(try directory.isIdle(.makeSecret(key: Self.key.reversed(), time: 6)))
        #expect(try directory.snapshot().secret == secret)
        // What is set for the cluster is in the same row.
        try directory.apply(.setSignUp(isOpen: true))
        #expect(try directory.snapshot().secret == secret)
        #expect(
            !"\(secret)".contains("1")
                && !DirectoryCommand.makeSecret(key: Self.key, time: 5).auditSummary.subject.contains("1"))
    }

    @Test("a cluster that gave positions in clear takes them for a week more; a new one never")
    func clear() throws {
        let directory = try TestDirectory()
        try directory.apply(.createContainer(name: "app", time: 1))
        try directory.apply(.makeSecret(key: Self.key, time: 5))
        let old = try #require(try directory.snapshot().secret)
        #expect(old.takesClear(at: 4 + 7 * 86_400_000) && !old.takesClear(at: 5 + 7 * 86_400_000))
        #expect(!secret.takesClear(at: 0) && !secret.takesClear(at: 1_700_000_000_000))
    }
}
