import Authorization
import RecordModel
import RecordStore
import Testing

@Suite("the record type Users, and names that begin with an underscore")
struct UsersTests {
    let shard: Fixture
    let zone = Fixture.publicZone
    init() throws {
        shard = try Fixture(installs: false)
        try shard.apply(Fixture.install(1, Fixture.schemaWithUsers))
    }

    func user(_ kind: RecordChange.Kind, _ name: String, _ fields: [(String, FieldValue?)] = []) -> RecordChange {
        RecordChange(kind, name, type: "Users", fields: fields.map { .init(name: $0.0, value: $0.1) })
    }

    @Test("a user makes the record of that user, without a grant, and nobody else does")
    func creation() throws {
        #expect(try shard.one(zone, by: Fixture.bob, user(.create, "_ann"))?.error?.code == .accessDenied)
        #expect(try shard.one(zone, by: Caller(user: nil), user(.create, "_ann"))?.error?.code == .accessDenied)
        #expect(try shard.one(zone, user(.create, "ann"))?.error?.code == .accessDenied)
        #expect(try shard.one(Fixture.annsDefault, user(.create, "_ann"))?.error?.code == .badRequest)
        #expect(try shard.one(zone, user(.forceUpdate, "_ann", [("nick", .string("A"))]))?.saved != nil)
        #expect(try shard.lookup("_ann", in: zone, by: Fixture.bob)?.fields["nick"] == .string("A"))
        #expect(try shard.one(zone, by: Fixture.bob, user(.forceUpdate, "_ann"))?.error?.code == .accessDenied)
    }

    @Test("nobody deletes it, and clients do not change its roles")
    func fixed() throws {
        _ = try shard.one(zone, user(.create, "_ann", [("nick", .string("A"))]))
        #expect(try shard.one(zone, user(.forceDelete, "_ann"))?.error?.code == .accessDenied)
        let roles = FieldValue.list(.int64, [.int64(1)])
        #expect(try shard.one(zone, user(.forceUpdate, "_ann", [("roles", roles)]))?.error?.code == .accessDenied)
        #expect(try shard.one(zone, user(.forceReplace, "_ann", [("roles", nil)]))?.saved != nil)
        #expect(try shard.lookup("_ann", in: zone)?.fields.all.isEmpty == true)
    }

    @Test("grants to others count for nothing: the user writes it, and the administrator")
    func grants() throws {
        let shard = try Fixture(installs: false)
        var schema = Fixture.schemaWithUsers
        let place = try #require(schema.types.firstIndex { $0.name == "Users" })
        schema.types[place].grants = [Grant(role: "_world", permissions: [.create, .read, .write])]
        try shard.apply(Fixture.install(1, schema))
        let saved = try #require(try shard.one(zone, user(.create, "_ann"))?.saved)
        for caller in [Fixture.bob, Caller(user: nil)] {
            for kind in [RecordChange.Kind.update, .forceUpdate, .replace, .forceReplace, .forceDelete] {
                var change = user(kind, "_ann", kind == .forceDelete ? [] : [("nick", .string("B"))])
                change.changeTag = saved.changeTag
                #expect(try shard.one(zone, by: caller, change)?.error?.code == .accessDenied, "\(kind)")
            }
        }
        #expect(try shard.one(zone, user(.forceUpdate, "_ann", [("nick", .string("A"))]))?.saved != nil)
        let byAdministrator = user(.forceUpdate, "_ann", [("nick", .string("C"))])
        #expect(try shard.one(zone, by: .administrator, byAdministrator)?.saved != nil)
    }

    @Test("names that begin with an underscore are for Users only")
    func names() throws {
        #expect(try shard.one(zone, .make(.create, "_a"))?.error?.code == .badRequest)
        #expect(try shard.one(Fixture.annsDefault, .make(.forceUpdate, "_a"))?.error?.code == .badRequest)
        #expect(try shard.one(zone, .make(.forceDelete, "_a")) == .deleted)
    }
}
