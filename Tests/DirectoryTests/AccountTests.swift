import Directory
import RecordModel
import Testing

@Suite("Accounts in the directory")
struct AccountTests {
    private let directory: TestDirectory

    init() throws {
        directory = try TestDirectory()
        try directory.apply(.createAccount(Account(id: "a1", name: "ada", created: 1, email: "Ada@Example.com")))
        try directory.apply(.createAccount(Account(id: "a2", name: "bob", created: 2)))
    }

    @Test("an address belongs to one user, however its letters are written")
    func emails() throws {
        let same = AccountChanges(email: "ada@example.COM")
        #expect(try directory.refusal(of: .updateAccount(name: "bob", same)) == "EXISTS")
        #expect(
            try directory.refusal(
                of: .createAccount(Account(id: "a3", name: "eve", created: 3, email: "ADA@example.com")))
                == "EXISTS")
        #expect(try directory.refusal(of: .updateAccount(name: "ada", same)) == nil)
        #expect(try directory.snapshot().account(withEmail: "ADA@EXAMPLE.COM")?.id == "a1")
        #expect(try directory.snapshot().account(withEmail: "ada@example.org") == nil)
        // Given up by one, it may be taken by another.
        try directory.apply(.updateAccount(name: "ada", AccountChanges(email: "")))
        #expect(try directory.refusal(of: .updateAccount(name: "bob", same)) == nil)
        #expect(try directory.snapshot().account(withEmail: "ada@example.com")?.id == "a2")
    }

    @Test("an update changes what it names, and the empty string clears")
    func updates() throws {
        try directory.apply(
            .updateAccount(
                name: "ada", AccountChanges(givenName: "Ada", familyName: "Lovelace", isDiscoverable: true)))
        var expected = Account(
            id: "a1", name: "ada", created: 1, email: "Ada@Example.com", givenName: "Ada", familyName: "Lovelace",
            isDiscoverable: true)
        #expect(try directory.snapshot().accountsByName["ada"] == expected)
        try directory.apply(.updateAccount(name: "ada", AccountChanges(familyName: "", isDiscoverable: false)))
        expected.familyName = nil
        expected.isDiscoverable = false
        #expect(try directory.snapshot().accountsByName["ada"] == expected)
        // What changes nothing is done and says so.
        #expect(try directory.isIdle(.updateAccount(name: "ada", AccountChanges(givenName: "Ada"))))
    }

    @Test("a user record name leads back to its account, in its own container only")
    func userRecordNames() throws {
        var snapshot = try directory.snapshot()
        func found(_ id: String, named container: String, in other: String) -> String? {
            snapshot.account(
                withUserRecordName: Account.userRecordName(accountID: id, container: container), in: other)?.name
        }
        #expect(found("a1", named: "x", in: "x") == "ada")
        #expect(found("a2", named: "y", in: "y") == "bob")
        #expect(found("a1", named: "x", in: "y") == nil)
        #expect(found("a3", named: "x", in: "x") == nil)
        for name in ["", "_", "ada", "_" + String(repeating: "z", count: 32)] {
            #expect(snapshot.account(withUserRecordName: name, in: "x") == nil)
        }
        // The index that was built grows with new accounts, and forgets removed ones.
        let older = snapshot
        snapshot.take(.account(Account(id: "a3", name: "eve", created: 3)))
        #expect(found("a3", named: "x", in: "x") == "eve")
        let name = Account.userRecordName(accountID: "a3", container: "x")
        #expect(older.account(withUserRecordName: name, in: "x") == nil)
        snapshot.take(.accountRemoved(Account(id: "a1", name: "ada", created: 1, email: "Ada@Example.com")))
        #expect(found("a1", named: "x", in: "x") == nil)
        #expect(snapshot.account(withEmail: "ada@example.com") == nil)
        #expect(older.account(withEmail: "ada@example.com")?.id == "a1")
        #expect(found("a3", named: "x", in: "x") == "eve")
    }

    @Test("names are found after many accounts have come and gone")
    func compaction() {
        var snapshot = DirectorySnapshot()
        for number in 0..<1_500 {
            snapshot.take(.account(Account(id: "i\(number)", name: "n\(number)", created: 0)))
        }
        func name(_ number: Int) -> String { Account.userRecordName(accountID: "i\(number)", container: "x") }
        #expect(snapshot.account(withUserRecordName: name(7), in: "x")?.name == "n7")
        for number in 0..<1_490 {
            snapshot.take(.accountRemoved(Account(id: "i\(number)", name: "n\(number)", created: 0)))
        }
        #expect(snapshot.account(withUserRecordName: name(7), in: "x") == nil)
        #expect(snapshot.account(withUserRecordName: name(1_495), in: "x")?.name == "n1495")
        snapshot.take(.account(Account(id: "i7", name: "back", created: 0)))
        #expect(snapshot.account(withUserRecordName: name(7), in: "x")?.name == "back")
    }

    @Test("identities, addresses, names and roles are compared by the byte, in memory as on disk")
    func spellings() throws {
        let identity = ExternalIdentity(issuer: "https://id", subject: "\u{212A}arl")
        try directory.apply(.updateAccount(name: "ada", AccountChanges(email: "e\u{301}@x", identity: identity)))
        let other = ExternalIdentity(issuer: "https://id", subject: "Karl")
        #expect(try directory.snapshot().account(withIdentity: other) == nil)
        #expect(try directory.snapshot().account(withIdentity: identity)?.name == "ada")
        // Each is another one to the tables, so each is another one in memory.
        try directory.apply(.updateAccount(name: "bob", AccountChanges(email: "\u{E9}@x", identity: other)))
        let snapshot = try directory.snapshot()
        #expect(snapshot.account(withIdentity: identity)?.name == "ada")
        #expect(snapshot.account(withIdentity: other)?.name == "bob")
        #expect(snapshot.account(withEmail: "e\u{301}@x")?.name == "ada")
        #expect(snapshot.account(withEmail: "\u{E9}@x")?.name == "bob")
        // The other spelling of an address is a change.
        #expect(try directory.isIdle(.updateAccount(name: "bob", AccountChanges(email: "\u{E9}@x"))))
        try directory.apply(.updateAccount(name: "ada", AccountChanges(email: "")))
        #expect(try !directory.isIdle(.updateAccount(name: "bob", AccountChanges(email: "e\u{301}@x"))))
        // A name is found however it is composed: there is one spelling of it in the tables.
        try directory.apply(.createAccount(Account(id: "a3", name: "Zo\u{EB}", created: 3)))
        #expect(try directory.snapshot().account(named: "Zoe\u{308}")?.id == "a3")
        let decomposed = DirectoryCommand.createAccount(Account(id: "a4", name: "Zoe\u{308}", created: 4))
        #expect(try directory.refusal(of: decomposed) == "BAD_REQUEST")
    }

    @Test("a role is one of the schema's by the byte")
    func roles() throws {
        let key = SchemaKey(container: "app", environment: .development)
        try directory.apply(.createContainer(name: "app", time: 1))
        try directory.apply(.setSchema(key, expectedVersion: 1, Schema(roles: ["Keeper"])))
        func grant(_ role: String) throws -> String? {
            try directory.refusal(
                of: .addRoleMember(
                    RoleMember(container: "app", environment: .development, role: role, accountID: "a1")))
        }
        #expect(try grant("\u{212A}eeper") == "NOT_FOUND")
        #expect(try grant("Keeper") == nil)
        #expect(
            try directory.snapshot().roles(of: "a1", container: "app", environment: .development) == ["Keeper"])
    }
}
