package import RecordModel
package import Wire

/// Who asks: a signed-in user or nobody, and the roles that the admission found for them.
///
/// Made once at the edge and carried by commands, so that every replica judges the same caller.
package struct Caller: Hashable, Sendable, WireCodable {
    /// The user record name; nil is an anonymous caller.
    package let user: String?
    /// Sorted by name, no role twice: `_world` always, `_icloud` when there is a user, then the custom ones.
    /// Never `_creator`, which depends on the record.
    package let roles: [String]
    /// Whether the administrator asks, who may do anything with public data and nothing with anybody's private data.
    package let isAdministrator: Bool

    /// - Parameter customRoles: roles that an administrator gave the user; built-in names among them are ignored.
    package init(user: String?, customRoles: [String] = []) {
        self.init(user: user, customRoles: customRoles, isAdministrator: false)
    }

    /// The administrator; the stamps of records name `administratorName`.
    package static let administrator = Caller(user: administratorName, customRoles: [], isAdministrator: true)

    private init(user: String?, customRoles: [String], isAdministrator: Bool) {
        self.user = user
        self.isAdministrator = isAdministrator
        var names = customRoles.filter { BuiltInRole(rawValue: $0) == nil }
        names.append(BuiltInRole.world.rawValue)
        if user != nil { names.append(BuiltInRole.signedIn.rawValue) }
        // Two are never the same.
        roles = names.count > 2 ? Set(names).sorted() : names.sorted()
    }

    /// What the stamp of a record says where an anonymous caller wrote it.
    package static let anonymousName = "_anonymous"
    /// What it says where the administrator did.
    package static let administratorName = "_administrator"

    /// The caller as the stamps of records name it.
    package var stampName: String { user ?? Self.anonymousName }

    package func encode(to writer: inout WireWriter) {
        if let user { writer.field(1, user) }
        for role in roles where BuiltInRole(rawValue: role) == nil { writer.field(2, role) }
        if isAdministrator { writer.field(3, true) }
    }

    /// Built-in roles are derived again, never believed.
    package init(from reader: inout WireReader) throws(WireError) {
        var user: String?
        var customRoles: [String] = []
        var isAdministrator = false
        while let field = try reader.nextField() {
            switch field {
            case 1: user = try reader.string()
            case 2: customRoles.append(try reader.string())
            case 3: isAdministrator = try reader.bool()
            default: try reader.skip()
            }
        }
        self.init(user: user, customRoles: customRoles, isAdministrator: isAdministrator)
    }
}

/// The roles that every container has.
package enum BuiltInRole: String, CaseIterable, Sendable {
    case world = "_world"
    case signedIn = "_icloud"
    case creator = "_creator"
}

extension Permissions {
    /// Create, read and write together.
    package static let all: Permissions = [.create, .read, .write]

    /// What a caller may do with records of one type in one database.
    ///
    /// Public data: the union of the grants of the caller's roles, with `_creator`'s where the caller made the record.
    /// Private data: everything for its owner, nothing for anybody else. Shared databases hold no records of their own.
    /// Nothing is open by default: a type without grants is closed to everybody.
    /// - Parameter isCreator: whether the caller made the record in question; never true for an anonymous caller.
    package init(of caller: Caller, in type: RecordType, of database: DatabaseKey, isCreator: Bool) {
        switch database.scope {
        case .private:
            self = caller.isOwner(of: database) ? .all : []
        case .shared:
            self = []
        case .public where caller.isAdministrator:
            self = .all
        case .public:
            self = caller.grants(in: type, isCreator: isCreator).reduce(into: []) { $0.formUnion($1.permissions) }
        }
    }
}

extension Caller {
    /// What a type grants to the caller's roles in public data, with `_creator`'s where the caller made the record.
    package func grants(in type: RecordType, isCreator: Bool) -> [Grant] {
        type.grants.filter { grant in
            grant.role == BuiltInRole.creator.rawValue ? isCreator && user != nil : roles.contains(grant.role)
        }
    }

    /// Whether this is the user whose private database it is.
    package func isOwner(of database: DatabaseKey) -> Bool {
        database.scope == .private && !isAdministrator && user != nil && user == database.owner
    }
}
