import Cluster
package import Directory
package import RecordModel
import RecordStore

/// The life of a schema: every change is a plan, which a dry run shows and otherwise happens wholly or not at all.
package struct SchemaAdministration: Sendable {
    /// What may be done to make a change, and whether it is made at all.
    package struct Options: Sendable {
        /// Shows what would change, and changes nothing.
        package var isDryRun = false
        /// Keeps what the wanted schema leaves out.
        package var isAdditive = false
        /// In production, makes the grants of the types in the schema equal.
        package var revokesGrants = false
        /// Makes a change that deletes values.
        package var allowsDataLoss = false
        /// The version that the schema must have; nil: any.
        package var expectedVersion: UInt64?

        package init() {}
    }

    /// A change of a schema, made or shown.
    package struct Change: Sendable {
        /// Whose schema it is.
        package var key: SchemaKey
        /// What is changed and what is kept.
        package var plan: SchemaPlan
        /// Of the schema, as it is then.
        package var version: UInt64
        /// Of the environment: how often it was reset.
        package var generation: UInt64
        /// From how many records each change of a dry run takes something; those are missing that take nothing, or
        /// where it could not be found out.
        package var losses: [SchemaChange: SchemaLoss] = [:]
        /// Of a dry run of a reset: how many records the environment has, which would all go; nil where it could not be
        /// found out.
        package var records: Int64?
    }

    let administration: Administration
    let options: Options
    private var service: RecordService { administration.service }

    /// The schema as it is now.
    /// - Throws: `NOT_FOUND` where there is no such container.
    package func current(_ key: SchemaKey) async throws(RequestFailure) -> VersionedSchema {
        try await administration.directory(with: key.container).schema(key)
    }

    /// The schema as it is now, and how far each index is built.
    package func state(
        of key: SchemaKey
    ) async throws(RequestFailure) -> (schema: VersionedSchema, indexes: [IndexProgress]) {
        (try await current(key), try await indexStates(key))
    }

    /// The number of the present version of a schema, and the versions that are kept, the newest first.
    /// - Parameter before: only versions below this one; nil: all.
    package func history(
        of key: SchemaKey, before: UInt64?, limit: Int
    ) async throws(RequestFailure) -> (version: UInt64, kept: [SchemaRevision]) {
        let version = try await current(key).version
        return (
            version,
            try await service.accounts.read { try $0.schemaHistory(of: key, before: before, limit: limit) }
        )
    }

    /// A version of a schema, as it was.
    /// - Throws: `NOT_FOUND` where it is not kept.
    package func version(_ number: UInt64, of key: SchemaKey) async throws(RequestFailure) -> Schema {
        let current = try await current(key)
        if current.version == number { return current.schema }
        let before = number == .max ? nil : number + 1
        let found = try await service.accounts.read { try $0.schemaHistory(of: key, before: before, limit: 1) }.first
        if let found, found.version == number { return found.schema }
        throw .notFound(
            "version \(number) of the \(key.environment.rawValue) schema of '\(key.container)' is not kept: `zonekeeper "
                + "schema history` shows those that are")
    }

    /// Makes a schema what another one says.
    package func replace(_ key: SchemaKey, with wanted: Schema) async throws(RequestFailure) -> Change {
        let current = try await schemaToChange(key)
        let plan = try plan(from: current, to: wanted, of: key)
        let losses = plan.changes.filter(\.losesData)
        guard losses.isEmpty || options.allowsDataLoss || options.isDryRun else {
            throw .badRequest(
                "nothing was changed: \(losses.map(\.description).joined(separator: "; ")). Say --allow-data-loss to do it, or "
                    + "--additive to keep what the file leaves out")
        }
        return try await perform(plan, on: current, of: key)
    }

    /// Says what `replace` would change, also what would lose data. Changes nothing.
    package func validate(_ wanted: Schema, for key: SchemaKey) async throws(RequestFailure) -> SchemaPlan {
        let current = try await schemaToChange(key)
        let plan = try plan(from: current, to: wanted, of: key)
        _ = try result(of: plan, on: current)
        return plan
    }

    /// Adds to production what development has and it lacks. What production alone has stays.
    package func deploy(_ container: String) async throws(RequestFailure) -> Change {
        let development = try await current(SchemaKey(container: container, environment: .development))
        let key = SchemaKey(container: container, environment: .production)
        let production = try await schemaToChange(key)
        let plan = SchemaPlan(from: production.schema, to: development.schema, mode: .additive)
        return try await perform(plan, on: production, of: key)
    }

    /// Empties the development environment and gives it production's schema.
    /// - Parameter isConfirmed: whether the administrator knows what is deleted; a dry run needs no such word.
    package func resetDevelopment(_ container: String, isConfirmed: Bool) async throws(RequestFailure) -> Change {
        let key = SchemaKey(container: container, environment: .development)
        let current = try await schemaToChange(key)
        let production = try await self.current(SchemaKey(container: container, environment: .production))
        guard options.isDryRun || isConfirmed else {
            throw .badRequest(
                "nothing was changed: a reset deletes every record and zone of the development environment, of all users; say "
                    + "confirm=\(container) to do it")
        }
        // What a reset does, no plan may refuse: nothing of development is kept.
        let plan = SchemaPlan(from: current.schema, to: production.schema, mode: .replace)
        var change = Change(key: key, plan: plan, version: current.version, generation: current.generation)
        if options.isDryRun {
            change.records = await SchemaLoss.sums(of: key, service)?.records
            return change
        }
        change.version = try await administration.change(
            .resetDevelopment(container: container, expectedVersion: current.version))
        change.generation += 1
        try await spread(change, mustReachAll: false)
        return change
    }

    /// Changes the indexes of one field.
    package func changeIndexes(
        of typeName: String, _ fieldName: String, in key: SchemaKey, _ body: (inout IndexOptions) -> Void
    ) async throws(RequestFailure) -> Change {
        let current = try await schemaToChange(key)
        guard var type = current.schema.type(named: typeName) else {
            throw .notFound(
                "the \(key.environment.rawValue) schema of '\(key.container)' has no record type '\(typeName)': `zonekeeper "
                    + "schema show` shows those that there are")
        }
        let system = SystemField(rawValue: fieldName).map { FieldDefinition(name: fieldName, type: $0.type) }
        guard var field = type.field(named: fieldName) ?? system else {
            throw .notFound(
                "the record type '\(typeName)' has no field '\(fieldName)': `zonekeeper schema show` shows those that there are; "
                    + "system fields are \(SystemField.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        body(&field.indexes)
        if let problem = SchemaRules.problem(field: field) { throw .badRequest(problem) }
        type.fields = type.fields.filter { $0.name != fieldName } + [field]
        var types = current.schema.types.filter { $0.name != typeName }
        types.append(RecordType(name: type.name, fields: type.fields, grants: type.grants))
        let plan = SchemaPlan(from: current.schema, to: Schema(roles: current.schema.roles, types: types))
        return try await perform(plan, on: current, of: key)
    }

    /// - Throws: `CONFLICT` where another version is expected.
    private func schemaToChange(_ key: SchemaKey) async throws(RequestFailure) -> VersionedSchema {
        let current = try await current(key)
        guard let expected = options.expectedVersion, expected != current.version else { return current }
        throw RequestFailure(
            .conflict,
            "nothing was changed: the \(key.environment.rawValue) schema is at version \(current.version), not "
                + "\(expected); look at it (`zonekeeper schema show`) and try again")
    }

    /// In production an import adds only, unless it is to revoke grants. In development nothing may go that production
    /// has: it could never be deployed again.
    private func plan(
        from current: VersionedSchema, to wanted: Schema, of key: SchemaKey
    ) throws(RequestFailure) -> SchemaPlan {
        guard !options.isAdditive || !options.revokesGrants else {
            throw .badRequest("additive and revokeGrants contradict each other: give one of them")
        }
        let production = SchemaKey(container: key.container, environment: .production)
        return SchemaPlan(
            from: current.schema, to: wanted,
            mode: options.isAdditive || key.environment == .production
                ? (options.revokesGrants ? .additiveExceptGrants : .additive) : .replace,
            protecting: service.schema(production).schema)
    }

    private func result(of plan: SchemaPlan, on current: VersionedSchema) throws(RequestFailure) -> Schema {
        guard plan.refusals.isEmpty, let result = plan.applied(to: current.schema) else {
            throw .badRequest("nothing was changed: " + plan.refusals.map(\.description).joined(separator: "; "))
        }
        return result
    }

    /// Applies a plan, unless this is a dry run.
    private func perform(
        _ plan: SchemaPlan, on current: VersionedSchema, of key: SchemaKey
    ) async throws(RequestFailure) -> Change {
        let result = try result(of: plan, on: current)
        var change = Change(key: key, plan: plan, version: current.version, generation: current.generation)
        if options.isDryRun { change.losses = await SchemaLoss.all(of: plan, in: key, service) }
        if options.isDryRun || plan.changes.isEmpty { return change }
        change.version = try await administration.change(
            .setSchema(key, expectedVersion: current.version, result))
        try await spread(change, mustReachAll: plan.changes.contains(where: \.losesData))
        return change
    }

    /// Has every shard take the schema now, so that it begins to build indexes, and lets go of what a reset takes.
    /// - Parameter mustReachAll: whether it is a failure where a shard cannot be asked. That one learns of the schema
    ///   with the next request under it; but one that never heard of a removal would show the old values once the same
    ///   name is added again.
    private func spread(_ change: Change, mustReachAll: Bool) async throws(RequestFailure) {
        do throws(RequestFailure) {
            _ = try await indexStates(change.key)
        } catch {
            guard mustReachAll else { return }
            throw .tryAgain(
                "the schema has version \(change.version) now, but not every shard has taken it (\(error.error.reason)): run `zonekeeper "
                    + "schema show` until it answers, before the same names are added again")
        }
    }

    /// How far each index of a schema is built, over all shards.
    private func indexStates(_ key: SchemaKey) async throws(RequestFailure) -> [IndexProgress] {
        // Every shard may hold a part of the container's data.
        let answers = try await service.attempts.readAll(
            of: DatabaseKey(privateDataOf: "", in: key), by: service.deadline()
        ) { _, schema in
            .indexes(key, schemaVersion: schema.version)
        }
        var states: [IndexState] = []
        for (_, answer) in answers {
            states += try unpacked(answer.bytes, as: ShardList<IndexState>.self).elements
        }
        return IndexProgress.sums(of: states)
    }
}

/// How far one index is built, by numbers of records' rows; both are 0 once it is complete.
package struct IndexProgress: Hashable, Sendable {
    /// The record type's name.
    package var type: String
    /// The field's name in the schema language.
    package var field: String
    /// Such as `QUERYABLE SORTABLE`.
    package var index: String
    /// The sum of the greatest record numbers looked at so far, over the shards that still build the index.
    package private(set) var done = 0
    /// The sum of the last record numbers to look at, over the same shards; 0 once no shard builds it.
    package private(set) var total = 0
    /// Whether no shard builds the index any more. One that has looked at the last record may still do.
    package private(set) var isReady = true

    private init(of state: IndexState) { (type, field, index) = (state.type, state.field, state.purpose) }

    /// What shards say of their indexes, by type, field and index.
    static func sums(of states: [IndexState]) -> [IndexProgress] {
        var sums: [IndexProgress: IndexProgress] = [:]
        for state in states { sums[IndexProgress(of: state), default: IndexProgress(of: state)].add(state) }
        return sums.values.sorted { ($0.type, $0.field, $0.index) < ($1.type, $1.field, $1.index) }
    }

    private mutating func add(_ state: IndexState) {
        done += Int(clamping: state.done)
        total += Int(clamping: state.total)
        isReady = isReady && state.isReady
    }
}

/// From how many records a change of a schema takes something: those that have the field, or are of the type.
package struct SchemaLoss: Hashable, Sendable {
    /// In all databases of the environment.
    package var records: Int64
    /// Whether it is so many; else it is so many at most.
    package var isExact: Bool

    /// Environments with more records, or more bytes of them, are not looked through.
    private static let countedMax: Int64 = 100_000
    private static let countedBytesMax: Int64 = 64 << 20
    private static let deadlineMilliseconds: UInt64 = 10_000

    /// What each change of a plan takes that takes anything. Where the shards cannot be asked, nothing is said: a plan
    /// is told without them, too.
    static func all(
        of plan: SchemaPlan, in key: SchemaKey, _ service: RecordService
    ) async -> [SchemaChange: SchemaLoss] {
        let changes = plan.changes.filter(\.losesData)
        guard !changes.isEmpty, let sums = await sums(of: key, service) else { return [:] }
        var lost: [SchemaChange: Int64] = [:]
        var isExact = sums.records <= countedMax && sums.bytes <= countedBytesMax
        if isExact {
            do throws(RequestFailure) {
                try await visit(key, .fields, service) { database in
                    for type in database.zones.flatMap(\.types) {
                        for change in changes where change.typeName == type.name {
                            lost[change, default: 0] += Self.records(of: type, with: change.fieldName)
                        }
                    }
                }
            } catch {
                isExact = false
            }
        }
        return Dictionary(
            uniqueKeysWithValues: changes.map { change in
                (change, SchemaLoss(records: isExact ? lost[change] ?? 0 : sums.records, isExact: isExact))
            })
    }

    /// What all databases of an environment hold; nil where the shards cannot be asked.
    static func sums(of key: SchemaKey, _ service: RecordService) async -> QuotaAmounts? {
        var sums = QuotaAmounts.zero
        do throws(RequestFailure) {
            try await visit(key, .sums, service) { sums = sums + $0.used }
        } catch {
            return nil
        }
        return sums
    }

    private static func records(of type: TypeUsage, with field: String?) -> Int64 {
        guard let field else { return type.records }
        return type.byField.first { $0.name == field }?.records ?? 0
    }

    /// Goes through an environment's databases, page by page.
    private static func visit(
        _ key: SchemaKey, _ detail: UsageRequest.Detail, _ service: RecordService,
        body: (ContainerUsage.Database) -> Void
    ) async throws(RequestFailure) {
        let deadline = service.node.deadline(milliseconds: deadlineMilliseconds)
        var request = UsageRequest(container: key.container, environment: key.environment, detail: detail)
        repeat {
            let page = try await ContainerUsage.page(request, in: service, by: deadline)
            page.databases.forEach(body)
            request.after = page.next
        } while request.after != nil
    }
}
