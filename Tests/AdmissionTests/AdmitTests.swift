import Admission
import Authorization
import Directory
import RecordModel
import Testing

@Suite("Admission")
struct AdmitTests {
    private static let directory: DirectorySnapshot = {
        var directory = DirectorySnapshot()
        directory.take(.account(Account(id: "a1", name: "ada", created: 0)))
        for (id, secret, kind) in [
            ("t1", "api", TokenKind.api(container: "app", environment: .development, origins: [], callbackURL: nil)),
            ("t2", "session", .session(container: "app", accountID: "a1", expires: 1_000)),
            ("t4", "kite", .api(container: "Kite", environment: .development, origins: [], callbackURL: nil)),
            ("t5", "flying", .session(container: "Kite", accountID: "a1", expires: 1_000)),
            ("t3", "elsewhere", .session(container: "other", accountID: "a1", expires: 1_000)),
        ] {
            directory.take(
                .token(Token(id: id, secretHash: Token.hash(ofSecret: secret), kind: kind, label: "", created: 0)))
        }
        return directory
    }()

    private func caller(
        api: String?, session: String? = nil, container: String = "app", environment: Environment = .development,
        needsUser: Bool = false, now: Int64 = 0
    ) -> Result<Caller, ServiceError> {
        Result { () throws(ServiceError) in
            try Admission.admit(
                Credentials(apiToken: api, webAuthToken: session),
                to: Target(container: container, environment: environment, needsUser: needsUser), in: Self.directory,
                signer: nil, now: now
            ).caller
        }
    }

    @Test("an API token alone is anonymous; with a session it is the session's user")
    func good() throws {
        #expect(try caller(api: "api").get() == Caller(user: nil))
        let user = Account.userRecordName(accountID: "a1", container: "app")
        #expect(try caller(api: "api", session: "session").get() == Caller(user: user))
    }

    @Test("'undefined', 'null' and nothing are no session", arguments: ["undefined", "null", ""])
    func noSession(text: String) throws {
        #expect(try caller(api: "api", session: text).get() == Caller(user: nil))
        #expect(code(caller(api: "api", session: text, needsUser: true)) == .authenticationRequired)
    }

    private func code(_ result: Result<Caller, ServiceError>) -> ErrorCode? {
        if case .failure(let error) = result { return error.code }
        return nil
    }

    @Test("nothing is open: no token, an unknown one, one of elsewhere, an expired session")
    func refused() {
        #expect(code(caller(api: nil)) == .authenticationFailed)
        #expect(code(caller(api: "guess")) == .authenticationFailed)
        // A session is no API token, and the other way round.
        #expect(code(caller(api: "session")) == .authenticationFailed)
        #expect(code(caller(api: "api", session: "api")) == .authenticationRequired)
        #expect(code(caller(api: "api", container: "other")) == .authenticationFailed)
        #expect(code(caller(api: "api", environment: .production)) == .authenticationFailed)
        #expect(code(caller(api: "api", session: "elsewhere")) == .authenticationRequired)
        #expect(code(caller(api: "api", session: "session", now: 1_000)) == .authenticationRequired)
        #expect(code(caller(api: "api", session: "guess")) == .authenticationRequired)
    }

    @Test("a token is for its container's name by the byte: U+212A is no K")
    func spelling() {
        #expect(code(caller(api: "kite", session: "flying", container: "Kite")) == nil)
        #expect(code(caller(api: "kite", container: "\u{212A}ite")) == .authenticationFailed)
        #expect(RateKey(container: "Kite", kind: .requests) != RateKey(container: "\u{212A}ite", kind: .requests))
    }

    @Test("the administrator's token is matched whole")
    func administrator() {
        let token = AdministratorToken(secret: "secret")
        #expect(token.matches("secret"))
        #expect(!token.matches("secre"))
        #expect(!token.matches(""))
    }
}
