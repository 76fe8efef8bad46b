package import Wire

/// Which of a container's two separate stores.
package enum Environment: String, Hashable, Sendable, CaseIterable, WireValue {
    case development
    case production
}

/// Which of a container's databases.
package enum Scope: String, Hashable, Sendable, CaseIterable, WireValue {
    case `public`
    case `private`
    case shared
}

/// One database: public data has the owner `_public`, private data its user's record name.
package struct DatabaseKey: Hashable, Sendable, WireMessage {
    /// The container's name; `ContainerName` has the rule for it.
    @Bytewise package var container: String
    /// Which of the container's stores; they share no records.
    package var environment: Environment
    /// The kind of database; it decides what `owner` may be.
    package var scope: Scope
    /// `publicOwner` for public data, else the owner's user record name.
    @Bytewise package var owner: String

    package init(container: String, environment: Environment, scope: Scope, owner: String) {
        self.container = container
        self.environment = environment
        self.scope = scope
        self.owner = owner
    }

    /// The owner of what no single user owns.
    package static let publicOwner = "_public"

    package static var blank: Self { DatabaseKey(container: "", environment: .development, scope: .public, owner: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &container)
        try wire.required(2, &environment.code)
        try wire.required(3, &scope.code)
        try wire.required(4, &owner)
    }
}

/// One zone of one database: the unit that is hashed to a slot.
package struct ZoneKey: Hashable, Sendable, WireMessage {
    /// The database that the zone belongs to.
    package var database: DatabaseKey
    /// The zone's name, unique within its database.
    @Bytewise package var name: String

    package init(database: DatabaseKey, name: String) {
        self.database = database
        self.name = name
    }

    /// The name of the zone that every database has.
    package static let defaultZoneName = "_defaultZone"

    /// Whether this is the zone that every database has.
    package var isDefault: Bool { name == Self.defaultZoneName }

    /// Whether batches may be atomic: only in custom zones, which only private databases have.
    package var isAtomic: Bool { !isDefault && database.scope != .public }

    package static var blank: Self { ZoneKey(database: .blank, name: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
        try wire.required(2, &name)
    }
}

/// A zone as clients name it within a database.
package struct ZoneID: Hashable, Sendable, WireMessage {
    /// 1 to 255 printable ASCII characters; the default zone's name if the client states none.
    package var name: String
    /// The user record name of the owner; nil is the caller.
    package var owner: String?

    package init(name: String = ZoneKey.defaultZoneName, owner: String? = nil) {
        self.name = name
        self.owner = owner
    }

    package static var blank: Self { ZoneID(name: "", owner: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &name)
        try wire.field(2, &owner)
    }
}

extension WireReader {
    /// The current field as a case of an enumeration.
    mutating func code<Code: WireCoded>(_ field: Int) throws(WireError) -> Code {
        guard let code = Code(wireCode: try unsigned()) else { throw .unknownValue(field: field) }
        return code
    }
}

/// The value of a field that a message cannot do without.
func required<Value>(_ value: Value?, _ field: Int) throws(WireError) -> Value {
    guard let value else { throw .missingField(field) }
    return value
}
