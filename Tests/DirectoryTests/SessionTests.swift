import RecordModel
import Testing

@testable import Directory

@Suite("Passwords, sessions and lock-outs in the directory")
struct SessionTests {
    private let directory: TestDirectory

    init() throws { directory = try TestDirectory.populated() }

    private static func password(_ byte: UInt8) -> PasswordHash { TestDirectory.password(byte) }

    private static func signIn(
        _ id: String, account: String = "a1", container: String = "app", expires: Int64 = 100
    ) -> Token {
        Token(sessionID: id, container: container, accountID: account, expires: expires, label: "", created: 1)
    }

    private static func session(_ id: String, account: String = "a1", expires: Int64 = 100) -> Token {
        Token(
            id: id, secretHash: Token.hash(ofSecret: "secret of \(id)"),
            kind: .session(container: "app", accountID: account, expires: expires), label: "", created: 1)
    }

    @Test(
        "five failures are free, then each locks for twice as long, up to 15 minutes",
        arguments: [
            (1, 0), (5, 0), (6, 1_000), (7, 2_000), (8, 4_000), (9, 8_000), (15, 512_000), (16, 900_000),
            (17, 900_000), (80, 900_000), (UInt64.max, 900_000),
        ] as [(UInt64, Int64)])
    func lockoutTable(failures: UInt64, pause: Int64) {
        let lockout = Lockout.after(failures: failures, time: 1_000_000)
        #expect(
            lockout
                == Lockout(
                    failures: failures, lockedUntil: pause == 0 ? 0 : 1_000_000 + pause, lastFailure: 1_000_000))
        #expect(lockout.isLocked(at: 1_000_000) == (pause > 0))
        #expect(!lockout.isLocked(at: 1_000_000 + pause))
        #expect(Lockout.after(failures: failures, time: .max).lockedUntil == (pause == 0 ? 0 : .max))
    }

    @Test("failures are counted for each account until a session begins or the password is set")
    func lockouts() throws {
        for _ in 0..<6 { try directory.apply(.noteSignInFailure(accountID: "a1", time: 1_000)) }
        try directory.apply(.noteSignInFailure(accountID: "a2", time: 1_000))
        #expect(
            try directory.lockout(of: "a1") == Lockout(failures: 6, lockedUntil: 2_000, lastFailure: 1_000))
        #expect(try directory.lockout(of: "a2") == Lockout(failures: 1, lockedUntil: 0, lastFailure: 1_000))
        // By a clock that is behind, nothing opens sooner.
        try directory.apply(.noteSignInFailure(accountID: "a1", time: -9_000))
        #expect(
            try directory.lockout(of: "a1") == Lockout(failures: 7, lockedUntil: 2_000, lastFailure: 1_000))
        try directory.begin(Self.signIn("s1"))
        #expect(try directory.lockout(of: "a1") == nil)
        #expect(try directory.lockout(of: "a2") != nil)
        try directory.apply(.setPassword(account: "bob", Self.password(1), endsSessions: false))
        #expect(try directory.lockout(of: "a2") == nil)
    }

    @Test("a password is set, changed and taken away; sessions end only where they shall")
    func passwords() throws {
        try directory.begin(Self.signIn("s1"))
        try directory.apply(.createToken(Self.session("t1")))
        try directory.begin(Self.signIn("s2", account: "a2"))
        try directory.apply(.setPassword(account: "ada", Self.password(1), endsSessions: false))
        #expect(try directory.account(named: "ada")?.password == Self.password(1))
        #expect(try directory.tokens().count == 4)
        #expect(try directory.isIdle(.setPassword(account: "ada", Self.password(1), endsSessions: false)))
        // Other changes of the account keep it.
        try directory.apply(.updateAccount(name: "ada", AccountChanges(email: "ada@x")))
        #expect(try directory.account(named: "ada")?.password == Self.password(1))
        try directory.apply(.setPassword(account: "ada", Self.password(2), endsSessions: true))
        #expect(try directory.account(named: "ada")?.password == Self.password(2))
        #expect(try directory.tokens().map(\.id).sorted() == ["api-app", "s2"])
        try directory.apply(.setPassword(account: "ada", nil, endsSessions: false))
        #expect(try directory.account(named: "ada")?.password == nil)
        #expect(try directory.account(withEmail: "ada@x")?.id == "a1")
    }

    @Test("an identity belongs to one account, and finds it")
    func identities() throws {
        let identity = ExternalIdentity(issuer: "https://id", subject: "7")
        try directory.apply(
            .createAccount(Account(id: "a3", name: "eve", created: 3, password: Self.password(3), identity: identity)))
        #expect(try directory.account(withIdentity: identity)?.name == "eve")
        #expect(
            try directory.refusal(of: .updateAccount(name: "ada", AccountChanges(identity: identity))) == "EXISTS")
        let other = ExternalIdentity(issuer: "https://id", subject: "8")
        try directory.apply(.updateAccount(name: "ada", AccountChanges(identity: other)))
        try directory.apply(.updateAccount(name: "eve", AccountChanges(identity: ExternalIdentity.none)))
        #expect(try directory.account(withIdentity: identity) == nil)
        #expect(try directory.account(withIdentity: other)?.name == "ada")
        #expect(try directory.account(named: "eve")?.password == Self.password(3))
        #expect(
            try directory.refusal(of: .createAccount(Account(id: "a4", name: "dan", created: 4, identity: other)))
                == "EXISTS")
        try directory.apply(.deleteAccount(name: "ada"))
        #expect(
            try directory.refusal(of: .createAccount(Account(id: "a4", name: "dan", created: 4, identity: other)))
                == nil)
    }

    @Test("a session begun by sign-in is found by its id and by no secret")
    func signIns() throws {
        let token = Self.signIn("s1")
        try directory.apply(.beginSession(token, TestDirectory.basis))
        #expect(try directory.isIdle(.beginSession(token, TestDirectory.basis)))
        #expect(
            try directory.refusal(of: .beginSession(Self.signIn("s1", expires: 7), TestDirectory.basis)) == "EXISTS")
        #expect(
            try directory.refusal(of: .beginSession(Self.signIn("s2", account: "a9"), TestDirectory.basis))
                == "NOT_FOUND")
        #expect(
            try directory.refusal(of: .beginSession(Self.signIn("s2", container: "none"), TestDirectory.basis))
                == "NOT_FOUND")
        #expect(try directory.refusal(of: .beginSession(Self.session("t1"), TestDirectory.basis)) == "BAD_REQUEST")
        var withSecret = Self.signIn("s3")
        withSecret.secretHash = Token.hash(ofSecret: "x")
        #expect(try directory.refusal(of: .beginSession(withSecret, TestDirectory.basis)) == "BAD_REQUEST")
        try directory.apply(.createToken(Self.session("t1")))
        #expect(try directory.session(.signIn(id: "s1")) == Session(token: token, accountName: "ada"))
        // Neither by what stands in the place of its secret, nor another one by its id; nor a token of an app.
        for hash in [token.secretHash, Token.hash(ofSecret: "session/s1"), Token.hash(ofSecret: "api of app")] {
            #expect(try directory.session(.secret(hash: hash)) == nil)
        }
        #expect(try directory.session(.signIn(id: "t1")) == nil)
        #expect(try directory.session(.secret(hash: Self.session("t1").secretHash))?.token == Self.session("t1"))
        try directory.apply(.revokeToken(id: "s1"))
        #expect(try directory.token(withID: "s1") == nil)
        #expect(try directory.refusal(of: .revokeToken(id: "s1")) == "NOT_FOUND")
    }

    @Test("an API token keeps its origins and its callback URL")
    func apiTokens() throws {
        for (number, callback) in [nil, "https://page/back"].enumerated() {
            let token = Token(
                id: "t\(number)", secretHash: Token.hash(ofSecret: "s\(number)"),
                kind: .api(
                    container: "app", environment: .production, origins: ["https://b", "https://a"],
                    callbackURL: callback),
                label: "web", created: 1)
            try directory.apply(.createToken(token))
            #expect(try directory.isIdle(.createToken(token)))
            #expect(try directory.snapshot().token(withSecret: "s\(number)") == token)
            #expect(try directory.snapshot().token(withID: "t\(number)") == token)
        }
        #expect(try directory.snapshot().userCount(of: "app") == 0)
    }

    @Test("users of a container are the accounts with a session there, each once")
    func userCounts() throws {
        try directory.apply(.createContainer(name: "other", time: 1))
        for token in [
            Self.signIn("s1"), Self.signIn("s2"), Self.session("t1"), Self.session("t2", account: "a2"),
            Self.signIn("s3", container: "other"),
        ] {
            try directory.apply(.createToken(token))
        }
        func counts() throws -> [Int] {
            let snapshot = try directory.snapshot()
            return [snapshot.userCount(of: "app"), snapshot.userCount(of: "other"), snapshot.userCount(of: "none")]
        }
        #expect(try counts() == [2, 1, 0])
        try directory.apply(.revokeToken(id: "s1"))
        try directory.apply(.revokeToken(id: "s2"))
        #expect(try counts() == [2, 1, 0])
        try directory.apply(.revokeToken(id: "t1"))
        #expect(try counts() == [1, 1, 0])
        try directory.apply(.setPassword(account: "bob", nil, endsSessions: true))
        try directory.apply(.purge(time: 100))
        #expect(try counts() == [0, 0, 0])
    }

    @Test("once the token that expires first is revoked, the next one is waited for")
    func firstExpiry() throws {
        try directory.begin(Self.signIn("s1", expires: 100))
        try directory.begin(Self.signIn("s2", expires: 200_000))
        var kept = try directory.snapshot()
        for change in try directory.apply(.revokeToken(id: "s1")).changes { kept.take(change) }
        #expect(try kept == directory.snapshot())
        #expect(!kept.needsPurge(now: 200_000) && kept.needsPurge(now: 260_001))
    }

    @Test("a purge removes what has expired, the oldest first and 500 at a time")
    func purge() throws {
        for number in 0..<502 {
            try directory.apply(.createToken(Self.signIn("s\(number)", expires: 1_000 + Int64(number % 2))))
        }
        try directory.apply(.createToken(Self.session("late", expires: 5_000_000)))
        try directory.apply(
            .createToken(
                Token(
                    id: "api", secretHash: [1],
                    kind: .api(container: "app", environment: .production, origins: [], callbackURL: nil), label: "",
                    created: 1)))
        var kept = try directory.snapshot()
        func purge(_ time: Int64) throws -> Int {
            for change in try directory.apply(.purge(time: time)).changes { kept.take(change) }
            #expect(try kept == directory.snapshot())
            // All but the API token of the directory.
            return try directory.tokens().count - 1
        }
        // Expired ones wait for a minute, so that one purge has many.
        #expect(!kept.needsPurge(now: 61_000) && kept.needsPurge(now: 61_001))
        #expect(try purge(999) == 504)
        #expect(try purge(1_000) == 253)
        #expect(!kept.needsPurge(now: 61_001) && kept.needsPurge(now: 61_002))
        #expect(try purge(70_000) == 2)
        #expect(!kept.needsPurge(now: 70_000) && kept.needsPurge(now: 6_000_000))
        #expect(try purge(.max) == 1)
        #expect(!kept.needsPurge(now: .max))
        #expect(try directory.isIdle(.purge(time: .max)))
        // More than 500 at once.
        for number in 0..<501 { try directory.apply(.createToken(Self.signIn("s\(number)"))) }
        kept = try directory.snapshot()
        #expect(try purge(.max) == 2)
        #expect(try purge(.max) == 1)
    }
}
