/// Which of a container's two separate stores.
package enum Environment: String, Hashable, Sendable, CaseIterable {
    case development
    case production
}

/// Which of a container's databases.
package enum Scope: String, Hashable, Sendable, CaseIterable {
    case `public`
    case `private`
    case shared
}

/// One database: public data has the owner `_public`, private data its user's record name.
package struct DatabaseKey: Hashable, Sendable {
    @Bytewise package var container: String
    package var environment: Environment
    package var scope: Scope
    @Bytewise package var owner: String

    package init(container: String, environment: Environment, scope: Scope, owner: String) {
        self.container = container
        self.environment = environment
        self.scope = scope
        self.owner = owner
    }

    /// The owner of what no single user owns.
    package static let publicOwner = "_public"
}

/// One zone of one database: the unit that is hashed to a slot.
package struct ZoneKey: Hashable, Sendable {
    package var database: DatabaseKey
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
}

/// A zone as clients name it within a database.
package struct ZoneID: Hashable, Sendable {
    package var name: String
    /// The user record name of the owner; nil is the caller.
    package var owner: String?

    package init(name: String = ZoneKey.defaultZoneName, owner: String? = nil) {
        self.name = name
        self.owner = owner
    }
}
