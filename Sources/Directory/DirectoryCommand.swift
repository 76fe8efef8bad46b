package import RecordModel
package import Wire

/// What one entry of the directory's log asks for.
package enum DirectoryCommand: Hashable, Sendable {
    /// The first command of a cluster; later ones are refused unless their epoch is greater.
    case installMap(ClusterMap)
    /// Both environments begin with `Schema.initial`, as version 1.
    case createContainer(name: String, time: Int64)
    /// Replaces a schema, provided that its version is still `expectedVersion`.
    case setSchema(SchemaKey, expectedVersion: UInt64, Schema)
    /// Makes development's schema production's, in a new generation: every development record of the container goes. Provided
    /// that the version of development's schema is still `expectedVersion`.
    case resetDevelopment(container: String, expectedVersion: UInt64)
    /// Adds a data key, provided that its number follows the last one's; from then on values are sealed with it.
    case addContainerKey(container: String, ContainerKey)
    case createAccount(Account)
    case updateAccount(name: String, AccountChanges)
    /// Removes the account and its sessions; its records stay.
    case deleteAccount(name: String)
    case createToken(Token)
    case revokeToken(id: String)
}

/// What became of a command.
package enum DirectoryOutcome: Hashable, Sendable {
    /// Done. `version` is the new version of a schema, 0 otherwise.
    case done(version: UInt64)
    case refused(ServiceError)
}

extension DirectoryCommand: WireCodable {
    /// One field: 1 map, 2 container, 3 schema, 4 account, 5 account's name, 6 token, 7 token's id, 8 changed account, 9 reset,
    /// 10 container key.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .installMap(let map): writer.field(1) { map.encode(to: &$0) }
        case .createContainer(let name, let time):
            writer.field(2) { container in
                container.field(1, name)
                container.field(2, signed: time)
            }
        case .setSchema(let key, let expectedVersion, let schema):
            writer.field(3) { change in
                change.field(1, key.container)
                change.field(2, key.environment.rawValue)
                change.field(3, expectedVersion)
                change.field(4) { schema.encode(to: &$0) }
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
            default: try reader.skip()
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
        while let field = try nested.nextField() {
            switch field {
            case 1: container = try nested.string()
            case 2: environment = Environment(rawValue: try nested.string())
            case 3: expectedVersion = try nested.unsigned()
            case 4: schema = try nested.message()
            default: try nested.skip()
            }
        }
        guard let environment else { throw .invalidValue(field: 2) }
        return .setSchema(
            SchemaKey(container: container, environment: environment), expectedVersion: expectedVersion, schema)
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

extension DirectoryOutcome: WireCodable {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .done(let version): writer.field(1, version)
        case .refused(let error): writer.field(2) { error.encode(to: &$0) }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var outcome: DirectoryOutcome?
        while let field = try reader.nextField() {
            switch field {
            case 1: outcome = .done(version: try reader.unsigned())
            case 2: outcome = .refused(try reader.message())
            default: try reader.skip()
            }
        }
        guard let outcome else { throw .missingField(1) }
        self = outcome
    }
}
