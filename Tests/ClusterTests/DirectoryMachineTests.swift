import GRDB
import RaftCore
import RecordModel
import Testing
import Wire

@testable import Cluster
@testable import Directory

@Suite("Sessions in a node's memory")
struct DirectoryMachineTests {
    private let database: DatabaseQueue
    private let machine = DirectoryMachine(vault: FieldVault(clusterKey: nil))
    private let key = SessionKey.signIn(id: "s1")

    init() throws {
        database = try DatabaseQueue()
        try database.write { try machine.createTables(in: $0) }
        try apply(.createContainer(name: "app", time: 1))
        try apply(.createAccount(Account(id: "a1", name: "ada", created: 1)))
        try apply(.createToken(session("s1")))
    }

    private func session(_ id: String) -> Token {
        Token(sessionID: id, container: "app", accountID: "a1", expires: 9, label: "", created: 1)
    }

    private func apply(_ command: DirectoryCommand) throws {
        try write(command)
        machine.didCommit()
    }

    /// Applies a command; what is in memory hears of it only by what is called next.
    private func write(_ command: DirectoryCommand) throws {
        let bytes = DirectoryEntry(command).encoded()
        let outcomes = try database.write {
            try machine.apply([bytes], at: FeatureLevel.supported.upperBound, in: $0, while: { true })
        }
        #expect(try DirectoryOutcome(decoding: outcomes[0]) == .done(version: 0))
    }

    @discardableResult
    private func read() throws -> Session? {
        try database.read { try machine.readSession(key, AccountReader($0)) }
    }

    @Test(
        "a session that was read stays in memory until its end is committed, whatever ends it",
        arguments: [
            DirectoryCommand.revokeToken(id: "s1"), .deleteAccount(name: "ada"), .purge(time: 9),
            .setPassword(account: "ada", nil, endsSessions: true),
        ])
    func ends(command: DirectoryCommand) throws {
        #expect(machine.session(key) == nil)
        #expect(try read() == Session(token: session("s1"), accountName: "ada"))
        #expect(machine.session(key) == Session(token: session("s1"), accountName: "ada"))
        try apply(.createToken(session("s2")))
        try apply(.revokeToken(id: "s2"))
        #expect(machine.session(key) != nil)
        try apply(command)
        #expect(machine.session(key) == nil)
        #expect(try read() == nil)
        #expect(machine.snapshot.userCount(of: "app") == 0)
    }

    @Test("between the commit of an end and when the node knows of it, nothing is read, and nothing kept")
    func behind() throws {
        try write(.revokeToken(id: "s1"))
        #expect(try read() == nil && machine.session(key) == nil)
        machine.didCommit()
        #expect(try read() == nil && machine.session(key) == nil)
    }

    @Test("each change makes another version of the copy, also one by a replacement; what changes nothing makes none")
    func versions() throws {
        let first = machine.snapshot.version
        try apply(.createToken(session("s2")))
        let second = machine.snapshot.version
        #expect(second > first)
        machine.didCommit()
        #expect(machine.snapshot.version == second)
        try database.read { try machine.didReplace($0) }
        #expect(machine.snapshot.version > second)
    }

    @Test("what was replaced, or rolled back, is read again")
    func replaced() throws {
        try read()
        try database.write { try $0.execute(sql: "DELETE FROM token") }
        try database.read { try machine.didReplace($0) }
        #expect(machine.session(key) == nil)
        #expect(machine.snapshot.userCount(of: "app") == 0)
        try apply(.createToken(session("s1")))
        try read()
        // As the applier does it: what apply noted goes with its transaction.
        try? database.write { db in
            _ = try machine.apply(
                [DirectoryEntry(.revokeToken(id: "s1")).encoded()], at: FeatureLevel.supported.upperBound, in: db,
                while: { true })
            throw DatabaseError(resultCode: .SQLITE_FULL)
        }
        machine.didRollBack()
        machine.didCommit()
        #expect(machine.session(key) != nil)
        #expect(machine.snapshot.userCount(of: "app") == 1)
    }

    @Test("a database from before the list of tokens had an index gets it, and says the same")
    func upgrade() throws {
        func indexes() throws -> [String] { try database.read { try $0.indexes(on: "token").map(\.name) } }
        func hash() throws -> [UInt8] {
            var bytes: [UInt8] = []
            try database.read { db in try machine.hashState(in: db) { bytes += $0 } }
            return bytes
        }
        let before = (try indexes(), try hash())
        #expect(before.0.contains("token_created"))
        try database.write { try $0.execute(sql: "DROP INDEX token_created") }
        #expect(try hash() == before.1)
        for _ in 0..<2 { try database.write { try machine.upgradeTables(in: $0) } }
        #expect(try indexes().sorted() == before.0.sorted() && hash() == before.1)
    }
}
