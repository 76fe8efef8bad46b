import Authorization
import RecordModel
import Testing

@testable import Admission
@testable import Directory

@Suite("Admission")
struct AdmitTests {
    private static let directory: DirectorySnapshot = {
        var directory = DirectorySnapshot()
        for (id, secret, container) in [("t1", "api", "app"), ("t4", "kite", "Kite")] {
            let kind = TokenKind.api(container: container, environment: .development, origins: [], callbackURL: nil)
            directory.take(
                .token(Token(id: id, secretHash: Token.hash(ofSecret: secret), kind: kind, label: "", created: 0)))
        }
        return directory
    }()

    /// Sessions of ada, by their secrets.
    private static let sessions = Dictionary(
        uniqueKeysWithValues: [("session", "app"), ("flying", "Kite"), ("elsewhere", "other")].map {
            secret, container in
            let token = Token(
                id: secret, secretHash: Token.hash(ofSecret: secret),
                kind: .session(container: container, accountID: "a1", expires: 1_000), label: "", created: 0)
            return (SessionKey.secret(hash: token.secretHash), Session(token: token, accountName: "ada"))
        })

    /// As a node finds it.
    private static func session(_ webAuthToken: String?, _ signer: SessionSigner? = nil) -> PresentedSession? {
        guard let webAuthToken else { return nil }
        var session = PresentedSession(webAuthToken: webAuthToken, signer: signer)
        session.known = sessions[session.key]
        return session
    }

    private func caller(
        api: String?, session: String? = nil, container: String = "app", environment: Environment = .development,
        needsUser: Bool = false, now: Int64 = 0
    ) -> Result<Caller, ServiceError> {
        Result { () throws(ServiceError) in
            let credentials = Credentials(apiToken: api, webAuthToken: session)
            return try Admission.admit(
                credentials, to: Target(container: container, environment: environment, needsUser: needsUser),
                in: Self.directory, session: Self.session(credentials.webAuthToken), now: now
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

    @Test("a token that the cluster signed names its session by id, and says when it was issued")
    func signed() throws {
        let signer = SessionSigner(clusterKey: [UInt8](repeating: 1, count: 32))
        let text = signer.token(sessionID: "s1", issued: 5)
        var session = PresentedSession(webAuthToken: text, signer: signer)
        #expect(session.key == .signIn(id: "s1") && session.isOfSignIn)
        session.known = Session(
            token: Token(
                sessionID: "s1", container: "app", accountID: "a1", expires: 1_000, label: "", created: 0),
            accountName: "ada")
        let target = Target(container: "app", environment: .development, needsUser: true)
        let admitted = try Admission.admit(
            Credentials(apiToken: "api", webAuthToken: text), to: target, in: Self.directory, session: session, now: 0)
        #expect(admitted.session == SessionUse(sessionID: "s1", issued: 5, expires: 1_000))
        #expect(admitted.accountID == "a1" && admitted.accountName == "ada")
        // Without the cluster's key it is a secret that nobody has.
        let unsigned = PresentedSession(webAuthToken: text, signer: nil)
        #expect(unsigned.key == .secret(hash: Token.hash(ofSecret: text)) && !unsigned.isOfSignIn)
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
