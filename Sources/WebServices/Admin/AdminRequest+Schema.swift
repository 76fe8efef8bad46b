import Directory
import RecordModel
import Service

// The life of a schema: every change is a plan, which a dry run shows and otherwise happens wholly or not at all.
extension AdminRequest {
    func exportSchema() async throws(RequestFailure) -> Reply {
        let schema = try await currentSchema(try schemaKey()).schema
        return Reply(body: Array(SchemaPrinter.print(schema).utf8), contentType: "text/plain; charset=UTF-8")
    }

    /// Makes a schema what the text in the body says; `additive` keeps what the text leaves out, and so does
    /// production. With `revokeGrants` the grants of the types in the text are made equal there, too.
    func importSchema() async throws(RequestFailure) -> Reply {
        let key = try schemaKey()
        let current = try await schemaToChange(key)
        let plan = try plan(from: current, to: try parsedSchema(), of: key)
        let losses = plan.changes.filter(\.losesData)
        let (isAllowed, isDryRun) = (try flag("allowDataLoss"), try flag("dryRun"))
        guard losses.isEmpty || isAllowed || isDryRun else {
            throw RequestFailure(
                .badRequest,
                "nothing was changed: \(losses.map(\.description).joined(separator: "; ")). Say --allow-data-loss to do it, or "
                    + "--additive to keep what the file leaves out")
        }
        return try await perform(plan, on: current, of: key)
    }

    /// Says whether a text is a schema and, where a container is named, what its import would change. Changes nothing.
    func validateSchema() async throws(RequestFailure) -> Reply {
        let wanted = try parsedSchema()
        guard url["container"]?.isEmpty == false else {
            return Reply { writer in
                writer.member("valid", true)
                writer.member("types", integer: Int64(wanted.types.count))
            }
        }
        let key = try schemaKey()
        let current = try await schemaToChange(key)
        let plan = try plan(from: current, to: wanted, of: key)
        _ = try result(of: plan, on: current)
        return Reply { writer in
            writer.member("valid", true)
            writer.member("types", integer: Int64(wanted.types.count))
            Self.write(plan, to: &writer)
        }
    }

    /// Adds to production what development has and it lacks. What production alone has stays.
    func deploySchema() async throws(RequestFailure) -> Reply {
        let container = try parameter("container")
        let development = try await currentSchema(SchemaKey(container: container, environment: .development))
        let key = SchemaKey(container: container, environment: .production)
        let production = try await schemaToChange(key)
        let plan = SchemaPlan(from: production.schema, to: development.schema, mode: .additive)
        return try await perform(plan, on: production, of: key)
    }

    /// Empties the development environment and gives it production's schema.
    func resetDevelopment() async throws(RequestFailure) -> Reply {
        let container = try parameter("container")
        let key = SchemaKey(container: container, environment: .development)
        let current = try await schemaToChange(key)
        let production = try await currentSchema(SchemaKey(container: container, environment: .production))
        let isDryRun = try flag("dryRun")
        guard isDryRun || url["confirm"] == container else {
            throw RequestFailure(
                .badRequest,
                "nothing was changed: a reset deletes every record and zone of the development environment, of all users; say "
                    + "confirm=\(container) to do it")
        }
        // What a reset does, no plan may refuse: nothing of development is kept.
        let plan = SchemaPlan(from: current.schema, to: production.schema, mode: .replace)
        var version = current.version
        if !isDryRun {
            version = try await change(.resetDevelopment(container: container, expectedVersion: current.version))
        }
        return Reply { writer in
            Self.write(key, version: version, isApplied: !isDryRun, to: &writer)
            writer.member("generation", integer: Int64(current.generation + (isDryRun ? 0 : 1)))
            Self.write(plan, to: &writer)
        }
    }

    func addIndex() async throws(RequestFailure) -> Reply {
        let (type, field, index) = (try text("type"), try text("field"), try Self.index(try text("index")))
        return try await changeIndexes(of: type, field) { $0.formUnion(index) }
    }

    func removeIndex() async throws(RequestFailure) -> Reply {
        let (type, field) = (try parameter("type"), try parameter("field"))
        let index = try Self.index(try parameter("index"))
        return try await changeIndexes(of: type, field) { $0.subtract(index) }
    }

    private static func index(_ word: String) throws(RequestFailure) -> IndexOptions {
        guard let named = IndexOptions.named.first(where: { $0.word == word.uppercased() }) else {
            let words = IndexOptions.named.map(\.word).joined(separator: ", ")
            throw RequestFailure(.badRequest, "index: one of \(words) is expected, not '\(word)'")
        }
        return named.option
    }

    private func changeIndexes(
        of typeName: String, _ fieldName: String, _ body: (inout IndexOptions) -> Void
    ) async throws(RequestFailure) -> Reply {
        let key = try schemaKey()
        let current = try await schemaToChange(key)
        guard var type = current.schema.type(named: typeName) else {
            throw RequestFailure(
                .notFound,
                "the \(key.environment.rawValue) schema of '\(key.container)' has no record type '\(typeName)': `zonekeeper "
                    + "schema show` shows those that there are")
        }
        let system = SystemField(rawValue: fieldName).map { FieldDefinition(name: fieldName, type: $0.type) }
        guard var field = type.field(named: fieldName) ?? system else {
            throw RequestFailure(
                .notFound,
                "the record type '\(typeName)' has no field '\(fieldName)': `zonekeeper schema show` shows those that there are; "
                    + "system fields are \(SystemField.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        body(&field.indexes)
        if let problem = SchemaRules.problem(field: field) { throw RequestFailure(.badRequest, problem) }
        type.fields = type.fields.filter { $0.name != fieldName } + [field]
        var types = current.schema.types.filter { $0.name != typeName }
        types.append(RecordType(name: type.name, fields: type.fields, grants: type.grants))
        let plan = SchemaPlan(from: current.schema, to: Schema(roles: current.schema.roles, types: types))
        return try await perform(plan, on: current, of: key)
    }
}

// Plans.
extension AdminRequest {
    /// The schema as it is now; the container must be there.
    func currentSchema(_ key: SchemaKey) async throws(RequestFailure) -> VersionedSchema {
        let directory = try await directory()
        try Self.requireContainer(key.container, in: directory)
        return directory.schemas[key] ?? VersionedSchema(version: 0, schema: Schema())
    }

    /// The schema that the request is to change.
    /// - Throws: `CONFLICT` where the request states another version in `expectedVersion`.
    private func schemaToChange(_ key: SchemaKey) async throws(RequestFailure) -> VersionedSchema {
        let current = try await currentSchema(key)
        if let text = url["expectedVersion"] {
            guard let expected = UInt64(text) else {
                throw RequestFailure(.badRequest, "expectedVersion: a number is expected, not '\(text)'")
            }
            guard expected == current.version else {
                throw RequestFailure(
                    .conflict,
                    "nothing was changed: the \(key.environment.rawValue) schema is at version \(current.version), not "
                        + "\(expected); look at it (`zonekeeper schema show`) and try again")
            }
        }
        return current
    }

    /// Has every shard take the schema now. Shards learn of schemas with the first request under them; but one that
    /// never heard of a removal would show the old values once the same name is added again.
    private func spread(_ key: SchemaKey, version: UInt64) async throws(RequestFailure) {
        do throws(RequestFailure) {
            _ = try await context.service.indexStates(key, by: deadline)
        } catch {
            throw RequestFailure(
                ServiceError(
                    .tryAgainLater,
                    "the schema has version \(version) now, but not every shard has taken it (\(error.error.reason)): run `zonekeeper "
                        + "schema show` until it answers, before the same names are added again", retryAfterSeconds: 1))
        }
    }

    private func parsedSchema() throws(RequestFailure) -> Schema {
        let text = try schemaText()
        do throws(SchemaError) {
            return try SchemaParser.parse(text)
        } catch {
            throw RequestFailure(.badRequest, "the schema, \(error)")
        }
    }

    /// The schema as text: the body itself, or the member `schema` of a JSON object.
    private func schemaText() throws(RequestFailure) -> String {
        if body.first == UInt8(ascii: "{") { return try text("schema") }
        guard let text = String(validating: body, as: UTF8.self) else {
            throw RequestFailure(.badRequest, "the schema is not UTF-8 text")
        }
        return text
    }

    /// In production an import adds only, unless it is to revoke grants. In development nothing may go that production
    /// has: it could never be deployed again.
    private func plan(
        from current: VersionedSchema, to wanted: Schema, of key: SchemaKey
    ) throws(RequestFailure) -> SchemaPlan {
        let (isAdditive, revokesGrants) = (try flag("additive"), try flag("revokeGrants"))
        guard !isAdditive || !revokesGrants else {
            throw RequestFailure(.badRequest, "additive and revokeGrants contradict each other: give one of them")
        }
        let production = SchemaKey(container: key.container, environment: .production)
        return SchemaPlan(
            from: current.schema, to: wanted,
            mode: isAdditive || key.environment == .production
                ? (revokesGrants ? .additiveExceptGrants : .additive) : .replace,
            protecting: context.service.schema(production).schema)
    }

    private func result(of plan: SchemaPlan, on current: VersionedSchema) throws(RequestFailure) -> Schema {
        guard plan.refusals.isEmpty, let result = plan.applied(to: current.schema) else {
            throw RequestFailure(
                .badRequest, "nothing was changed: " + plan.refusals.map(\.description).joined(separator: "; "))
        }
        return result
    }

    /// Applies a plan, unless the request is a dry run, and shows it.
    private func perform(
        _ plan: SchemaPlan, on current: VersionedSchema, of key: SchemaKey
    ) async throws(RequestFailure) -> Reply {
        let result = try result(of: plan, on: current)
        let isDryRun = try flag("dryRun")
        var version = current.version
        if !isDryRun, !plan.changes.isEmpty {
            version = try await change(.setSchema(key, expectedVersion: current.version, result))
            if plan.changes.contains(where: \.losesData) { try await spread(key, version: version) }
        }
        return Reply { writer in
            Self.write(key, version: version, isApplied: !isDryRun, to: &writer)
            Self.write(plan, to: &writer)
        }
    }

    private static func write(
        _ key: SchemaKey, version: UInt64, isApplied: Bool, to writer: inout JSONWriter
    ) {
        writer.member("container", key.container)
        writer.member("environment", key.environment.rawValue)
        writer.member("version", integer: Int64(version))
        writer.member("applied", isApplied)
    }

    /// `changes`, each in words with what it does besides, and `kept`: what is not taken away although the wanted
    /// schema lacks it.
    private static func write(_ plan: SchemaPlan, to writer: inout JSONWriter) {
        for (key, changes) in [("changes", plan.changes), ("kept", plan.kept)] {
            writer.key(key)
            writer.array { writer in
                for change in changes {
                    writer.object { writer in
                        writer.member("change", change.description)
                        if key == "kept" {
                            if case .removeGrant = change { writer.member("revokesGrant", true) }
                            return
                        }
                        if let consequence = change.consequence { writer.member("consequence", consequence) }
                        writer.member("losesData", change.losesData)
                    }
                }
            }
        }
    }
}
