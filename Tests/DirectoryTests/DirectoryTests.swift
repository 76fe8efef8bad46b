import GRDB
import RecordModel
import Testing
import Wire

@testable import Directory

@Suite("The directory")
struct DirectoryTests {
    private let directory = try? TestDirectory()

    private func apply(_ command: DirectoryCommand) throws -> (outcome: DirectoryOutcome, changes: [DirectoryChange]) {
        try #require(directory).apply(command)
    }

    private static let map = ClusterMap(
        clusterID: "c",
        nodes: (1...3).map { ClusterMap.Node(id: $0, peerHost: "h", peerPort: Int($0), clientURL: "u\($0)") },
        shardCount: 16, replicasPerShard: 3)

    private static let schemaKey = SchemaKey(container: "app", environment: .development)

    private static func api(_ environment: Environment) -> TokenKind {
        .api(container: "app", environment: environment, origins: [], callbackURL: nil)
    }

    @Test(
        "what no command wrote is told when the tables are read, so that another copy can be taken",
        arguments: [
            "UPDATE schema SET version = -1", "UPDATE schema SET generation = -1", "UPDATE schema SET body = x'ff'",
            "UPDATE schema SET environment = environment || 'x'", "UPDATE container_key SET body = x'ff'",
        ])
    func damaged(sql: String) throws {
        let directory = try TestDirectory.populated()
        try directory.apply(.addContainerKey(container: "app", ContainerKey(number: 1, wrapped: [1, 2])))
        _ = try directory.snapshot()
        try directory.database.write { try $0.execute(sql: sql) }
        #expect(throws: (any Error).self) { try directory.snapshot() }
    }

    @Test("the snapshot kept by changes equals the one read from the tables")
    func snapshots() throws {
        let account = Account(id: "a1", name: "ada", created: 1, email: "a@x")
        let other = Account(id: "a2", name: "bob", created: 2)
        let session = Token(
            id: "t1", secretHash: Token.hash(ofSecret: "s1"),
            kind: .session(container: "app", accountID: "a1", expires: 9),
            label: "", created: 1)
        let api = Token(
            id: "t2", secretHash: Token.hash(ofSecret: "s2"), kind: Self.api(.production), label: "web", created: 1)
        let commands: [DirectoryCommand] = [
            .installMap(Self.map), .createContainer(name: "app", time: 5), .createAccount(account),
            .createAccount(other),
            .createToken(session), .createToken(api),
            .setSchema(Self.schemaKey, expectedVersion: 1, Schema(types: [RecordType(name: "Note")])),
            .resetDevelopment(container: "app", expectedVersion: 2),
            .addContainerKey(container: "app", ContainerKey(number: 1, wrapped: [1, 2])),
            .addContainerKey(container: "app", ContainerKey(number: 2, wrapped: [])),
            .updateAccount(name: "bob", AccountChanges(email: "b@x", givenName: "Bob", isDiscoverable: true)),
            .updateAccount(name: "ada", AccountChanges(email: "", familyName: "L")),
            .revokeToken(id: "t2"), .deleteAccount(name: "ada"),
        ]
        var kept = DirectorySnapshot()
        for command in commands {
            let (outcome, changes) = try apply(command)
            guard case .done = outcome else {
                Issue.record("\(command) was refused: \(outcome)")
                continue
            }
            for change in changes { kept.take(change) }
        }
        let read = try #require(directory).snapshot()
        #expect(kept == read)
        #expect(kept.map == Self.map)
        #expect(kept.containers == ["app": 5])
        #expect(kept.keys(of: "app").map(\.number) == [1, 2])
        let rows = try #require(directory)
        #expect(try rows.account(withEmail: "B@X")?.name == "bob")
        // A session goes with its account.
        #expect(try rows.tokens().isEmpty)
        #expect(try rows.accounts().map(\.name) == ["bob"])
    }

    @Test(
        "what cannot be is refused and changes nothing",
        arguments: [
            DirectoryCommand.setSchema(Self.schemaKey, expectedVersion: 0, Schema()),
            .deleteAccount(name: "nobody"), .revokeToken(id: "none"),
            .updateAccount(name: "nobody", AccountChanges(email: "x@y")),
            .resetDevelopment(container: "app", expectedVersion: 0),
            .addContainerKey(container: "app", ContainerKey(number: 1, wrapped: [1])),
            .createToken(
                Token(
                    id: "t", secretHash: [1], kind: Self.api(.development), label: "", created: 0)),
            .setPassword(account: "nobody", nil, endsSessions: true),
            .noteSignInFailure(accountID: "none", time: 1), .revokeServerKey(id: "none"),
            .setLimits(container: "app", [LimitChange(.userBytes, 1)]), .removeIdentityProvider(name: "none"),
            .addRoleMember(RoleMember(container: "app", environment: .production, role: "r", accountID: "a")),
            .removeRoleMember(RoleMember(container: "app", environment: .production, role: "r", accountID: "a")),
            .beginSession(
                Token(sessionID: "t", container: "app", accountID: "a", expires: 1, label: "", created: 0),
                TestDirectory.basis),
            .createServerKey(
                ServerKey(
                    id: "k", container: "app", environment: .production, publicKey: [4], accountID: "a", label: "",
                    created: 0)),
        ])
    func refusals(command: DirectoryCommand) throws {
        let (outcome, changes) = try apply(command)
        guard case .refused(let error) = outcome else {
            Issue.record("\(command) was taken")
            return
        }
        #expect(error.code == .notFound)
        #expect(changes.isEmpty)
    }

    @Test("a second container, user or map of the same name is refused")
    func twice() throws {
        _ = try apply(.createContainer(name: "app", time: 5))
        _ = try apply(.createAccount(Account(id: "a", name: "ada", created: 1)))
        _ = try apply(.installMap(Self.map))
        for command in [
            DirectoryCommand.createContainer(name: "app", time: 6),
            .createAccount(Account(id: "b", name: "ada", created: 1)),
        ] {
            guard case .refused(let error) = try apply(command).outcome else {
                Issue.record("\(command) was taken twice")
                continue
            }
            #expect(error.code == .exists)
        }
        // The same map again is no change; another one of the same epoch is refused.
        #expect(try apply(.installMap(Self.map)).outcome == .done(version: 0))
        var other = Self.map
        other.nodes.removeLast()
        guard case .refused = try apply(.installMap(other)).outcome else {
            Issue.record("another map of the same epoch was taken")
            return
        }
    }

    @Test("a new map gives each node an equal part of the shards to lead, on three nodes each")
    func placement() {
        let map = Self.map
        #expect(map.shards.count == 16)
        #expect(map.shards.allSatisfy { Set($0).count == 3 })
        let leads = map.shards.map { $0[0].node }
        for node in UInt64(1)...3 { #expect((5...6).contains(leads.count { $0 == node })) }
        #expect(map.slots.count == ClusterMap.slotCount)
        let five = ClusterMap(
            clusterID: "c",
            nodes: (1...7).map { ClusterMap.Node(id: $0, peerHost: "h", peerPort: 1, clientURL: "u") }, shardCount: 7,
            replicasPerShard: 3)
        #expect(five.directoryVoters == [1, 2, 3, 4, 5])
        #expect(five.directoryLearners == [6, 7])
    }

    @Test("user record names differ by container and show nothing of the account")
    func userRecordNames() {
        let first = Account.userRecordName(accountID: "a1", container: "x")
        let second = Account.userRecordName(accountID: "a1", container: "y")
        #expect(first != second)
        #expect(first.count == 33 && first.hasPrefix("_"))
        #expect(first == Account.userRecordName(accountID: "a1", container: "x"))
    }
}
