import Authorization
import RecordModel
import Testing
import Wire

@Suite("Permissions")
struct PermissionsTests {
    let publicData = DatabaseKey(
        container: "c", environment: .production, scope: .public, owner: DatabaseKey.publicOwner)
    let annsData = DatabaseKey(container: "c", environment: .production, scope: .private, owner: "_ann")
    let note = RecordType(
        name: "Note",
        grants: [
            Grant(role: "_world", permissions: .read), Grant(role: "_icloud", permissions: .create),
            Grant(role: "_creator", permissions: .write), Grant(role: "editor", permissions: [.write, .read]),
        ])

    func permissions(_ caller: Caller, _ database: DatabaseKey, isCreator: Bool = false) -> Permissions {
        Permissions(of: caller, in: note, of: database, isCreator: isCreator)
    }

    @Test("public grants add up over the caller's roles")
    func union() {
        #expect(permissions(Caller(user: nil), publicData) == .read)
        #expect(permissions(Caller(user: "_ann"), publicData) == [.read, .create])
        #expect(permissions(Caller(user: "_ann", customRoles: ["editor"]), publicData) == .all)
    }

    @Test("the creator's grant counts for a signed-in creator only")
    func creator() {
        #expect(permissions(Caller(user: "_ann"), publicData, isCreator: true) == .all)
        #expect(permissions(Caller(user: nil), publicData, isCreator: true) == .read)
    }

    @Test("grants are those of the caller's roles, the creator's for a signed-in creator")
    func grants() {
        func roles(_ caller: Caller, isCreator: Bool = true) -> [String] {
            caller.grants(in: note, isCreator: isCreator).map(\.role)
        }
        #expect(roles(Caller(user: nil)) == ["_world"])
        #expect(roles(Caller(user: "_ann")) == ["_world", "_icloud", "_creator"])
        let editor = Caller(user: "_ann", customRoles: ["editor"])
        #expect(roles(editor, isCreator: false) == ["_world", "_icloud", "editor"])
    }

    @Test("built-in roles cannot be claimed")
    func claimed() {
        let caller = Caller(user: nil, customRoles: ["_icloud", "_creator", "editor"])
        #expect(caller.roles == ["_world", "editor"])
        #expect(permissions(caller, publicData) == [.read, .write])
    }

    @Test("private data is its owner's, whatever the grants say")
    func privateData() {
        #expect(permissions(Caller(user: "_ann"), annsData) == .all)
        #expect(permissions(Caller(user: "_bob", customRoles: ["editor"]), annsData, isCreator: true) == [])
        #expect(permissions(Caller(user: nil), annsData) == [])
    }

    @Test("a type without grants is closed in public, and shared databases are closed")
    func closed() {
        let bare = RecordType(name: "Bare")
        #expect(Permissions(of: Caller(user: "_ann"), in: bare, of: publicData, isCreator: true) == [])
        let shared = DatabaseKey(container: "c", environment: .production, scope: .shared, owner: "_ann")
        #expect(permissions(Caller(user: "_ann"), shared, isCreator: true) == [])
    }

    @Test("a caller survives its binary form")
    func binary() throws {
        for caller in [Caller(user: nil), Caller(user: "_ann"), Caller(user: "_ann", customRoles: ["b", "a", "b"])] {
            #expect(try Caller(decoding: caller.encoded()) == caller)
        }
    }
}
