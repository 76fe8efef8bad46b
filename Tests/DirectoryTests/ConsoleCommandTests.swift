import Directory
import RecordModel
import Testing

/// Who may use the console, and their links and sessions there.
@Suite("Commands of the console")
struct ConsoleCommandTests {
    private static func link(_ name: String, _ id: String = "l", expires: Int64 = 60) -> Token {
        Token(
            id: id, secretHash: Token.hash(ofSecret: id), kind: .consoleLink(name: name, expires: expires), label: "",
            created: 0)
    }

    private static func session(_ name: String, _ id: String = "s", created: Int64 = 1) -> Token {
        Token(
            id: id, secretHash: Token.hash(ofSecret: id), kind: .console(name: name, expires: created + 100), label: "",
            created: created)
    }

    private static func byLink(_ id: String = "l") -> ConsoleProof { .link(secretHash: Token.hash(ofSecret: id)) }

    private func directory() throws -> TestDirectory {
        let directory = try TestDirectory.populated()
        let grace = Administrator(name: "grace", role: .viewer, password: TestDirectory.password(0), created: 1)
        #expect(try directory.refusal(of: .console(.save(grace, isNew: true))) == nil)
        return directory
    }

    @Test("a link begins one session, whoever has it at the same time, and none once its minute is over")
    func links() throws {
        let directory = try directory()
        func begin(_ session: Token, _ proof: ConsoleProof = Self.byLink()) throws -> String? {
            try directory.refusal(of: .console(.beginSession(session, proof, replacing: "")))
        }
        for name in ["grace", ""] {
            #expect(try directory.refusal(of: .console(.makeLink(Self.link(name)))) == nil)
            #expect(try begin(Self.session(name, "late", created: 60)) == "AUTHENTICATION_FAILED")
            #expect(try begin(Self.session("mallory", "s")) == "AUTHENTICATION_FAILED")
            #expect(try begin(Self.session(name, "s\(name)")) == nil)
            // The same once more is a repeat of what is done; another one is too late.
            #expect(
                try directory.isIdle(
                    .console(.beginSession(Self.session(name, "s\(name)"), Self.byLink(), replacing: ""))))
            #expect(try begin(Self.session(name, "s2")) == "AUTHENTICATION_FAILED")
            #expect(try directory.snapshot().token(withID: "s2") == nil)
        }
        #expect(try directory.snapshot().token(withSecret: "sgrace")?.kind == .console(name: "grace", expires: 101))
        #expect(try directory.refusal(of: .console(.makeLink(Self.link("nobody")))) == "AUTHENTICATION_FAILED")
        #expect(try directory.refusal(of: .createToken(Self.session("grace", "x"))) == "BAD_REQUEST")
        #expect(try directory.refusal(of: .console(.makeLink(Self.session("grace", "x")))) == "BAD_REQUEST")
    }

    @Test("expired links and sessions are purged, and the snapshot forgets them")
    func purge() throws {
        let directory = try directory()
        try directory.apply(.console(.makeLink(Self.link("grace"))))
        #expect(try directory.snapshot().needsPurge(now: 60 + 60_001))
        try directory.apply(.purge(time: 61))
        #expect(try directory.snapshot().token(withID: "l") == nil)
    }

    @Test("a password begins a session while it is the password; a new one ends all other sessions")
    func passwords() throws {
        let directory = try directory()
        func begin(_ id: String, _ byte: UInt8, replacing: String = "") throws -> String? {
            let proof = ConsoleProof.password(fingerprint: TestDirectory.password(byte).fingerprint)
            return try directory.refusal(
                of: .console(.beginSession(Self.session("grace", id), proof, replacing: replacing)))
        }
        #expect(try begin("s1", 0) == nil && begin("s2", 0) == nil)
        #expect(try begin("s3", 1) == "AUTHENTICATION_FAILED")
        #expect(try begin("s4", 0, replacing: "s2") == nil)
        func ids() throws -> [String] {
            try directory.tokens().filter { $0.kind.administratorName == "grace" }.map(\.id).sorted()
        }
        #expect(try ids() == ["s1", "s4"])
        // Nobody ends what is not a session of the console.
        #expect(try begin("s5", 0, replacing: "api-app") == nil && directory.token(withID: "api-app") != nil)
        try directory.apply(
            .console(.setPassword(name: "grace", TestDirectory.password(1), keepingSession: "s4", time: 5)))
        #expect(try ids() == ["s4"] && begin("s6", 0) == "AUTHENTICATION_FAILED")
        #expect(try begin("s6", 1) == nil)
        #expect(try directory.snapshot().administrator(named: "grace")?.lastSignIn == 1)
        for _ in 0...Lockout.failuresFree { try directory.apply(.console(.noteFailure(name: "grace", time: 7))) }
        #expect(try directory.lockout(of: Administrator.lockoutKey("grace"))?.isLocked(at: 8) == true)
        #expect(try directory.refusal(of: .console(.noteFailure(name: "nobody", time: 7))) == "NOT_FOUND")
        // Anybody can cause it: it pushes nothing out of the log of what administrators did.
        let somebody = AuditOrigin(actor: "somebody", requestID: "r", address: "::1", time: 7)
        try directory.apply(DirectoryEntry(.console(.noteFailure(name: "grace", time: 7)), origin: somebody))
        #expect(try directory.audit(.changes).records.isEmpty && !directory.audit(.requests).records.isEmpty)
        #expect(try begin("s7", 1) == nil && directory.lockout(of: Administrator.lockoutKey("grace")) == nil)
    }

    @Test("sessions of one administrator are bounded; the oldest end")
    func bounded() throws {
        let directory = try directory()
        let proof = ConsoleProof.password(fingerprint: TestDirectory.password(0).fingerprint)
        for number in 1...25 {
            let session = Self.session("grace", "s\(100 + number)", created: Int64(number))
            try directory.apply(.console(.beginSession(session, proof, replacing: "")))
        }
        let ids = try directory.tokens().filter { $0.kind.administratorName == "grace" }.map(\.id).sorted()
        #expect(ids == (6...25).map { "s\(100 + $0)" })
    }

    @Test("removing an administrator, or the only token of a name, ends what it could be used by")
    func removal() throws {
        let directory = try directory()
        func token(_ name: String) -> Token {
            Token(
                id: "t-\(name)", secretHash: Token.hash(ofSecret: name), kind: .administrator(name: name), label: "",
                created: 1)
        }
        for name in ["grace", "alan"] {
            try directory.apply(.createToken(token(name)))
            try directory.apply(.console(.makeLink(Self.link(name, "l-\(name)"))))
            let begin = ConsoleCommand.beginSession(
                Self.session(name, "s-\(name)"), Self.byLink("l-\(name)"), replacing: "")
            #expect(try directory.refusal(of: .console(begin)) == nil)
        }
        func left() throws -> [String] {
            try directory.tokens().filter { $0.kind.administratorName != nil }.map(\.id).sorted()
        }
        #expect(try directory.snapshot().team.map(\.name) == ["alan", "grace"])
        #expect(try directory.snapshot().team.map(\.role) == [.admin, .viewer])
        // Grace has a role that goes on without the token.
        try directory.apply(.revokeToken(id: "t-grace"))
        #expect(try left() == ["s-alan", "s-grace", "t-alan"])
        try directory.apply(.revokeToken(id: "t-alan"))
        #expect(try left() == ["s-grace"])
        try directory.apply(.console(.remove(name: "grace")))
        #expect(try left() == [] && directory.snapshot().team.isEmpty)
        #expect(try directory.refusal(of: .console(.remove(name: "grace"))) == "NOT_FOUND")
    }

    @Test("an administrator's role is changed without the containers, and these without it; also by a token's name")
    func changes() throws {
        let directory = try directory()
        func change(_ name: String, _ role: AdministratorRole?, _ containers: [String]??) throws -> String? {
            try directory.refusal(
                of: .administration(.changeAdministrator(name: name, role: role, containers: containers)))
        }
        func known(_ name: String) throws -> Administrator? { try directory.snapshot().administrator(named: name) }
        #expect(try change("grace", .developer, .none) == nil)
        // Somebody who read the team before that and asks for containers later does not bring the role back.
        #expect(try change("grace", nil, ["app"]) == nil)
        var grace = Administrator(
            name: "grace", role: .developer, containers: ["app"], password: TestDirectory.password(0), created: 1)
        #expect(try known("grace") == grace)
        #expect(try change("grace", .viewer, .none) == nil)
        #expect(try change("grace", nil, .some(nil)) == nil)
        (grace.role, grace.containers) = (.viewer, nil)
        #expect(try known("grace") == grace)
        let token = Token(
            id: "t", secretHash: Token.hash(ofSecret: "t"), kind: .administrator(name: "alan"), label: "", created: 7)
        try directory.apply(.createToken(token))
        #expect(try change("alan", nil, ["app"]) == nil)
        #expect(try known("alan") == Administrator(name: "alan", role: .admin, containers: ["app"], created: 7))
        #expect(try change("nobody", .admin, .none) == "NOT_FOUND")
        #expect(try change("grace", nil, (0...Administrator.containersMax).map { "c\($0)" }) == "BAD_REQUEST")
        let command = AdministrationCommand.changeAdministrator(name: "grace", role: .admin, containers: .none)
        let (outcome, _) = try directory.apply(DirectoryEntry(.administration(command)), at: .changeTimes)
        guard case .refused(let error) = outcome else {
            Issue.record("it was done below its level")
            return
        }
        #expect(error.code == .tryAgainLater)
    }

    @Test("a token is made in a session that is there still, and not once its administrator was removed")
    func tokens() throws {
        let directory = try directory()
        let proof = ConsoleProof.password(fingerprint: TestDirectory.password(0).fingerprint)
        for id in ["s1", "s2"] {
            try directory.apply(.console(.beginSession(Self.session("grace", id), proof, replacing: "")))
        }
        func make(_ name: String, in session: String) throws -> String? {
            let kind = TokenKind.administrator(name: name)
            let token = Token(id: "t", secretHash: Token.hash(ofSecret: "t"), kind: kind, label: "", created: 1)
            let command = DirectoryCommand.administration(.makeToken(token, session: session))
            let (outcome, _) = try directory.apply(DirectoryEntry(command), at: .changeTimes)
            guard case .refused(let error) = outcome else { return "it was done below its level" }
            #expect(error.code == .tryAgainLater)
            return try directory.refusal(of: command)
        }
        try directory.apply(.revokeToken(id: "s1"))
        #expect(try make("grace", in: "s1") == "AUTHENTICATION_FAILED")
        #expect(try make("grace", in: "") == "AUTHENTICATION_FAILED")
        #expect(try make("nobody", in: "s2") == "AUTHENTICATION_FAILED")
        #expect(try make("", in: "s2") == "BAD_REQUEST")
        #expect(try make("grace", in: "s2") == nil)
        #expect(try make("grace", in: "s2") == nil, "the same once more")
        #expect(try directory.snapshot().teamMember(named: "grace")?.role == .viewer)
        try directory.apply(.console(.remove(name: "grace")))
        #expect(try make("grace", in: "s2") == "AUTHENTICATION_FAILED")
        #expect(try directory.snapshot().team.isEmpty)
    }

    @Test("whoever came by the nodes' token takes a name once, and none that somebody has")
    func founding() throws {
        let directory = try directory()
        try directory.apply(.console(.makeLink(Self.link(""))))
        try directory.apply(.console(.beginSession(Self.session(""), Self.byLink(), replacing: "")))
        func found(_ name: String) throws -> String? {
            let new = Administrator(name: name, role: .admin, password: TestDirectory.password(2), created: 3)
            return try directory.refusal(of: .console(.found(new, session: "s")))
        }
        #expect(try found("grace") == "EXISTS" && found("a b") == "BAD_REQUEST")
        #expect(try found("ada") == nil)
        let snapshot = try directory.snapshot()
        #expect(snapshot.token(withSecret: "s")?.kind == .console(name: "ada", expires: 101))
        #expect(snapshot.administrator(named: "ada")?.role == .admin)
        #expect(try found("eve") == "AUTHENTICATION_FAILED")
    }
}
