package import RecordModel

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
