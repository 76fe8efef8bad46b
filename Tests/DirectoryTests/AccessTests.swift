import Directory
import RecordModel
import Testing
import Wire

@Suite("Server keys, roles, limits, providers and the sign-up switch")
struct AccessTests {
    private let directory: TestDirectory

    init() throws { directory = try TestDirectory.populated() }

    @Test("an administrator's token survives the wire and a restart, and a name is one administrator's")
    func administrators() throws {
        func token(_ id: String, _ name: String) -> Token {
            Token(
                id: id, secretHash: Token.hash(ofSecret: "secret \(id)"), kind: .administrator(name: name), label: "",
                created: 1)
        }
        #expect(try Token(decoding: token("a", "grace").encoded()) == token("a", "grace"))
        try directory.apply(.createToken(token("a", "grace")))
        #expect(try directory.isIdle(.createToken(token("a", "grace"))))
        #expect(try directory.refusal(of: .createToken(token("b", "grace"))) == "EXISTS")
        try directory.apply(.createToken(token("b", "Grace")))
        let snapshot = try directory.snapshot()
        #expect(snapshot.administrator(withSecret: "secret a") == "grace")
        #expect(snapshot.administrator(withSecret: "secret b") == "Grace")
        #expect(snapshot.administrator(withSecret: "secret c") == nil)
        try directory.apply(.revokeToken(id: "a"))
        #expect(try directory.snapshot().administrator(withSecret: "secret a") == nil)
    }

    private static func key(_ id: String, created: Int64 = 1, account: String = "a1") -> ServerKey {
        ServerKey(
            id: id, container: "app", environment: .development, publicKey: [4] + [UInt8](repeating: 7, count: 64),
            accountID: account, label: "import", created: created)
    }

    private static func member(
        _ account: String, role: String = "editor", environment: Environment = .development
    ) -> RoleMember {
        RoleMember(container: "app", environment: environment, role: role, accountID: account)
    }

    @Test("a server key is made once, listed by age, and gone when it is revoked")
    func serverKeys() throws {
        try directory.apply(.createServerKey(Self.key("b")))
        try directory.apply(.createServerKey(Self.key("c", created: 0)))
        #expect(try directory.isIdle(.createServerKey(Self.key("b"))))
        #expect(try directory.refusal(of: .createServerKey(Self.key("b", created: 9))) == "EXISTS")
        #expect(try directory.refusal(of: .createServerKey(Self.key("d", account: "a9"))) == "NOT_FOUND")
        var wrong = Self.key("d")
        wrong.publicKey = [3] + wrong.publicKey.dropFirst()
        #expect(try directory.refusal(of: .createServerKey(wrong)) == "BAD_REQUEST")
        wrong.publicKey = [4]
        #expect(try directory.refusal(of: .createServerKey(wrong)) == "BAD_REQUEST")
        wrong = Self.key("d")
        wrong.container = "other"
        #expect(try directory.refusal(of: .createServerKey(wrong)) == "NOT_FOUND")
        #expect(try directory.snapshot().serverKeys.map(\.id) == ["c", "b"])
        #expect(try directory.snapshot().serverKey(id: "b") == Self.key("b"))
        try directory.apply(.revokeServerKey(id: "b"))
        #expect(try directory.snapshot().serverKey(id: "b") == nil)
        #expect(try directory.refusal(of: .revokeServerKey(id: "b")) == "NOT_FOUND")
    }

    @Test("a container has a thousand API tokens and server keys, from the level on, and another as many")
    func bounds() throws {
        func api(_ number: Int, of container: String = "app") -> DirectoryCommand {
            var token = TestDirectory.apiToken(of: container)
            (token.id, token.secretHash) = ("t\(number)\(container)", Token.hash(ofSecret: "\(number)\(container)"))
            return .createToken(token)
        }
        func key(_ number: Int) -> DirectoryCommand { .createServerKey(Self.key("k\(number)")) }
        // Below the level nothing is counted. `api-app` is there, too.
        for number in 1...1_000 {
            for command in [api(number), key(number)] {
                let (outcome, _) = try directory.apply(DirectoryEntry(command), at: .changeTimes)
                #expect(outcome == .done(version: 0))
            }
        }
        for command in [api(1_001), key(1_001)] {
            guard case .refused(let error) = try directory.apply(command).outcome else {
                Issue.record("it was done: \(command)")
                continue
            }
            #expect(error.code == .badRequest && error.reason.contains("revoke those"), "\(error)")
        }
        #expect(try directory.refusal(of: .createContainer(name: "app.other", time: 1)) == nil)
        #expect(try directory.refusal(of: api(1, of: "app.other")) == nil)
        for id in ["t1app", "t2app"] { #expect(try directory.refusal(of: .revokeToken(id: id)) == nil) }
        #expect(try directory.refusal(of: .revokeServerKey(id: "k1")) == nil)
        for command in [api(1_001), key(1_001)] {
            #expect(try directory.refusal(of: command) == nil)
            #expect(try directory.isIdle(command), "the same once more")
        }
        #expect(try directory.refusal(of: api(1_002)) == "BAD_REQUEST")
    }

    @Test("a role has the members it was given, in its own environment")
    func roles() throws {
        try directory.apply(
            .setSchema(
                SchemaKey(container: "app", environment: .development), expectedVersion: 2,
                Schema(roles: ["editor", "author"])))
        for member in [Self.member("a2"), Self.member("a1"), Self.member("a1", role: "author")] {
            try directory.apply(.addRoleMember(member))
        }
        #expect(try directory.isIdle(.addRoleMember(Self.member("a1"))))
        #expect(try directory.refusal(of: .addRoleMember(Self.member("a1", role: "reader"))) == "NOT_FOUND")
        #expect(try directory.refusal(of: .addRoleMember(Self.member("a1", role: "_creator"))) == "BAD_REQUEST")
        #expect(try directory.refusal(of: .addRoleMember(Self.member("a3"))) == "NOT_FOUND")
        #expect(
            try directory.refusal(of: .addRoleMember(Self.member("a1", environment: .production))) == "NOT_FOUND")
        let snapshot = try directory.snapshot()
        #expect(snapshot.roles(of: "a1", container: "app", environment: .development) == ["author", "editor"])
        #expect(snapshot.roles(of: "a1", container: "app", environment: .production).isEmpty)
        #expect(snapshot.roles(of: "a1", container: "other", environment: .development).isEmpty)
        #expect(
            snapshot.members(container: "app", environment: .development)
                == [Self.member("a1", role: "author"), Self.member("a1"), Self.member("a2")])
        try directory.apply(.removeRoleMember(Self.member("a1")))
        #expect(try directory.refusal(of: .removeRoleMember(Self.member("a1"))) == "NOT_FOUND")
        #expect(
            try directory.snapshot().roles(of: "a1", container: "app", environment: .development) == ["author"])
    }

    @Test("what goes with an account: its sessions, keys, roles and lock-out, and nobody else's")
    func deletion() throws {
        for account in ["a1", "a2"] {
            try directory.apply(.createServerKey(Self.key("k" + account, account: account)))
            try directory.apply(.addRoleMember(Self.member(account)))
            try directory.apply(.noteSignInFailure(accountID: account, time: 1))
            try directory.apply(
                .createToken(
                    Token(
                        sessionID: "s" + account, container: "app", accountID: account, expires: 9, label: "",
                        created: 1)
                ))
        }
        var kept = try directory.snapshot()
        let (outcome, changes) = try directory.apply(.deleteAccount(name: "ada"))
        #expect(outcome == .done(version: 0))
        for change in changes { kept.take(change) }
        for snapshot in [kept, try directory.snapshot()] {
            #expect(snapshot.serverKeys.map(\.accountID) == ["a2"])
            #expect(snapshot.members(container: "app", environment: .development) == [Self.member("a2")])
            #expect(snapshot.userCount(of: "app") == 1)
        }
        #expect(try directory.lockout(of: "a1") == nil && directory.lockout(of: "a2")?.failures == 1)
        #expect(try directory.token(withID: "sa1") == nil && directory.token(withID: "sa2") != nil)
        #expect(try directory.snapshot() == kept)
    }

    @Test("a container's value counts before the cluster's, and the cluster's before the standard one")
    func limits() throws {
        func value(_ limit: ContainerLimit, of container: String = "app") throws -> Int64 {
            try directory.snapshot().limits(of: container)[limit]
        }
        try directory.apply(.createContainer(name: "other", time: 1))
        try directory.apply(
            .setLimits(container: nil, [LimitChange(.userBytes, 5), LimitChange(.requestsPerSecond, 7)]))
        try directory.apply(.setLimits(container: "app", [LimitChange(.userBytes, 6)]))
        #expect(try value(.userBytes) == 6 && value(.userBytes, of: "other") == 5)
        #expect(try value(.requestsPerSecond) == 7)
        #expect(try value(.databaseBytes) == ContainerLimit.databaseBytes.standard)
        // The cluster's values still count once the container has its own.
        try directory.apply(.setLimits(container: nil, [LimitChange(.requestsPerSecond, 8)]))
        #expect(try value(.requestsPerSecond) == 8 && value(.userBytes) == 6)
        #expect(try directory.snapshot().overrides(of: "app") == [.userBytes: 6])
        #expect(try directory.snapshot().overrides(of: nil) == [.userBytes: 5, .requestsPerSecond: 8])
        try directory.apply(.setLimits(container: "app", [LimitChange(.userBytes, nil)]))
        #expect(try value(.userBytes) == 5)
        #expect(try directory.snapshot().overrides(of: "app").isEmpty)
    }

    @Test("the epoch of limits grows with each change that touches the container, and never begins anew")
    func limitsEpoch() throws {
        try directory.apply(.createContainer(name: "other", time: 1))
        func epochs() throws -> [UInt64] {
            let snapshot = try directory.snapshot()
            return [snapshot.limitsEpoch(of: "app"), snapshot.limitsEpoch(of: "other")]
        }
        #expect(try epochs() == [0, 0])
        try directory.apply(.setLimits(container: "app", [LimitChange(.userBytes, 5)]))
        #expect(try epochs() == [1, 0])
        #expect(try directory.isIdle(.setLimits(container: "app", [LimitChange(.userBytes, 5)])))
        #expect(try directory.isIdle(.setLimits(container: nil, [LimitChange(.userBytes, nil)])))
        try directory.apply(.setLimits(container: nil, [LimitChange(.userBytes, 1)]))
        #expect(try epochs() == [2, 1])
        try directory.apply(.setLimits(container: "app", [LimitChange(.userBytes, nil)]))
        #expect(try epochs() == [3, 1])
    }

    @Test("values outside a limit's range are refused, with all that came with them")
    func limitRanges() throws {
        for change in [
            LimitChange(.requestsPerSecond, 0), LimitChange(.requestsPerSecond, 1_000_001), LimitChange(.userBytes, -1),
            LimitChange(.concurrentRequests, 0),
        ] {
            for container in [nil, "app"] {
                #expect(
                    try directory.refusal(of: .setLimits(container: container, [LimitChange(.userRecords, 1), change]))
                        == "BAD_REQUEST")
            }
        }
        #expect(try directory.snapshot().limits(of: "app") == ContainerLimits())
        #expect(try directory.refusal(of: .setLimits(container: "other", [])) == "NOT_FOUND")
    }

    @Test("a provider is set, changed and removed by its name; secrets are sealed")
    func providers() throws {
        let vault = FieldVault(clusterKey: [UInt8](1...32))
        let sealed = try vault.sealSecret(Array("hidden".utf8), purpose: "provider/b")
        var second = IdentityProvider(
            name: "b", issuer: "https://b", clientID: "zk", sealedSecret: sealed, allowsSignUp: true)
        let first = IdentityProvider(
            name: "a", issuer: "https://a", clientID: "zk", sealedSecret: [], allowsSignUp: false)
        try directory.apply(.setIdentityProvider(second))
        try directory.apply(.setIdentityProvider(first))
        #expect(try directory.isIdle(.setIdentityProvider(first)))
        second.allowsSignUp = false
        try directory.apply(.setIdentityProvider(second))
        #expect(try directory.snapshot().providers == [first, second])
        let kept = try directory.snapshot().providers[1].sealedSecret
        #expect(try vault.openSecret(kept, purpose: "provider/b") == Array("hidden".utf8))
        #expect(throws: ServiceError.self) { try vault.openSecret(kept, purpose: "provider/a") }
        #expect(throws: ServiceError.self) {
            try FieldVault(clusterKey: [UInt8](2...33)).openSecret(kept, purpose: "provider/b")
        }
        #expect(throws: ServiceError.self) { try vault.openSecret(Array(kept.dropLast()), purpose: "provider/b") }
        #expect(throws: ServiceError.self) { try FieldVault(clusterKey: nil).sealSecret([1], purpose: "p") }
        #expect(try vault.openSecret(try vault.sealSecret([], purpose: "p"), purpose: "p").isEmpty)
        try directory.apply(.removeIdentityProvider(name: "a"))
        #expect(try directory.refusal(of: .removeIdentityProvider(name: "a")) == "NOT_FOUND")
        #expect(try directory.snapshot().providers == [second])
        second.issuer = ""
        #expect(try directory.refusal(of: .setIdentityProvider(second)) == "BAD_REQUEST")
    }

    @Test("signing up is closed until it is opened")
    func signUp() throws {
        #expect(try !directory.snapshot().isSignUpOpen)
        #expect(try directory.isIdle(.setSignUp(isOpen: false)))
        try directory.apply(.setSignUp(isOpen: true))
        try directory.apply(.setLimits(container: nil, [LimitChange(.userBytes, 1)]))
        #expect(try directory.snapshot().isSignUpOpen)
        try directory.apply(.setSignUp(isOpen: false))
        #expect(try !directory.snapshot().isSignUpOpen)
        #expect(try directory.snapshot().overrides(of: nil) == [.userBytes: 1])
    }
}
