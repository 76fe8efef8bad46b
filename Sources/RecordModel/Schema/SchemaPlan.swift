/// What has to happen to a schema so that it becomes another one.
///
/// A plan with refusals must not be performed in part: an import changes everything or nothing. Steps are in an order
/// in which each is possible when its turn comes: what others need is added first, what others used is removed last.
///
/// The type `Users` stays in every plan, whether the wanted schema mentions it or not: it is the container's own.
package struct SchemaPlan: Hashable, Sendable {
    /// What becomes of things that the wanted schema does not mention.
    package enum Mode: Hashable, Sendable {
        /// The wanted schema is the whole truth: they are removed. This is what an import does.
        case replace
        /// They stay, indexes and grants too: nothing that production can do may break by a deploy. `kept` names them.
        /// This is what a deploy to production does, and an import with `--additive`.
        case additive
        /// As `additive`, but the grants of the types that are mentioned become what the wanted schema says. This is
        /// what an import with `--revoke-grants` does.
        case additiveExceptGrants
    }

    /// The steps in the order in which they must be performed, all of them or not at all.
    package private(set) var changes: [SchemaChange] = []
    /// Why the plan cannot be performed; empty if it can.
    package private(set) var refusals: [SchemaRefusal] = []
    /// The removals that are not performed, by the mode or because the container needs what would go.
    package private(set) var kept: [SchemaChange] = []

    /// Whether the two schemas mean the same.
    package var isEmpty: Bool { changes.isEmpty && refusals.isEmpty }

    /// Compares two schemas.
    /// - Parameters:
    ///   - production: what was deployed. Its types and fields, and their types, may not go: records hold them.
    package init(
        from current: Schema, to wanted: Schema, mode: Mode = .replace, protecting production: Schema = Schema()
    ) {
        let current = current.normalized
        let wanted = wanted.normalized
        var removals: [SchemaChange] = []
        defer { refusals += Self.excess(of: changes, over: current) + excessSize(over: current) }
        for role in wanted.roles where !current.roles.contains(role) { changes.append(.addRole(role)) }
        for type in wanted.types where current.type(named: type.name) == nil { changes.append(.addType(type)) }
        for type in current.types {
            guard let next = wanted.type(named: type.name) else {
                if type.name == RecordType.usersName {
                    keepUsers(type, roles: wanted.roles, removals: &removals)
                } else {
                    removals.append(.removeType(type.name))
                }
                continue
            }
            compareFields(of: type, with: next, removals: &removals)
            compareGrants(of: type, with: next, removals: &removals)
        }
        for role in current.roles where !wanted.roles.contains(role) { removals.append(.removeRole(role)) }
        if mode != .replace {
            let isRevoked = { (removal: SchemaChange) in
                mode == .additiveExceptGrants && removal.isRevocation(in: wanted)
            }
            kept += removals.filter { !isRevoked($0) }
            changes += removals.filter(isRevoked)
            return
        }
        let deployed = Dictionary(
            production.types.map { ($0.name, $0.fieldsByName) }, uniquingKeysWith: { first, _ in first })
        for removal in removals { refuseIfDeployed(removal, deployed) }
        // Fields go before types only by their place in the list; roles must come after the grants that name them.
        changes += removals
    }

    /// `Users` stays, but for its grants to roles that go.
    private mutating func keepUsers(_ users: RecordType, roles: [String], removals: inout [SchemaChange]) {
        kept.append(.removeType(users.name))
        var next = users
        next.grants.removeAll { !SchemaRules.systemRoles.contains($0.role) && !roles.contains($0.role) }
        compareGrants(of: users, with: next, removals: &removals)
    }

    private mutating func compareFields(of type: RecordType, with next: RecordType, removals: inout [SchemaChange]) {
        let (present, coming) = (type.fieldsByName, next.fieldsByName)
        for field in next.fields where present[field.name] == nil {
            if field.isSystem {
                addIndexes(field.indexes, type: type.name, field: field.name)
            } else {
                changes.append(.addField(type: type.name, field))
            }
        }
        for field in type.fields {
            let wanted = coming[field.name]
            if wanted == nil, !field.isSystem {
                removals.append(.removeField(type: type.name, field))
                continue
            }
            // A system field that is not mentioned stays and loses its indexes.
            let indexes = wanted?.indexes ?? []
            compareTypes(field, with: wanted ?? field, in: type.name)
            addIndexes(indexes.subtracting(field.indexes), type: type.name, field: field.name)
            for named in IndexOptions.named where field.indexes.subtracting(indexes).contains(named.option) {
                removals.append(.removeIndex(type: type.name, field: field.name, named.option))
            }
        }
    }

    private mutating func addIndexes(_ indexes: IndexOptions, type: String, field: String) {
        for named in IndexOptions.named where indexes.contains(named.option) {
            changes.append(.addIndex(type: type, field: field, named.option))
        }
    }

    private mutating func compareTypes(_ field: FieldDefinition, with wanted: FieldDefinition, in type: String) {
        if field.type == wanted.type { return }
        if field.type == wanted.type.unsettled, let preferred = wanted.type.preferred {
            changes.append(.preferNumber(type: type, field: field.name, preferred))
            return
        }
        let difference = "\(field.type.schemaText) to \(wanted.type.schemaText)"
        let rule =
            if field.type.isEncrypted != wanted.type.isEncrypted {
                "whether a field is encrypted never changes"
            } else if field.type.isList != wanted.type.isList {
                "a field never becomes a list or ceases to be one"
            } else if field.type.scalar == .number, wanted.type.scalar == .number {
                "the preferred kind of a number, once stated, never changes"
            } else {
                "the type of a field never changes"
            }
        refusals.append(
            SchemaRefusal(
                subject: "\(type).\(field.name)",
                reason:
                    "\(difference) is not possible: \(rule); add a field with another name, or reset the development "
                    + "environment"))
    }

    private mutating func compareGrants(of type: RecordType, with next: RecordType, removals: inout [SchemaChange]) {
        for grant in next.grants {
            let added = grant.permissions.subtracting(type.permissions(of: grant.role))
            if added.isEmpty { continue }
            changes.append(.addGrant(type: type.name, Grant(role: grant.role, permissions: added)))
        }
        for grant in type.grants {
            let removed = grant.permissions.subtracting(next.permissions(of: grant.role))
            if removed.isEmpty { continue }
            removals.append(.removeGrant(type: type.name, Grant(role: grant.role, permissions: removed)))
        }
    }

    /// - Parameter deployed: the fields of production's types.
    private mutating func refuseIfDeployed(_ removal: SchemaChange, _ deployed: [String: [String: FieldDefinition]]) {
        switch removal {
        case .removeField(RecordType.usersName, let field) where field.name == RecordType.rolesField:
            refusals.append(
                SchemaRefusal(
                    subject: "\(RecordType.usersName).\(field.name)",
                    reason: "this field says which users have which role and cannot be removed; keep it in the schema"))
        case .removeType(let name) where deployed[name] != nil:
            refusals.append(
                SchemaRefusal(
                    subject: name,
                    reason: "this record type is in production and cannot be removed; keep it in the schema"))
        case .removeField(let type, let field) where deployed[type]?[field.name] != nil:
            refusals.append(
                SchemaRefusal(
                    subject: "\(type).\(field.name)",
                    reason: "this field is in production and cannot be removed; keep it in the schema"))
        default: break
        }
    }
}

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
