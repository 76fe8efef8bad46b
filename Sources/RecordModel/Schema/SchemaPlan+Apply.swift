extension SchemaPlan {
    /// The schema after every step, normalized; nil if the plan has refusals, or if a step does not fit this schema,
    /// which is then not the one that the plan was made from.
    package func applied(to schema: Schema) -> Schema? {
        guard refusals.isEmpty else { return nil }
        var schema = schema.normalized
        for change in changes {
            guard Self.apply(change, to: &schema) else { return nil }
        }
        return schema.normalized
    }

    private static func apply(_ change: SchemaChange, to schema: inout Schema) -> Bool {
        switch change {
        case .addRole(let name):
            guard !schema.roles.contains(name) else { return false }
            schema.roles.append(name)
            return true
        case .removeRole(let name):
            guard let position = schema.roles.firstIndex(of: name) else { return false }
            schema.roles.remove(at: position)
            return true
        case .addType(let type):
            guard schema.type(named: type.name) == nil else { return false }
            schema.types.append(type)
            return true
        case .removeType(let name):
            guard let position = schema.types.firstIndex(where: { $0.name == name }) else { return false }
            schema.types.remove(at: position)
            return true
        case .addField(let type, _), .addIndex(let type, _, _), .addGrant(let type, _), .preferNumber(let type, _, _),
            .removeIndex(let type, _, _), .removeGrant(let type, _), .removeField(let type, _):
            guard let position = schema.types.firstIndex(where: { $0.name == type }) else { return false }
            return apply(change, to: &schema.types[position])
        }
    }

    private static func apply(_ change: SchemaChange, to type: inout RecordType) -> Bool {
        switch change {
        case .addField(_, let field):
            guard type.field(named: field.name) == nil else { return false }
            type.fields.append(field)
            return true
        case .removeField(_, let field):
            guard let position = type.fields.firstIndex(where: { $0.name == field.name }) else { return false }
            type.fields.remove(at: position)
            return true
        case .addIndex(_, let field, let index):
            if let system = SystemField(rawValue: field), type.field(named: field) == nil {
                type.fields.append(FieldDefinition(name: field, type: system.type))
            }
            return update(field, of: &type) { $0.indexes.formUnion(index) }
        case .removeIndex(_, let field, let index):
            return update(field, of: &type) { $0.indexes.subtract(index) }
        case .preferNumber(_, let field, let scalar):
            return update(field, of: &type) { $0.type.preferred = scalar }
        case .addGrant(_, let grant):
            type.grants.append(grant)
            return true
        case .removeGrant(_, let grant):
            for position in type.grants.indices where type.grants[position].role == grant.role {
                type.grants[position].permissions.subtract(grant.permissions)
            }
            return true
        case .addRole, .removeRole, .addType, .removeType:
            return false
        }
    }

    private static func update(_ name: String, of type: inout RecordType, _ body: (inout FieldDefinition) -> Void)
        -> Bool
    {
        guard let position = type.fields.firstIndex(where: { $0.name == name }) else { return false }
        body(&type.fields[position])
        return true
    }
}

extension SchemaPlan {
    /// What the schema would have once the plan was performed; the text of a schema is held to the same limits, but an
    /// additive plan joins two.
    static func excess(of changes: [SchemaChange], over current: Schema) -> [SchemaRefusal] {
        var types = current.types.count
        var fields: [String: Int] = [:]
        for type in current.types { fields[type.name] = type.fields.count(where: { !$0.isSystem }) }
        var order: [String] = []
        for change in changes {
            switch change {
            case .addType: types += 1
            case .removeType: types -= 1
            case .addField(let type, _):
                order.append(type)
                fields[type, default: 0] += 1
            case .removeField(let type, _): fields[type, default: 0] -= 1
            default: break
            }
        }
        var refusals: [SchemaRefusal] = []
        if types > Limits.typesMax {
            refusals.append(
                SchemaRefusal(
                    subject: "schema", reason: "it would have \(types) record types, at most \(Limits.typesMax)"))
        }
        var seen: Set<String> = []
        for type in order where seen.insert(type).inserted {
            guard let count = fields[type], count > Limits.fieldsMax else { continue }
            refusals.append(
                SchemaRefusal(subject: type, reason: "it would have \(count) fields, at most \(Limits.fieldsMax)"))
        }
        return refusals
    }

    /// The same for the size of the whole.
    func excessSize(over current: Schema) -> [SchemaRefusal] {
        guard let result = applied(to: current), let problem = SchemaRules.problem(sizeOf: result) else { return [] }
        return [SchemaRefusal(subject: "schema", reason: problem)]
    }
}
