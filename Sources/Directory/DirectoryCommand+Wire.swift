import RecordModel
package import Wire

extension DirectoryCommand: WireCodable {
    /// One field: 1 map, 2 container, 3 schema, 4 account, 5 account's name, 6 token, 7 token's id, 8 changed account,
    /// 9 reset, 10 container key, 11 password, 12 session, 13 failure, 14 server key, 15 server key's id, 16 role's new
    /// member, 17 role's former member, 18 limits, 19 provider, 20 provider's name, 21 sign-up, 22 purge, 23 change of
    /// the map, 24 secret.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .installMap(let map): writer.field(1) { map.encode(to: &$0) }
        case .createContainer(let name, let time):
            writer.field(2) { container in
                container.field(1, name)
                container.field(2, signed: time)
            }
        case .setSchema(let key, let expectedVersion, let schema, let growth):
            writer.field(3) { change in
                change.field(1, key.container)
                change.field(2, key.environment.rawValue)
                change.field(3, expectedVersion)
                change.field(4) { schema.encode(to: &$0) }
                if let growth { change.field(5, growth) }
            }
        case .createAccount(let account): writer.field(4) { account.encode(to: &$0) }
        case .deleteAccount(let name): writer.field(5, name)
        case .createToken(let token): writer.field(6) { token.encode(to: &$0) }
        case .revokeToken(let id): writer.field(7, id)
        case .updateAccount(let name, let changes):
            writer.field(8) { change in
                change.field(1, name)
                change.field(2) { changes.encode(to: &$0) }
            }
        case .resetDevelopment(let container, let expectedVersion):
            writer.field(9) { reset in
                reset.field(1, container)
                reset.field(2, expectedVersion)
            }
        case .addContainerKey(let container, let key):
            writer.field(10) { addition in
                addition.field(1, container)
                addition.field(2) { key.encode(to: &$0) }
            }
        case .changeMap(let change): writer.field(23) { change.encode(to: &$0) }
        case .setPassword, .beginSession, .noteSignInFailure, .createServerKey, .revokeServerKey, .addRoleMember,
            .removeRoleMember, .setLimits, .setIdentityProvider, .removeIdentityProvider, .setSignUp, .purge,
            .makeSecret:
            encodeAccess(to: &writer)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var command: DirectoryCommand?
        while let field = try reader.nextField() {
            switch field {
            case 1: command = .installMap(try reader.message())
            case 2: command = try Self.createContainer(&reader)
            case 3: command = try Self.setSchema(&reader)
            case 4: command = .createAccount(try reader.message())
            case 5: command = .deleteAccount(name: try reader.string())
            case 6: command = .createToken(try reader.message())
            case 7: command = .revokeToken(id: try reader.string())
            case 8: command = try Self.updateAccount(&reader)
            case 9: command = try Self.resetDevelopment(&reader)
            case 10: command = try Self.addContainerKey(&reader)
            case 23: command = .changeMap(try reader.message())
            default: command = try Self.access(field, &reader) ?? command
            }
        }
        guard let command else { throw .missingField(1) }
        self = command
    }

    private static func createContainer(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var name = ""
        var time: Int64 = 0
        while let field = try nested.nextField() {
            switch field {
            case 1: name = try nested.string()
            case 2: time = try nested.signed()
            default: try nested.skip()
            }
        }
        return .createContainer(name: name, time: time)
    }

    private static func setSchema(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var container = ""
        var environment: Environment?
        var expectedVersion: UInt64 = 0
        var schema = Schema()
        var growth: String?
        while let field = try nested.nextField() {
            switch field {
            case 1: container = try nested.string()
            case 2: environment = try nested.choice()
            case 3: expectedVersion = try nested.unsigned()
            case 4: schema = try nested.message()
            case 5: growth = try nested.string()
            default: try nested.skip()
            }
        }
        guard let environment else { throw .missingField(2) }
        return .setSchema(
            SchemaKey(container: container, environment: environment), expectedVersion: expectedVersion, schema,
            growth: growth)
    }

    private static func updateAccount(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var name = ""
        var changes = AccountChanges()
        while let field = try nested.nextField() {
            switch field {
            case 1: name = try nested.string()
            case 2: changes = try nested.message()
            default: try nested.skip()
            }
        }
        return .updateAccount(name: name, changes)
    }

    private static func resetDevelopment(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var container = ""
        var expectedVersion: UInt64 = 0
        while let field = try nested.nextField() {
            switch field {
            case 1: container = try nested.string()
            case 2: expectedVersion = try nested.unsigned()
            default: try nested.skip()
            }
        }
        return .resetDevelopment(container: container, expectedVersion: expectedVersion)
    }

    private static func addContainerKey(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var container = ""
        var key: ContainerKey?
        while let field = try nested.nextField() {
            switch field {
            case 1: container = try nested.string()
            case 2: key = try nested.message()
            default: try nested.skip()
            }
        }
        guard let key else { throw .missingField(2) }
        return .addContainerKey(container: container, key)
    }
}
