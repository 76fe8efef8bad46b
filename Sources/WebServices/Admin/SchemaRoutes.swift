import Directory
import RecordModel
import Service

/// `/admin/1/schema`.
struct SchemaRoutes {
    let request: AdminRequest
    private var url: RequestURL { request.url }

    private func schemas() throws(RequestFailure) -> SchemaAdministration {
        var options = SchemaAdministration.Options()
        options.isDryRun = try url.flag("dryRun")
        options.isAdditive = try url.flag("additive")
        options.revokesGrants = try url.flag("revokeGrants")
        options.allowsDataLoss = try url.flag("allowDataLoss")
        options.expectedVersion = try url.number("expectedVersion")
        return request.administration.schemas(options)
    }

    /// The text of a schema: as it is, or as a `version` of it was.
    func export() async throws(RequestFailure) -> Reply {
        let (schemas, key) = (request.administration.schemas(), try url.schemaKey())
        let schema =
            if let number = try url.number("version") {
                try await schemas.version(number, of: key)
            } else {
                try await schemas.current(key).schema
            }
        return Reply(body: Array(SchemaPrinter.print(schema).utf8), contentType: "text/plain; charset=UTF-8")
    }

    /// Makes a schema what the text in the body says; `additive` keeps what the text leaves out, and so does
    /// production. With `revokeGrants` the grants of the types in the text are made equal there, too.
    func replace() async throws(RequestFailure) -> Reply {
        let key = try url.schemaKey()
        return try reply(try await schemas().replace(key, with: try wanted()))
    }

    /// Makes a schema what a `version` of it was.
    func restore() async throws(RequestFailure) -> Reply {
        let key = try url.schemaKey()
        guard let number = try url.number("version") else { throw .badRequest("the parameter 'version' is missing") }
        let schemas = try schemas()
        return try reply(try await schemas.replace(key, with: try await schemas.version(number, of: key)))
    }

    /// The versions of a schema that are kept, the newest first.
    func history() async throws(RequestFailure) -> Reply {
        let (key, limit) = (try url.schemaKey(), min(try url.pageLimit(), 100))
        let (current, page) = try await request.administration.schemas().history(
            of: key, before: try url.number("before"), limit: limit)
        return Reply { writer in
            writer.members(of: key)
            writer.member("version", count: current)
            writer.list("versions", page) { revision, writer in
                writer.member("version", count: revision.version)
                if revision.time > 0 { writer.member("time", integer: revision.time) }
                if !revision.actor.isEmpty { writer.member("actor", revision.actor) }
                writer.member("cause", revision.cause.rawValue)
                writer.member("types", count: revision.schema.types.count)
            }
        }
    }

    /// Swift code that reads and writes the records of a schema.
    func code() async throws(RequestFailure) -> Reply {
        let key = try url.schemaKey()
        let schema = try await request.administration.schemas().current(key).schema
        let type = url.text("type")
        if let type, schema.type(named: type) == nil {
            throw .notFound(
                "the schema has no record type '\(type)': `zonekeeper schema show` shows those that there are")
        }
        let code = SchemaSwift.code(of: schema, type: type)
        return Reply(body: Array(code.utf8), contentType: "text/plain; charset=UTF-8")
    }

    /// Says whether a text is a schema and, where a container is named, what its import would change. Changes nothing.
    func validate() async throws(RequestFailure) -> Reply {
        let wanted = try wanted()
        let plan: SchemaPlan? =
            url.text("container") == nil ? nil : try await schemas().validate(wanted, for: try url.schemaKey())
        return Reply { writer in
            writer.member("valid", true)
            writer.member("types", count: wanted.types.count)
            if let plan { Self.write(plan, to: &writer) }
        }
    }

    func deploy() async throws(RequestFailure) -> Reply {
        try reply(try await schemas().deploy(try url.need("container")))
    }

    func resetDevelopment() async throws(RequestFailure) -> Reply {
        let container = try url.need("container")
        let isConfirmed = url["confirm"] == container
        return try reply(
            try await schemas().resetDevelopment(container, isConfirmed: isConfirmed), showsGeneration: true)
    }

    func addIndex() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        let index = try Self.index(try json.text("index"))
        return try await changeIndexes(of: try json.text("type"), try json.text("field")) { $0.formUnion(index) }
    }

    func removeIndex() async throws(RequestFailure) -> Reply {
        let index = try Self.index(try url.need("index"))
        return try await changeIndexes(of: try url.need("type"), try url.need("field")) { $0.subtract(index) }
    }

    private static func index(_ word: String) throws(RequestFailure) -> IndexOptions {
        guard let named = IndexOptions.named.first(where: { $0.word == word.uppercased() }) else {
            let words = IndexOptions.named.map(\.word).joined(separator: ", ")
            throw .badRequest("index: one of \(words) is expected, not '\(word)'")
        }
        return named.option
    }

    private func changeIndexes(
        of type: String, _ field: String, _ body: (inout IndexOptions) -> Void
    ) async throws(RequestFailure) -> Reply {
        try reply(try await schemas().changeIndexes(of: type, field, in: try url.schemaKey(), body))
    }

    /// The schema as text: the body itself, or the member `schema` of a JSON object.
    private func wanted() throws(RequestFailure) -> Schema {
        let isJSON = request.body.first == UInt8(ascii: "{")
        guard let text = isJSON ? try request.json().text("schema") : String(validating: request.body, as: UTF8.self)
        else { throw .badRequest("the schema is not UTF-8 text") }
        do throws(SchemaError) {
            return try SchemaParser.parse(text)
        } catch {
            throw .badRequest("the schema, \(error)")
        }
    }

    private func reply(
        _ change: SchemaAdministration.Change, showsGeneration: Bool = false
    ) throws(RequestFailure) -> Reply {
        let isDryRun = try url.flag("dryRun")
        return Reply { writer in
            writer.members(of: change.key)
            writer.member("version", count: change.version)
            writer.member("applied", !isDryRun)
            if showsGeneration { writer.member("generation", count: change.generation) }
            if let records = change.records { writer.member("records", integer: records) }
            Self.write(change.plan, change.losses, to: &writer)
        }
    }

    /// `changes`, each in words with what it does besides, and `kept`: what is not taken away although the wanted
    /// schema lacks it.
    private static func write(
        _ plan: SchemaPlan, _ losses: [SchemaChange: SchemaLoss] = [:], to writer: inout JSONWriter
    ) {
        writer.list("changes", plan.changes) { change, writer in
            writer.member("change", change.description)
            writer.optional("consequence", change.consequence)
            writer.member("losesData", change.losesData)
            writer.member("kind", change.kind)
            writer.optional("type", change.typeName)
            writer.optional("field", change.fieldName)
            writer.optional("role", change.role)
            guard let loss = losses[change] else { return }
            writer.member(loss.isExact ? "records" : "recordsMax", integer: loss.records)
        }
        writer.list("kept", plan.kept) { change, writer in
            writer.member("change", change.description)
            if case .removeGrant = change { writer.member("revokesGrant", true) }
        }
    }

    // MARK: Types, fields, grants, and how far each index is built

    func state() async throws(RequestFailure) -> Reply {
        let key = try url.schemaKey()
        let (current, progress) = try await request.administration.schemas().state(of: key)
        let schema = current.schema.normalized
        // Of a schema with a hundred thousand indexes none is searched for.
        let byType = Dictionary(grouping: progress, by: \.type)
        return Reply { writer in
            writer.members(of: key)
            writer.member("version", count: current.version)
            writer.member("generation", count: current.generation)
            writer.list("roles", schema.roles)
            writer.list("types", schema.types) { type, writer in
                Self.write(type, byType[type.name] ?? [], to: &writer)
            }
        }
    }

    private static func write(_ type: RecordType, _ progress: [IndexProgress], to writer: inout JSONWriter) {
        let byField = Dictionary(grouping: progress, by: \.field)
        writer.member("name", type.name)
        writer.list("fields", type.fields) { field, writer in
            write(field, byField[field.name] ?? [], to: &writer)
        }
        writer.list("grants", type.grants) { grant, writer in
            writer.member("role", grant.role)
            writer.list("permissions", grant.permissions.words)
        }
    }

    private static func write(
        _ field: FieldDefinition, _ progress: [IndexProgress], to writer: inout JSONWriter
    ) {
        writer.member("name", field.name)
        writer.member("type", field.type.schemaText)
        writer.member("system", field.isSystem)
        writer.list("indexes", field.indexes.words) { word, writer in
            // One index of the store may serve several words.
            let index = progress.first { $0.index.split(separator: " ").contains { $0 == word } }
            writer.member("index", word)
            writer.member("ready", index?.isReady ?? true)
            writer.member("done", count: index?.done ?? 0)
            writer.member("total", count: index?.total ?? 0)
        }
    }
}
