import GRDB
import RecordModel
import Testing
import Wire

@testable import Directory

@Suite("The end of a container")
struct ContainerEndTests {
    private static let week: Int64 = 7 * 86_400_000
    private let directory: TestDirectory

    init() throws { directory = try TestDirectory.populated() }

    private func refusal(_ step: ContainerEnd) throws -> String? {
        try directory.refusal(of: .endContainer("app", step))
    }

    private func expectSame(_ kept: DirectorySnapshot) throws { #expect(try directory.snapshot() == kept) }

    @Test("a deleted container is refused whatever is done to it, and its name is not free")
    func deleted() throws {
        #expect(try refusal(.restore(time: 1)) == "NOT_FOUND")
        #expect(try refusal(.delete(time: 10)) == nil)
        #expect(try refusal(.delete(time: 11)) == "NOT_FOUND")
        let key = SchemaKey(container: "app", environment: .development)
        for command in [
            DirectoryCommand.setSchema(key, expectedVersion: 2, Schema()),
            .resetDevelopment(container: "app", expectedVersion: 2),
            .addContainerKey(container: "app", ContainerKey(number: 1, wrapped: [])),
            .createToken(
                Token(
                    id: "t", secretHash: Token.hash(ofSecret: "t"),
                    kind: .session(container: "app", accountID: "a1", expires: 99), label: "", created: 1)),
            .setLimits(container: "app", []),
            .addRoleMember(RoleMember(container: "app", environment: .development, role: "editor", accountID: "a1")),
        ] {
            #expect(try directory.refusal(of: command) == "NOT_FOUND", "\(command)")
        }
        #expect(try directory.refusal(of: .createContainer(name: "app", time: 12)) == "EXISTS")
        let snapshot = try directory.snapshot()
        #expect(snapshot.containers.isEmpty)
        #expect(snapshot.deletions["app"]?.restorableUntil == 10 + Self.week)
        let error = #expect(throws: ServiceError.self) { try snapshot.requireContainer("app") }
        #expect(error?.reason.hasPrefix("no container 'app' any more: it was deleted on 1970-01-01T00:00:00Z") == true)
    }

    @Test("it is restored as it was within a week, and not after")
    func restored() throws {
        let before = try directory.snapshot()
        #expect(try refusal(.delete(time: 10)) == nil)
        #expect(try refusal(.purge(time: 9 + Self.week)) == "NOT_FOUND")
        #expect(try refusal(.restore(time: 9 + Self.week)) == nil)
        try expectSame(before)
        #expect(try refusal(.delete(time: 20)) == nil)
        #expect(try refusal(.restore(time: 20 + Self.week)) == "CONFLICT")
        #expect(try refusal(.purge(time: 20 + Self.week)) == nil)
        #expect(try directory.isIdle(.endContainer("app", .purge(time: 20 + Self.week))))
        // A clock that is behind brings nothing back either.
        #expect(try refusal(.restore(time: 21)) == "CONFLICT")
    }

    @Test("its purge takes what belongs to it and nothing else, and its name begins anew")
    func purged() throws {
        let other = Token(
            id: "other", secretHash: Token.hash(ofSecret: "other"),
            kind: .session(container: "two", accountID: "a1", expires: 99), label: "", created: 1)
        let key = ServerKey(
            id: "k", container: "app", environment: .production,
            publicKey: [4] + Array(repeating: 0, count: ServerKey.publicKeyBytes - 1), accountID: "a1", label: "",
            created: 1)
        for command in [
            DirectoryCommand.createContainer(name: "two", time: 2), .createToken(other), .createServerKey(key),
            .addRoleMember(RoleMember(container: "app", environment: .development, role: "editor", accountID: "a1")),
            .setLimits(container: "app", [LimitChange(.userBytes, 5)]),
            .addContainerKey(container: "app", ContainerKey(number: 1, wrapped: [1])),
            .endContainer("app", .delete(time: 10)),
        ] {
            #expect(try directory.refusal(of: command) == nil, "\(command)")
        }
        var kept = try directory.snapshot()
        let epoch = kept.limitsEpoch(of: "app")
        for step in [ContainerEnd.revoke(ids: ["api-app"]), .remove] {
            #expect(try refusal(step) == "NOT_FOUND", "nothing goes before the purge: \(step)")
        }
        for step in [
            ContainerEnd.purge(time: 10 + Self.week), .revoke(ids: ["api-app", "other", "k", "none"]),
            .revoke(ids: ["api-app", "k"]), .remove,
        ] {
            let (outcome, changes) = try directory.apply(.endContainer("app", step))
            #expect(outcome == .done(version: 0))
            for change in changes { kept.take(change) }
        }
        try expectSame(kept)
        #expect(try directory.tokens() == [other])
        #expect(kept.serverKeys.isEmpty && kept.keys(of: "app").isEmpty && kept.deletions.isEmpty)
        #expect(kept.members(container: "app", environment: .development).isEmpty)
        #expect(kept.schemas.keys.allSatisfy { $0.container == "two" })
        #expect(kept.overrides(of: "app").isEmpty && kept.limitsEpoch(of: "app") > epoch)
        #expect(try refusal(.remove) == "NOT_FOUND")
        #expect(try directory.refusal(of: .createContainer(name: "app", time: 30)) == nil)
        let snapshot = try directory.snapshot()
        #expect(snapshot.containers["app"] == 30)
        #expect(snapshot.schemas[SchemaKey(container: "app", environment: .development)]?.schema == Schema.initial)
    }

    @Test("administrators' rights to it end with it, also those of who has no other, from the level on")
    func administrators() throws {
        let held: [String: [String]?] = ["ada": ["app"], "bob": ["app", "two"], "eve": ["two"], "root": nil]
        for (name, containers) in held {
            let administrator = Administrator(name: name, role: .developer, containers: containers, created: 1)
            #expect(try directory.refusal(of: .console(.save(administrator, isNew: true))) == nil)
        }
        func rights() throws -> [String: [String]?] {
            Dictionary(uniqueKeysWithValues: try directory.snapshot().team.map { ($0.name, $0.containers) })
        }
        for level in [FeatureLevel.changeTimes, .endedRights] {
            if try !directory.snapshot().hasContainer("app") {
                #expect(try directory.refusal(of: .createContainer(name: "app", time: 1)) == nil)
            }
            var kept = try directory.snapshot()
            for step in [ContainerEnd.delete(time: 10), .purge(time: 10 + Self.week), .revoke(ids: ["api-app"])] {
                for change in try directory.apply(.endContainer("app", step)).changes { kept.take(change) }
                #expect(try rights() == held, "it may be restored, or the next step may come later")
            }
            let (outcome, changes) = try directory.apply(DirectoryEntry(.endContainer("app", .remove)), at: level)
            #expect(outcome == .done(version: 0))
            for change in changes { kept.take(change) }
            try expectSame(kept)
            if level < .endedRights { #expect(try rights() == held) }
        }
        #expect(try rights() == ["ada": [], "bob": ["two"], "eve": ["two"], "root": nil])
        let ada = try #require(try directory.snapshot().administrator(named: "ada"))
        #expect(try Administrator(decoding: ada.encoded()).containers == [])
    }

    @Test("a step that cannot be read is not taken for another")
    func wire() throws {
        for step in [
            ContainerEnd.delete(time: 5), .restore(time: 6), .purge(time: 7), .revoke(ids: ["a", "b"]), .remove,
        ] {
            let command = DirectoryCommand.endContainer("app", step)
            #expect(try DirectoryCommand(decoding: command.encoded()) == command)
            #expect(
                command.auditSummary.action.hasPrefix("container.") && command.auditSummary.subject == "container app")
        }
    }

    @Test("a row that no command wrote is damage", arguments: ["schema", "role_member"])
    func damage(table: String) throws {
        try directory.apply(
            .addRoleMember(RoleMember(container: "app", environment: .development, role: "editor", accountID: "a1")))
        try directory.database.write {
            try $0.execute(sql: "UPDATE \(table) SET environment = 'moon' WHERE environment = 'development'")
        }
        #expect(throws: (any Error).self) { try directory.snapshot() }
    }
}
