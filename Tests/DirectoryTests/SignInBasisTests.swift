import Directory
import GRDB
import RecordModel
import Testing

@Suite("What a session that begins rests on, and how many an account has")
struct SignInBasisTests {
    private static let identity = ExternalIdentity(issuer: "https://id", subject: "7")
    private static let provider = IdentityProvider(
        name: "Corp", issuer: "https://id", clientID: "c", sealedSecret: [], allowsSignUp: false)
    private let directory: TestDirectory

    init() throws {
        directory = try TestDirectory.populated()
        try directory.apply(.createContainer(name: "other", time: 1))
        try directory.apply(.createToken(TestDirectory.apiToken(of: "other")))
        try directory.apply(.setIdentityProvider(Self.provider))
        try directory.apply(.updateAccount(name: "ada", AccountChanges(identity: Self.identity)))
    }

    private static func session(
        _ number: Int, account: String = "a1", container: String = "app", created: Int64? = nil
    ) -> Token {
        Token(
            sessionID: "s\(number)", container: container, accountID: account, expires: 1_000_000,
            label: "", created: created ?? Int64(number))
    }

    private func refusal(_ proof: SignInBasis.Proof, apiToken: String = "api-app") throws -> String? {
        try directory.refusal(of: .beginSession(Self.session(1), SignInBasis(proof, apiTokenID: apiToken)))
    }

    @Test("a session of a password that was changed or taken away meanwhile does not begin")
    func passwords() throws {
        try directory.apply(.setPassword(account: "ada", TestDirectory.password(1), endsSessions: true))
        #expect(try refusal(TestDirectory.basis.proof) == "AUTHENTICATION_FAILED")
        // The same password under another salt is a new one.
        var salted = TestDirectory.password(1)
        salted.salt = [9]
        #expect(try refusal(.password(fingerprint: salted.fingerprint)) == "AUTHENTICATION_FAILED")
        try directory.apply(.setPassword(account: "ada", nil, endsSessions: false))
        for fingerprint in [TestDirectory.password(1).fingerprint, []] {
            #expect(try refusal(.password(fingerprint: fingerprint)) == "AUTHENTICATION_FAILED")
        }
        #expect(try directory.token(withID: "s1") == nil)
        try directory.apply(.setPassword(account: "ada", TestDirectory.password(2), endsSessions: false))
        #expect(try refusal(.password(fingerprint: TestDirectory.password(2).fingerprint)) == nil)
    }

    @Test(
        "a session of an identity does not begin once the identity was taken away, or its provider removed or changed")
    func identities() throws {
        let proof = SignInBasis.Proof.identity(Self.identity, provider: "Corp")
        #expect(
            try refusal(.identity(ExternalIdentity(issuer: "https://id", subject: "8"), provider: "Corp"))
                == "AUTHENTICATION_FAILED")
        var moved = Self.provider
        moved.issuer = "https://elsewhere"
        try directory.apply(.setIdentityProvider(moved))
        #expect(try refusal(proof) == "AUTHENTICATION_FAILED")
        try directory.apply(.removeIdentityProvider(name: "Corp"))
        #expect(try refusal(proof) == "AUTHENTICATION_FAILED")
        try directory.apply(.setIdentityProvider(Self.provider))
        try directory.apply(.updateAccount(name: "ada", AccountChanges(identity: ExternalIdentity.none)))
        #expect(try refusal(proof) == "AUTHENTICATION_FAILED")
        try directory.apply(.updateAccount(name: "ada", AccountChanges(identity: Self.identity)))
        #expect(try refusal(proof) == nil)
    }

    @Test("a session begins by an API token of its container that was not revoked")
    func apiTokens() throws {
        try directory.apply(
            .createToken(
                Token(
                    id: "t1", secretHash: [1], kind: .session(container: "app", accountID: "a1", expires: 9), label: "",
                    created: 1)))
        for id in ["", "none", "api-other", "t1"] {
            #expect(try refusal(TestDirectory.basis.proof, apiToken: id) == "AUTHENTICATION_FAILED", "\(id)")
        }
        try directory.apply(.revokeToken(id: "api-app"))
        #expect(try refusal(TestDirectory.basis.proof) == "AUTHENTICATION_FAILED")
        // What is refused ends no lock-out.
        try directory.apply(.noteSignInFailure(accountID: "a1", time: 1))
        #expect(try refusal(TestDirectory.basis.proof) == "AUTHENTICATION_FAILED")
        #expect(try directory.lockout(of: "a1") != nil)
        // An administrator ends it, once all nodes know the command.
        let unlock = DirectoryCommand.administration(.unlock(account: "ada"))
        try directory.apply(DirectoryEntry(unlock), at: FeatureLevel(9))
        #expect(try directory.lockout(of: "a1") != nil)
        #expect(try directory.refusal(of: unlock) == nil)
        #expect(try directory.lockout(of: "a1") == nil)
        #expect(try directory.isIdle(unlock))
        #expect(try directory.refusal(of: .administration(.unlock(account: "none"))) == "NOT_FOUND")
    }

    @Test("beyond 100 sessions of an account in a container the oldest ends, and nobody else's")
    func sessionsMax() throws {
        let max = Token.signInSessionsMax
        var kept = try directory.snapshot()
        func begin(_ token: Token, _ container: String = "app") throws {
            let basis = SignInBasis(TestDirectory.basis.proof, apiTokenID: "api-\(container)")
            for change in try directory.apply(.beginSession(token, basis)).changes { kept.take(change) }
        }
        for number in 1...max { try begin(Self.session(number)) }
        try begin(Self.session(1_001, account: "a2", created: 0))
        try begin(Self.session(1_002, container: "other", created: 0), "other")
        try directory.apply(
            .createToken(
                Token(
                    id: "made", secretHash: [1], kind: .session(container: "app", accountID: "a1", expires: 9),
                    label: "",
                    created: 0)))
        kept = try directory.snapshot()
        #expect(try directory.tokens().count == max + 5 && directory.token(withID: "s1") != nil)
        try begin(Self.session(max + 1))
        #expect(try directory.token(withID: "s1") == nil && directory.token(withID: "s2") != nil)
        // By a clock that is behind, it is still not the new one that ends.
        try begin(Self.session(500, created: -5))
        #expect(try directory.token(withID: "s2") == nil && directory.token(withID: "s500") != nil)
        try begin(Self.session(501))
        #expect(try directory.token(withID: "s500") == nil && directory.token(withID: "s3") != nil)
        #expect(try directory.tokens().count == max + 5)
        for id in ["s1001", "s1002", "made"] { #expect(try directory.token(withID: id) != nil, "\(id)") }
        #expect(kept.userCount(of: "app") == 2)
        #expect(try kept == directory.snapshot())
    }

    @Test(
        "a failure is forgiven for each quarter of an hour without one; no more are counted than lock for the longest time"
    )
    func forgiveness() {
        let quarter = Lockout.forgivenAfterMilliseconds
        var lockout = Lockout(failures: 0, lockedUntil: 0)
        for _ in 0..<40 { lockout = lockout.counting(failureAt: 1_000_000) }
        #expect(lockout.failures == Lockout.failuresMax)
        #expect(lockout.lockedUntil == 1_000_000 + Lockout.pauseMaxMilliseconds)
        for (quiet, failures) in [
            (0, 16), (quarter - 1, 16), (quarter, 16), (2 * quarter, 15), (11 * quarter, 6), (16 * quarter, 1),
            (1_000 * quarter, 1), (-quarter, 16),
        ] as [(Int64, UInt64)] {
            let next = lockout.counting(failureAt: 1_000_000 + quiet)
            #expect(next.failures == failures, "\(quiet)")
            #expect(next.lockedUntil >= lockout.lockedUntil && next.lastFailure >= lockout.lastFailure)
        }
        // Whoever guesses as soon as it is allowed has a guess each quarter of an hour, however long it goes on.
        var time: Int64 = 1_000_000
        var guesses = 0
        while time < 1_000_000 + 96 * quarter {
            time = max(time, lockout.lockedUntil)
            lockout = lockout.counting(failureAt: time)
            guesses += 1
        }
        #expect((90...97).contains(guesses), "\(guesses)")
        for time in [Int64.min, .max] {
            let far = Lockout(failures: 16, lockedUntil: 0, lastFailure: time == .min ? .max / 2 : .min / 2).counting(
                failureAt: time)
            #expect((1...16).contains(far.failures))
        }
    }
}
