/// The record types and fields that a development environment makes of the first saves that name them.
///
/// A type made so has the grants that CloudKit gives and can be queried; each field has the type that its first value
/// states or shows, and every index that goes with it, but for SEARCHABLE. Types that came by an import get new fields
/// in the same way and keep what they state otherwise. Production schemas are never extended.
package enum SchemaExtension {
    /// The schema with what the operations need; nil if they need nothing that it lacks.
    ///
    /// An operation whose values cannot be understood, or that would exceed a limit of schemas, adds nothing; it fails
    /// on its own later (`RecordOperation.values(in:at:)`). The schema is gone through once; each operation costs what
    /// its own type has.
    /// - Parameter scope: the database of the operations; a public one has no encrypted fields.
    package static func extended(
        _ schema: Schema, by operations: [RecordOperation], scope: Scope = .private
    ) -> Schema? {
        guard isNeeded(by: operations, in: schema) else { return nil }
        var types = Dictionary(schema.types.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var (size, isExtended) = (schema.encodedSize, false)
        // A field that one operation adds may be what another, before it, could not be understood without: so twice,
        // and no more, since what a request may cost is bounded.
        for _ in 0..<2 {
            for operation in operations {
                guard let name = operation.recordType else { continue }
                let old = types[name]
                guard lacks(operation, in: old),
                    let next = try? extended(old, by: operation, Room(types: types.count, bytes: size), scope)
                else { continue }
                size += next.sizeInSchema - (old?.sizeInSchema ?? 0)
                types[name] = next
                isExtended = true
            }
        }
        return isExtended ? Schema(roles: schema.roles, types: Array(types.values)) : nil
    }

    /// Whether an operation needs a type or a field that is not there.
    package static func isNeeded(by operations: [RecordOperation], in schema: Schema) -> Bool {
        operations.contains { operation in
            lacks(operation, in: operation.recordType.flatMap { schema.type(named: $0) })
        }
    }

    /// What one schema has and an earlier one lacks, in words for the audit log: `Note, Item.title`.
    package static func additions(to schema: Schema, in extended: Schema) -> String {
        let known = Dictionary(schema.types.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var additions: [String] = []
        for type in extended.types {
            guard let old = known[type.name] else {
                additions.append(type.name)
                continue
            }
            if old.fields.count == type.fields.count { continue }
            let names = Set(old.fields.map(\.name))
            for field in type.fields where !names.contains(field.name) {
                additions.append("\(type.name).\(field.name)")
            }
        }
        return additions.joined(separator: ", ")
    }

    /// What a schema has, as far as that limits what is added.
    private struct Room {
        var types: Int
        var bytes: Int
    }

    /// - Parameter type: the operation's; nil where the schema has none of the name.
    private static func lacks(_ operation: RecordOperation, in type: RecordType?) -> Bool {
        guard !operation.kind.isDelete, operation.recordType != nil else { return false }
        guard let type else { return operation.kind.mayCreate }
        let table = FieldTable(type, asking: operation.fields.count)
        return operation.fields.contains { isNew($0, in: table) }
    }

    /// Clearing a field that is not there needs nothing.
    private static func isNew(_ field: FieldChange, in type: FieldTable) -> Bool {
        field.value != nil && SystemField(rawValue: field.name) == nil && type[field.name] == nil
    }

    /// The operation's type with what it needs.
    /// - Parameter old: the type as it is; nil where the schema has none of the name.
    private static func extended(
        _ old: RecordType?, by operation: RecordOperation, _ room: Room, _ scope: Scope
    ) throws(ServiceError) -> RecordType {
        let name = old?.name ?? operation.recordType ?? ""
        let type = if let old { old } else { try newType(name, room) }
        let table = FieldTable(type, asking: operation.fields.count)
        var fields = type.fields
        for field in operation.fields {
            let definition = table[field.name] ?? SystemField.definition(field.name)
            let value = try field.value.map { input throws(ServiceError) in
                try input.resolve(field: field.name, definition: definition, assets: .typesOnly)
            }
            if isNew(field, in: table), let value = value ?? nil {
                if scope == .public, value.type.isEncrypted { throw noEncryption(field.name) }
                fields.append(try newField(field.name, value.type, in: type))
            }
        }
        let count = fields.count(where: { !$0.isSystem })
        guard count <= Limits.fieldsMax else {
            throw ServiceError(
                .badRequest,
                "Cannot create new fields in record type \(name): it would have \(count) fields, at most "
                    + "\(Limits.fieldsMax)")
        }
        let result = RecordType(name: name, fields: fields, grants: type.grants)
        let size = room.bytes + result.sizeInSchema - (old?.sizeInSchema ?? 0)
        if let problem = SchemaRules.problem(size: size) {
            throw ServiceError(.badRequest, "Cannot add to record type \(name) in development schema: \(problem)")
        }
        return result
    }

    private static func newType(_ name: String, _ room: Room) throws(ServiceError) -> RecordType {
        if let problem = SchemaRules.problem(name: name, of: .recordType) {
            throw ServiceError(.badRequest, "recordType: \(problem)")
        }
        guard room.types < Limits.typesMax else {
            throw ServiceError(
                .badRequest,
                "Cannot create new type \(name) in development schema: it has \(room.types) record types, "
                    + "at most \(Limits.typesMax)")
        }
        if name == RecordType.usersName { return .users }
        let recordID = SystemField.recordID
        return RecordType(
            name: name,
            fields: [FieldDefinition(name: recordID.rawValue, type: recordID.type, indexes: [.queryable, .sortable])],
            grants: RecordType.defaultGrants)
    }

    private static func newField(
        _ name: String, _ type: FieldType, in record: RecordType
    ) throws(ServiceError) -> FieldDefinition {
        var field = FieldDefinition(name: name, type: type)
        // Users cannot be queried, so their fields need no index.
        for index in [IndexOptions.queryable, .sortable]
        where record.name != RecordType.usersName && SchemaRules.problem(indexes: index, on: type) == nil {
            field.indexes.insert(index)
        }
        if let problem = SchemaRules.problem(field: field) {
            throw ServiceError(.badRequest, "fields.\(name): \(problem)")
        }
        return field
    }

    static func noEncryption(_ field: String) -> ServiceError {
        ServiceError(
            .badRequest,
            "fields.\(field): encrypted fields are for private databases; in the public one everybody may read")
    }

    /// Why an operation cannot be done under a schema that lacks its type or one of its fields; nil if nothing is
    /// missing.
    /// - Returns: `BAD_REQUEST` with CloudKit's words in production, and in development where saves do not extend the
    ///   schema, the operation itself is at fault, or a limit is reached; `TRY_AGAIN_LATER` in development where the
    ///   schema can be extended by it.
    package static func refusal(
        of operation: RecordOperation, in schema: Schema, at place: RecordOperation.Place
    ) -> ServiceError? {
        guard let name = operation.recordType, !operation.kind.isDelete else { return nil }
        let type = schema.type(named: name)
        if type == nil, !operation.kind.mayCreate {
            return ServiceError(
                .badRequest, "record type not found: \(name) is not in the schema, so there is no such record",
                detail: .unknownRecordType)
        }
        guard lacks(operation, in: type) else { return nil }
        guard place.schemaGrows else { return closed(operation, name, type, place) }
        let room = Room(types: schema.types.count, bytes: place.schemaBytes ?? schema.encodedSize)
        do throws(ServiceError) {
            _ = try extended(type, by: operation, room, place.scope)
        } catch {
            return error
        }
        return ServiceError(
            .tryAgainLater, "the schema is being extended by record type \(name) or its new fields",
            retryAfterSeconds: 1)
    }

    private static func closed(
        _ operation: RecordOperation, _ name: String, _ type: RecordType?, _ place: RecordOperation.Place
    ) -> ServiceError {
        let environment = place.environment.rawValue
        let advice =
            place.environment == .production
            ? "add it to the development schema and run `zonekeeper schema deploy --container \(place.container)`"
            : "saves do not change it in this container; add it with `zonekeeper schema import`, or let saves do it with "
                + "`zonekeeper limits set \(ContainerLimit.schemaGrowthsPerMinute.rawValue)=default`"
        guard let type else {
            return ServiceError(.badRequest, "Cannot create new type \(name) in \(environment) schema: \(advice)")
        }
        let table = FieldTable(type, asking: operation.fields.count)
        let field = operation.fields.first { isNew($0, in: table) }?.name ?? ""
        return ServiceError(
            .badRequest, "Cannot create new field '\(field)' of type \(name) in \(environment) schema: \(advice)")
    }
}

extension SystemField {
    /// The definition of a system field without indexes; nil for other names.
    fileprivate static func definition(_ name: String) -> FieldDefinition? {
        SystemField(rawValue: name).map { FieldDefinition(name: name, type: $0.type) }
    }
}
