extension IndexOptions {
    /// Each option by its word, in the order in which the exporter prints them.
    package static let named: [(word: String, option: IndexOptions)] = [
        ("QUERYABLE", .queryable), ("SEARCHABLE", .searchable), ("SORTABLE", .sortable),
    ]

    /// The words of the options that are set, in the exporter's order.
    package var words: [String] { Self.named.filter { contains($0.option) }.map(\.word) }
}

extension Permissions {
    /// Each permission by its word, in the order in which the exporter prints them.
    package static let named: [(word: String, permission: Permissions)] = [
        ("READ", .read), ("CREATE", .create), ("WRITE", .write),
    ]

    /// The words of the permissions that are set, in the exporter's order.
    package var words: [String] { Self.named.filter { contains($0.permission) }.map(\.word) }
}

extension FieldType {
    /// The type as the schema language writes it, such as `LIST<ENCRYPTED STRING>`.
    package var schemaText: String {
        var text = isEncrypted ? "ENCRYPTED " + scalar.rawValue : scalar.rawValue
        if let preferred { text += " PREFERRED AS " + preferred.rawValue }
        return isList ? "LIST<" + text + ">" : text
    }
}

extension Schema {
    /// The same schema in the one form in which equal schemas are equal values: everything sorted by name, one grant
    /// a role, no grant of nothing, system fields only where they carry an index.
    package var normalized: Schema {
        Schema(roles: roles, types: types.map(\.normalized))
    }
}

extension RecordType {
    /// See `Schema.normalized`.
    package var normalized: RecordType {
        let kept = fields.filter { SystemField(rawValue: $0.name) == nil || !$0.indexes.isEmpty }
        var merged: [Grant] = []
        for grant in grants.sorted(by: { $0.role.precedes($1.role) }) where !grant.permissions.isEmpty {
            if merged.last?.role == grant.role {
                merged[merged.count - 1].permissions.formUnion(grant.permissions)
            } else {
                merged.append(grant)
            }
        }
        return RecordType(name: name, fields: kept, grants: merged)
    }

    /// What a role may do; nothing if no grant names it.
    package func permissions(of role: String) -> Permissions {
        grants.reduce(into: []) { if $1.role == role { $0.formUnion($1.permissions) } }
    }
}

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

/// Why a schema's text was refused: where, what was wrong, and what to do. The text is at fault, so a retry does not
/// help.
package struct SchemaError: Error, Hashable, Sendable, CustomStringConvertible {
    /// From 1.
    package var line: Int
    /// From 1, in Unicode scalars; a tab counts as one.
    package var column: Int
    /// What was wrong and what to do, without the place.
    package var message: String

    /// The message after its line and column.
    package var description: String { "line \(line), column \(column): \(message)" }
}

/// Writes a schema as CloudKit's exporter does: the same bytes for the same schema.
///
/// Roles, then record types, all in byte order of their names; in a type every field with all six system fields (and
/// `___parent`, which CloudKit's does not know, where it has an index), names padded to one column, then the grants by
/// role. Comments of a text that was imported are not in it.
package enum SchemaPrinter {
    /// The schema's text, with a line feed at its end. The schema is normalized first.
    package static func print(_ schema: Schema) -> String {
        let schema = schema.normalized
        var text = "DEFINE SCHEMA\n"
        if !schema.roles.isEmpty {
            text += "\n"
            for role in schema.roles { text += "    CREATE ROLE \(identifier(role));\n" }
        }
        for type in schema.types {
            text += "\n    RECORD TYPE \(identifier(type.name)) (\n"
            text += members(of: type).map { "        " + $0 }.joined(separator: ",\n")
            text += "\n    );\n"
        }
        return text
    }

    /// A name as the language writes it: in quotation marks where it is the system's, reserved, or holds a dot.
    package static func identifier(_ name: String) -> String {
        let isBare =
            SchemaRules.problem(name: name, of: .role) == nil
            && !SchemaRules.reservedWords.contains(name.lowercased())
        return isBare ? name : "\"\(name)\""
    }

    private static func members(of type: RecordType) -> [String] {
        var fields = type.fields
        for system in SystemField.allCases where system != .parent && type.field(named: system.rawValue) == nil {
            fields.append(FieldDefinition(name: system.rawValue, type: system.type))
        }
        fields.sort { $0.name.precedes($1.name) }
        let names = fields.map { identifier($0.name) }
        let width = names.map(\.utf8.count).max() ?? 0
        var members: [String] = []
        for (name, field) in zip(names, fields) {
            let padding = String(repeating: " ", count: width - name.utf8.count + 1)
            members.append(name + padding + ([field.type.schemaText] + field.indexes.words).joined(separator: " "))
        }
        for grant in type.grants {
            members.append("GRANT \(grant.permissions.words.joined(separator: ", ")) TO \(identifier(grant.role))")
        }
        return members
    }
}
