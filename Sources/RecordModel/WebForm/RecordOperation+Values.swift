extension RecordOperation {
    /// A field and what it gets; nil clears it.
    package struct Value: Hashable, Sendable {
        package var name: String
        package var value: FieldValue?

        package init(name: String, value: FieldValue?) {
            self.name = name
            self.value = value
        }
    }

    /// Where an operation is to happen.
    package struct Place: Hashable, Sendable {
        package var container: String
        package var environment: Environment
        package var scope: Scope
        package var zone: ZoneID
        /// Whether saves extend the schema; never in production.
        package let schemaGrows: Bool

        package init(
            container: String, environment: Environment, scope: Scope, zone: ZoneID, schemaGrows: Bool = true
        ) {
            self.schemaGrows = schemaGrows && environment == .development
            self.container = container
            self.environment = environment
            self.scope = scope
            self.zone = zone
        }
    }

    /// The operation's fields with their values converted to the schema's types, in its order; the parent among them as
    /// `___parent`, encrypted fields as `.encrypted`. Fields that the schema does not know and that are cleared are
    /// left out: they hold nothing.
    /// - Parameter assets: finds the files of ASSET values; without it they are refused.
    /// - Throws: `BAD_REQUEST` if the schema lacks the type or a field, or a value does not fit; a retry does not help.
    ///   `TRY_AGAIN_LATER` if the environment is development and the schema could be extended (`SchemaExtension`).
    package func values(
        in schema: Schema, at place: Place, assets: AssetResolver? = nil
    ) throws(ServiceError) -> [Value] {
        if kind.isDelete { return [] }
        guard let recordType else {
            guard fields.allSatisfy({ $0.name == SystemField.parent.rawValue }) else {
                throw ServiceError(.badRequest, "recordType is missing: without it the fields cannot be checked")
            }
            var values: [Value] = []
            for field in fields { values.append(try parent(field, place.zone)) }
            return values
        }
        if let refusal = SchemaExtension.refusal(of: self, in: schema, at: place) { throw refusal }
        guard let type = schema.type(named: recordType) else { return [] }
        let table = FieldTable(type, asking: fields.count)
        var values: [Value] = []
        values.reserveCapacity(fields.count)
        for field in fields {
            if let value = try self.value(field, of: table, at: place, assets) { values.append(value) }
        }
        return values
    }

    private func value(
        _ field: FieldChange, of type: FieldTable, at place: Place, _ assets: AssetResolver?
    ) throws(ServiceError) -> Value? {
        if field.name == SystemField.parent.rawValue { return try parent(field, place.zone) }
        guard let definition = type[field.name] else { return nil }
        let value = try field.value.map { input throws(ServiceError) in
            try input.resolve(field: field.name, definition: definition, zone: place.zone, assets: assets)
        }
        if definition.type.isEncrypted, place.scope == .public, value != nil {
            throw SchemaExtension.noEncryption(field.name)
        }
        return Value(name: field.name, value: value ?? nil)
    }

    private func parent(_ field: FieldChange, _ zone: ZoneID) throws(ServiceError) -> Value {
        let definition = FieldDefinition(name: field.name, type: SystemField.parent.type)
        let value = try field.value.map { input throws(ServiceError) in
            try input.resolve(field: field.name, definition: definition, zone: zone)
        }
        return Value(name: field.name, value: value ?? nil)
    }
}
