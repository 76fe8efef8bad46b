/// One step from one schema to another. Steps carry what is needed to perform them and to say them.
package enum SchemaChange: Hashable, Sendable, CustomStringConvertible {
    case addRole(String)
    /// The whole type, normalized: its fields, indexes and grants are part of this step.
    case addType(RecordType)
    /// The field with its indexes.
    case addField(type: String, FieldDefinition)
    /// One option, on a field that was there; its rows must be built before queries may use it.
    case addIndex(type: String, field: String, IndexOptions)
    /// Permissions that the role did not have.
    case addGrant(type: String, Grant)
    /// The kind of a `NUMBER` is settled.
    case preferNumber(type: String, field: String, ScalarType)
    case removeIndex(type: String, field: String, IndexOptions)
    /// Permissions that the role no longer has.
    case removeGrant(type: String, Grant)
    /// The field and its value in every record.
    case removeField(type: String, FieldDefinition)
    /// The type and every record of it.
    case removeType(String)
    case removeRole(String)

    /// Whether the step takes a permission away, on a type that a schema mentions.
    package func isRevocation(in schema: Schema) -> Bool {
        if case .removeGrant(let type, _) = self { schema.type(named: type) != nil } else { false }
    }

    /// The step's name, for programs.
    package var kind: String {
        switch self {
        case .addRole: "addRole"
        case .addType: "addType"
        case .addField: "addField"
        case .addIndex: "addIndex"
        case .addGrant: "addGrant"
        case .preferNumber: "preferNumber"
        case .removeIndex: "removeIndex"
        case .removeGrant: "removeGrant"
        case .removeField: "removeField"
        case .removeType: "removeType"
        case .removeRole: "removeRole"
        }
    }

    /// The record type that it is about; nil for a role.
    package var typeName: String? {
        switch self {
        case .addRole, .removeRole: nil
        case .addType(let type): type.name
        case .removeType(let name), .addField(let name, _), .addIndex(let name, _, _), .addGrant(let name, _),
            .preferNumber(let name, _, _), .removeIndex(let name, _, _), .removeGrant(let name, _),
            .removeField(let name, _):
            name
        }
    }

    /// The field that it is about; nil where it is about none or several.
    package var fieldName: String? {
        switch self {
        case .addField(_, let field), .removeField(_, let field): field.name
        case .addIndex(_, let field, _), .removeIndex(_, let field, _), .preferNumber(_, let field, _): field
        default: nil
        }
    }

    /// The role that it is about; nil where it is about none or several.
    package var role: String? {
        switch self {
        case .addRole(let name), .removeRole(let name): name
        case .addGrant(_, let grant), .removeGrant(_, let grant): grant.role
        default: nil
        }
    }

    /// Whether the step destroys what records hold.
    package var losesData: Bool {
        switch self {
        case .removeField, .removeType: true
        default: false
        }
    }

    /// What the step does beyond the schema, in words for the user who confirms it; nil where there is nothing.
    package var consequence: String? {
        switch self {
        case .addIndex: "it is built in the background; queries use it once it is ready"
        case .removeIndex: "queries that need it are refused from then on; no record changes, and it can be added again"
        case .removeGrant: "whoever has no other grant loses the permission at once"
        case .removeField: "the values are gone for good"
        case .removeType: "the records are gone for good; clients see them as deleted"
        case .preferNumber(_, _, let scalar):
            "for good; numbers that are no \(scalar.rawValue) exactly are not shown any more, and records lose them "
                + "when they are changed"
        case .addRole, .addType, .addField, .addGrant, .removeRole: nil
        }
    }

    /// The step in words, as a plan prints it.
    package var description: String {
        switch self {
        case .addRole(let name): "add role \(name)"
        case .addType(let type): "add record type \(type.name)\(Self.contents(of: type))"
        case .addField(let type, let field):
            "add field \(type).\(field.name) " + ([field.type.schemaText] + field.indexes.words).joined(separator: " ")
        case .addIndex(let type, let field, let index):
            "add index \(index.words.joined(separator: " ")) on \(type).\(field)"
        case .addGrant(let type, let grant):
            "grant \(grant.permissions.words.joined(separator: ", ")) on \(type) to \(grant.role)"
        case .preferNumber(let type, let field, let scalar): "prefer \(scalar.rawValue) for \(type).\(field)"
        case .removeIndex(let type, let field, let index):
            "remove index \(index.words.joined(separator: " ")) from \(type).\(field)"
        case .removeGrant(let type, let grant):
            "revoke \(grant.permissions.words.joined(separator: ", ")) on \(type) from \(grant.role)"
        case .removeField(let type, let field): "remove field \(type).\(field.name) and its value in every record"
        case .removeType(let name): "remove record type \(name) and all records of it"
        case .removeRole(let name): "remove role \(name)"
        }
    }

    private static func contents(of type: RecordType) -> String {
        let fields = type.fields.filter { !$0.isSystem }.map(\.name)
        if fields.isEmpty { return " without fields" }
        return " with " + (fields.count == 1 ? "field " : "fields ") + fields.joined(separator: ", ")
    }
}

/// A difference between two schemas that no step bridges, and why.
package struct SchemaRefusal: Hashable, Sendable, CustomStringConvertible {
    /// `Type` or `Type.field`, or `schema` for the whole.
    package var subject: String
    /// What is wrong and what to do.
    package var reason: String

    /// What the refusal is about, then the reason.
    package var description: String { "\(subject): \(reason)" }
}
