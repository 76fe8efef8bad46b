import Directory
import RecordModel
import Testing
import Wire

@Suite("Times as a user, notes on containers, and what is known of tokens")
struct AdministrationCommandTests {
    private let directory: TestDirectory
    private static let place = SchemaKey(container: "app", environment: .development)

    init() throws {
        directory = try TestDirectory.populated()
        let grace = Administrator(name: "grace", role: .admin, password: TestDirectory.password(0), created: 1)
        #expect(try directory.refusal(of: .console(.save(grace, isNew: true))) == nil)
    }

    private static func acting(
        _ id: String = "t", by name: String = "grace", in session: String = "", as account: String = "a1",
        of place: SchemaKey = place, expires: Int64 = 100
    ) -> Token {
        Token(
            id: id, secretHash: Token.hash(ofSession: id),
            kind: .acting(
                ActingSession(
                    by: name, in: session, as: account, of: place, reason: "why", mayWrite: false, expires: expires)),
            label: "ada", created: 1)
    }

    private func begin(_ token: Token) throws -> String? {
        try directory.refusal(of: .administration(.beginActing(token)))
    }

    private func ids() throws -> [String] { try directory.snapshot().acting.map(\.token.id).sorted() }

    /// Signs grace in to the console by her password.
    private func signIn(_ id: String) throws {
        let session = Token(
            id: id, secretHash: Token.hash(ofSecret: id), kind: .console(name: "grace", expires: 100), label: "",
            created: 1)
        let proof = ConsoleProof.password(fingerprint: TestDirectory.password(0).fingerprint)
        #expect(try directory.refusal(of: .console(.beginSession(session, proof, replacing: ""))) == nil)
    }

    @Test("a time as a user begins for an administrator and a user that there are, and takes the place of the last one")
    func begins() throws {
        #expect(try begin(Self.acting(by: "nobody")) == "AUTHENTICATION_FAILED")
        #expect(try begin(Self.acting(as: "a9")) == "NOT_FOUND")
        #expect(try begin(Self.acting(of: SchemaKey(container: "none", environment: .development))) == "NOT_FOUND")
        #expect(try begin(Self.acting(in: "s")) == "AUTHENTICATION_FAILED", "the session in the console is over")
        #expect(try begin(TestDirectory.apiToken(of: "app")) == "BAD_REQUEST")
        #expect(try directory.refusal(of: .createToken(Self.acting())) == "BAD_REQUEST")
        #expect(try ids() == [])
        #expect(try begin(Self.acting("t1")) == nil)
        #expect(try directory.isIdle(.administration(.beginActing(Self.acting("t1")))))
        #expect(try begin(Self.acting("t2", as: "a2")) == nil)
        #expect(try begin(Self.acting("t3", of: SchemaKey(container: "app", environment: .production))) == nil)
        #expect(try begin(Self.acting("t4", by: "")) == nil)
        #expect(try ids() == ["t2", "t3", "t4"])
        // It is no session of the user's own.
        #expect(try directory.session(.signIn(id: "t2")) == nil)
        #expect(try directory.snapshot().userCount(of: "app") == 0)
        #expect(try directory.snapshot().token(withSecret: "t2") == nil)
    }

    @Test("it ends when it is stopped, with its session of the console, with its administrator, and by itself")
    func ends() throws {
        #expect(try begin(Self.acting("t1")) == nil)
        #expect(try directory.refusal(of: .administration(.endActing(Self.acting("t1")))) == nil)
        #expect(try directory.isIdle(.administration(.endActing(Self.acting("t1")))))
        #expect(try ids() == [])
        for id in ["s1", "s2"] { try signIn(id) }
        #expect(try begin(Self.acting("t2", in: "s1")) == nil)
        #expect(try begin(Self.acting("t3", in: "s2")) == nil)
        #expect(try directory.refusal(of: .revokeToken(id: "s1")) == nil)
        #expect(try ids() == ["t3"])
        #expect(try directory.refusal(of: .console(.remove(name: "grace"))) == nil)
        #expect(try ids() == [])
        #expect(try begin(Self.acting("t4", by: "")) == nil)
        #expect(try directory.snapshot().needsPurge(now: 100 + 60_001))
        #expect(try directory.refusal(of: .purge(time: 101)) == nil)
        #expect(try ids() == [])
    }

    @Test("the audit log has both names and the reason")
    func audit() throws {
        let origin = AuditOrigin(actor: "administrator grace", requestID: "r", address: "", time: 1)
        for command in [AdministrationCommand.beginActing(Self.acting()), .endActing(Self.acting())] {
            try directory.apply(DirectoryEntry(.administration(command), origin: origin))
        }
        let events = try directory.audit().records.map(\.event)
        #expect(events.map(\.action) == ["act-as.begin", "act-as.end"])
        for event in events {
            for word in ["administrator grace", "user ada", "app (development)", "read only", "why"] {
                #expect(event.subject.contains(word), "\(event.subject)")
            }
        }
    }

    @Test("a container is hidden and has a note until that is taken back, and both go with it")
    func containers() throws {
        func describe(_ details: ContainerDetails) throws -> String? {
            try directory.refusal(of: .administration(.describeContainer(details)))
        }
        let details = ContainerDetails(name: "app", isHidden: true, note: "old")
        #expect(try describe(details) == nil)
        #expect(try directory.snapshot().details(of: "app") == details)
        #expect(try directory.isIdle(.administration(.describeContainer(details))))
        #expect(try describe(ContainerDetails(name: "none", isHidden: true)) == "NOT_FOUND")
        let long = String(repeating: "x", count: ContainerDetails.noteLengthMax + 1)
        #expect(try describe(ContainerDetails(name: "app", note: long)) == "BAD_REQUEST")
        let grace = ContainerDeletion.graceMilliseconds
        for end in [ContainerEnd.delete(time: 0), .purge(time: grace), .revoke(ids: ["api-app"]), .remove] {
            #expect(try directory.refusal(of: .endContainer("app", end)) == nil)
        }
        #expect(try directory.refusal(of: .createContainer(name: "app", time: 1)) == nil)
        #expect(try directory.snapshot().details(of: "app") == ContainerDetails(name: "app"))
        #expect(try directory.read { try $0.schemaHistory(of: Self.place, limit: 9) } == [])
    }

    @Test("an API token gets another label and other origins, and keeps all else; other tokens do not change")
    func tokens() throws {
        func change(_ id: String, _ label: String?, _ origins: [String]?) throws -> String? {
            try directory.refusal(of: .administration(.changeToken(id: id, label: label, origins: origins)))
        }
        #expect(try change("api-app", "web", ["https://a.example"]) == nil)
        #expect(try change("api-app", nil, nil) == nil)
        var expected = TestDirectory.apiToken(of: "app")
        expected.label = "web"
        expected.kind = .api(
            container: "app", environment: .production, origins: ["https://a.example"], callbackURL: nil)
        #expect(try directory.snapshot().token(withSecret: "api of app") == expected)
        #expect(try change("api-app", nil, []) == nil)
        expected.kind = TestDirectory.apiToken(of: "app").kind
        #expect(try directory.token(withID: "api-app") == expected)
        #expect(try change("none", "x", nil) == "NOT_FOUND")
        #expect(try begin(Self.acting("t")) == nil)
        #expect(try change("t", "x", nil) == "BAD_REQUEST")
        #expect(try directory.refusal(of: .administration(.changeKey(id: "none", label: "x"))) == "NOT_FOUND")
    }

    @Test("the last use of a token is kept, and an earlier one that comes later changes nothing")
    func uses() throws {
        func note(_ time: Int64) throws -> Bool {
            try directory.isIdle(.administration(.noteUses(ids: ["api-app", "none", "t"], time: time)))
        }
        #expect(try begin(Self.acting("t")) == nil)
        #expect(try !note(5))
        #expect(try note(4))
        #expect(try directory.snapshot().token(withID: "api-app")?.lastUsed == 5)
        #expect(try directory.token(withID: "t")?.lastUsed == nil)
    }

    @Test("below its level the directory refuses it, and keeps no history")
    func level() throws {
        let entry = DirectoryEntry(.administration(.beginActing(Self.acting())))
        guard case .refused(let error) = try directory.apply(entry, at: .webhooks).outcome else {
            Issue.record("it was done")
            return
        }
        #expect(error.code == .tryAgainLater)
        let key = SchemaKey(container: "app", environment: .production)
        let change = DirectoryEntry(.setSchema(key, expectedVersion: 1, Schema(roles: ["r"])))
        #expect(try directory.apply(change, at: .webhooks).outcome == .done(version: 2))
        #expect(try directory.read { try $0.schemaHistory(of: key, limit: 9) } == [])
    }
}

@Suite("Histories of schemas")
struct SchemaHistoryTests {
    private let directory: TestDirectory
    private static let key = SchemaKey(container: "app", environment: .development)

    init() throws { directory = try TestDirectory.populated() }

    private func set(_ version: UInt64, _ schema: Schema, growth: String? = nil, time: Int64 = 7) throws {
        let origin = AuditOrigin(actor: "administrator", requestID: "r", address: "", time: time)
        let command = DirectoryCommand.setSchema(Self.key, expectedVersion: version, schema, growth: growth)
        let outcome = try directory.apply(DirectoryEntry(command, origin: origin)).outcome
        #expect(outcome == .done(version: version + 1))
    }

    private func history(before: UInt64? = nil, limit: Int = 200) throws -> [SchemaRevision] {
        try directory.read { try $0.schemaHistory(of: Self.key, before: before, limit: limit) }
    }

    private static func schema(_ role: String) -> Schema { Schema(roles: ["editor", role]) }

    @Test("each version is kept with who made it, when and why, and with the version before the first change")
    func versions() throws {
        try set(2, Self.schema("a"))
        let (outcome, _) = try directory.apply(.resetDevelopment(container: "app", expectedVersion: 3))
        #expect(outcome == .done(version: 4))
        let history = try history()
        #expect(history.map(\.version) == [4, 3, 2, 1])
        #expect(history.map(\.cause) == [.reset, .change, .change, .earlier])
        #expect(history.map(\.time) == [0, 7, 0, 0])
        #expect(history.map(\.actor) == ["", "administrator", "", ""])
        #expect(history.map(\.schema.roles) == [[], ["a", "editor"], ["editor"], []])
        #expect(try self.history(before: 4, limit: 1).map(\.version) == [3])
        // A change that is refused is no version.
        try directory.apply(.setSchema(Self.key, expectedVersion: 1, Schema()))
        #expect(try self.history().count == 4)
    }

    @Test("growths in a row are one version, the last")
    func growths() throws {
        for version in UInt64(2)...5 { try set(version, Self.schema("a\(version)"), growth: "g") }
        try set(6, Self.schema("b"))
        try set(7, Self.schema("c"), growth: "g")
        #expect(try history().map(\.version) == [8, 7, 6, 2, 1])
    }

    @Test("a hundred are kept, and 4 MB of them, but always the last")
    func bounds() throws {
        for version in UInt64(2)...120 { try set(version, Self.schema("a\(version)")) }
        #expect(try history().map(\.version) == (22...121).reversed())
        var large = Schema(roles: ["editor"])
        let name = String(repeating: "n", count: 200)
        for type in 0..<10 {
            let fields = (0..<90).map { FieldDefinition(name: "\(name)\($0)", type: FieldType(.string)) }
            large.types.append(RecordType(name: "T\(type)", fields: fields))
        }
        for version in UInt64(121)...150 {
            large.roles = ["editor", "r\(version)"]
            try set(version, large)
        }
        let kept = try history()
        let bytes = kept.reduce(0) { $0 + $1.schema.encoded().count }
        #expect(kept.first?.version == 151 && bytes <= 4_000_000 && kept.count < 30, "\(kept.count), \(bytes) bytes")
    }
}
