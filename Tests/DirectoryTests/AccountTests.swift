import Directory
import Dispatch
import GRDB
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
        #expect(try directory.account(withEmail: "ADA@EXAMPLE.COM")?.id == "a1")
        #expect(try directory.account(withEmail: "ada@example.org") == nil)
        // Given up by one, it may be taken by another.
        try directory.apply(.updateAccount(name: "ada", AccountChanges(email: "")))
        #expect(try directory.refusal(of: .updateAccount(name: "bob", same)) == nil)
        #expect(try directory.account(withEmail: "ada@example.com")?.id == "a2")
    }

    @Test("an update changes what it names, and the empty string clears")
    func updates() throws {
        try directory.apply(
            .updateAccount(
                name: "ada", AccountChanges(givenName: "Ada", familyName: "Lovelace", isDiscoverable: true)))
        var expected = Account(
            id: "a1", name: "ada", created: 1, email: "Ada@Example.com", givenName: "Ada", familyName: "Lovelace",
            isDiscoverable: true)
        #expect(try directory.account(named: "ada") == expected)
        try directory.apply(.updateAccount(name: "ada", AccountChanges(familyName: "", isDiscoverable: false)))
        expected.familyName = nil
        expected.isDiscoverable = false
        #expect(try directory.account(named: "ada") == expected)
        // What changes nothing is done and says so.
        #expect(try directory.isIdle(.updateAccount(name: "ada", AccountChanges(givenName: "Ada"))))
    }

    /// The account that goes by the name that an id has in one container, looked for in another.
    private func found(_ id: String, named container: String, in other: String, _ names: UserNames) throws -> String? {
        let name = Account.userRecordName(accountID: id, container: container)
        return try directory.read {
            try $0.account(withUserRecordName: name, in: other, names, generation: names.generation)?.name
        }
    }

    /// Makes an account, as a node's machine learns of it.
    private func create(_ id: String, _ name: String, _ names: UserNames) throws {
        for change in try directory.apply(.createAccount(Account(id: id, name: name, created: 3))).changes {
            if case .accountAdded(let id) = change { names.didAdd(accountID: id) }
        }
    }

    @Test("a user record name leads back to its account, in its own container only")
    func userRecordNames() throws {
        let names = UserNames()
        #expect(try found("a1", named: "x", in: "x", names) == "ada")
        #expect(try found("a2", named: "y", in: "y", names) == "bob")
        #expect(try found("a1", named: "x", in: "y", names) == nil)
        #expect(try found("a3", named: "x", in: "x", names) == nil)
        for name in ["", "_", "ada", "_" + String(repeating: "z", count: 32)] {
            let found = try directory.read {
                try $0.account(withUserRecordName: name, in: "x", names, generation: names.generation)
            }
            #expect(found == nil)
        }
        // The index that was made grows with new accounts, and finds no deleted ones.
        try create("a3", "eve", names)
        #expect(try found("a3", named: "x", in: "x", names) == "eve")
        try directory.apply(.deleteAccount(name: "ada"))
        #expect(try found("a1", named: "x", in: "x", names) == nil)
        #expect(try found("a3", named: "x", in: "x", names) == "eve")
        try create("a1", "ada again", names)
        #expect(try found("a1", named: "x", in: "x", names) == "ada again")
        // As after a snapshot: accounts came and went that nobody told of.
        try directory.apply(.createAccount(Account(id: "a9", name: "zoe", created: 3)))
        #expect(try found("a9", named: "x", in: "x", names) == nil)
        names.removeAll()
        #expect(try found("a9", named: "x", in: "x", names) == "zoe")
    }

    @Test("an index from a snapshot that is older than the tables is not kept")
    func staleSnapshot() throws {
        let names = UserNames()
        let name = Account.userRecordName(accountID: "a9", container: "x")
        // A reader whose first question came before the tables were replaced, and its second one after.
        let generation = names.generation
        names.removeAll()
        let found = try directory.read {
            try $0.account(withUserRecordName: name, in: "x", names, generation: generation)
        }
        #expect(found == nil)
        // Nobody tells of it: it came with the tables.
        try directory.apply(.createAccount(Account(id: "a9", name: "zoe", created: 3)))
        #expect(try self.found("a9", named: "x", in: "x", names) == "zoe")
    }

    @Test("who finds an index does not wait while another is made", .timeLimit(.minutes(10)))
    func madeApart() throws {
        let names = UserNames()
        #expect(try found("a1", named: "x", in: "x", names) == "ada")
        let slow = try TestDirectory()
        try slow.apply(.createAccount(Account(id: "a1", name: "ada", created: 1)))
        let (begun, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let ended = DispatchSemaphore(value: 0)
        try slow.database.write { db in
            db.add(
                function: DatabaseFunction("pause", argumentCount: 0) { _ in
                    begun.signal()
                    goesOn.wait()
                    return 1
                })
            try db.execute(
                sql: """
                    ALTER TABLE account RENAME TO accounts;
                    CREATE VIEW account AS SELECT * FROM accounts WHERE pause();
                    """)
        }
        DispatchQueue.global().async {
            let name = Account.userRecordName(accountID: "a1", container: "y")
            _ = try? slow.read {
                try $0.account(withUserRecordName: name, in: "y", names, generation: names.generation)
            }
            ended.signal()
        }
        begun.wait()
        #expect(try found("a2", named: "x", in: "x", names) == "bob")
        // The look for the account itself pauses, too.
        for _ in 0..<4 { goesOn.signal() }
        ended.wait()
    }

    @Test("names of accounts are found, however many were made since the index was")
    func manyNames() throws {
        let names = UserNames()
        #expect(try found("i0", named: "x", in: "x", names) == nil)
        // The last half of these is more than what is remembered of new accounts.
        for number in 0..<20_000 { try create("i\(number)", "n\(number)", names) }
        for number in [0, 1, 7_999, 12_000, 19_999] {
            #expect(try found("i\(number)", named: "x", in: "x", names) == "n\(number)")
        }
        try create("i20000", "n20000", names)
        #expect(try found("i20000", named: "x", in: "x", names) == "n20000")
    }

    @Test("what a node keeps in memory of the directory does not grow with accounts, lock-outs and sessions")
    func memory() throws {
        try directory.apply(.createContainer(name: "app", time: 1))
        try directory.apply(.createToken(TestDirectory.apiToken(of: "app")))
        var kept = try directory.snapshot()
        for number in 0..<200 {
            let (id, name) = ("i\(number)", "n\(number)")
            let session = Token(
                sessionID: "s\(number)", container: "app", accountID: id, expires: 9, label: "", created: 1)
            for command in [
                DirectoryCommand.createAccount(Account(id: id, name: name, created: 1)),
                .noteSignInFailure(accountID: id, time: 1), .createToken(session),
            ] {
                for change in try directory.apply(command).changes { kept.take(change) }
            }
        }
        #expect(kept.userCount(of: "app") == 200)
        #expect(try kept == directory.snapshot())
        // All that there is of them is a number a container, and when the first session expires.
        var bare = try TestDirectory().snapshot()
        for change in [
            DirectoryChange.container(name: "app", created: 1, VersionedSchema(version: 1, schema: Schema.initial)),
            .token(TestDirectory.apiToken(of: "app")), .userCount(container: "app", by: 200), .firstExpiry(9),
        ] {
            bare.take(change)
        }
        #expect(kept == bare)
        #expect(try directory.accounts().count == 202)
    }

    @Test("accounts are listed by name, a page at a time")
    func pages() throws {
        for name in ["Zo\u{EB}", "Bob", "ad"] {
            try directory.apply(.createAccount(Account(id: name, name: name, created: 1)))
        }
        func page(_ after: String, _ limit: Int) throws -> [String] {
            try directory.read { try $0.accounts(after: after, limit: limit).map(\.name) }
        }
        #expect(try page("", 2) == ["Bob", "Zo\u{EB}"])
        #expect(try page("Zo\u{EB}", 2) == ["ad", "ada"])
        #expect(try page("ada", 2) == ["bob"])
        #expect(try page("bob", 2).isEmpty)
    }

    @Test("identities, addresses, names and roles are compared by the byte, in memory as on disk")
    func spellings() throws {
        let identity = ExternalIdentity(issuer: "https://id", subject: "\u{212A}arl")
        try directory.apply(.updateAccount(name: "ada", AccountChanges(email: "e\u{301}@x", identity: identity)))
        let other = ExternalIdentity(issuer: "https://id", subject: "Karl")
        #expect(try directory.account(withIdentity: other) == nil)
        #expect(try directory.account(withIdentity: identity)?.name == "ada")
        // Each is another one to the tables, so each is another one in memory.
        try directory.apply(.updateAccount(name: "bob", AccountChanges(email: "\u{E9}@x", identity: other)))
        #expect(try directory.account(withIdentity: identity)?.name == "ada")
        #expect(try directory.account(withIdentity: other)?.name == "bob")
        #expect(try directory.account(withEmail: "e\u{301}@x")?.name == "ada")
        #expect(try directory.account(withEmail: "\u{E9}@x")?.name == "bob")
        // The other spelling of an address is a change.
        #expect(try directory.isIdle(.updateAccount(name: "bob", AccountChanges(email: "\u{E9}@x"))))
        try directory.apply(.updateAccount(name: "ada", AccountChanges(email: "")))
        #expect(try !directory.isIdle(.updateAccount(name: "bob", AccountChanges(email: "e\u{301}@x"))))
        // A name is found however it is composed: there is one spelling of it in the tables.
        try directory.apply(.createAccount(Account(id: "a3", name: "Zo\u{EB}", created: 3)))
        #expect(try directory.account(named: "Zoe\u{308}")?.id == "a3")
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
