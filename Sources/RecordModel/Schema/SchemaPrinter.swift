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
