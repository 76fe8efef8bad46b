extension Schema {
    /// What every new container's schema has: the users' own records.
    package static let initial = Schema(types: [.users])
}

extension RecordType {
    /// The type of users' own records. They are in the public database under the user's record name, everybody reads
    /// them and their user writes them.
    package static let usersName = "Users"

    /// The field of `Users` that holds the custom roles of a user; clients cannot write it.
    package static let rolesField = "roles"

    /// `Users` as a new container has it, and as CloudKit's exporter prints it.
    package static let users = RecordType(
        name: usersName,
        fields: [FieldDefinition(name: rolesField, type: FieldType(.int64, isList: true))],
        grants: [Grant(role: "_creator", permissions: .write), Grant(role: "_world", permissions: .read)])

    /// The grants that a type made by the first save of a record has: everybody reads, users create, creators write.
    package static let defaultGrants = [
        Grant(role: "_creator", permissions: .write), Grant(role: "_icloud", permissions: .create),
        Grant(role: "_world", permissions: .read),
    ]
}
