import Directory
import RecordModel

extension AdminRequest {
    func containers() async throws(RequestFailure) -> Reply {
        let containers = try await directory().containers
        return Reply { writer in
            writer.key("containers")
            writer.array { writer in
                for name in containers.keys.sorted() {
                    writer.object { writer in
                        writer.member("name", name)
                        writer.member("created", integer: containers[name] ?? 0)
                    }
                }
            }
        }
    }

    func createContainer() async throws(RequestFailure) -> Reply {
        let name = try text("name")
        let allowed = name.utf8.allSatisfy {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || [0x2D, 0x2E, 0x5F].contains($0)
        }
        guard allowed, name.utf8.count <= Limits.nameLengthMax else {
            throw RequestFailure(
                .badRequest,
                "name: 1 to \(Limits.nameLengthMax) letters, digits, dots, hyphens and underscores are expected, such as "
                    + "iCloud.com.example.app")
        }
        _ = try await change(.createContainer(name: name, time: context.now))
        return Reply { $0.member("name", name) }
    }

    func exportSchema() async throws(RequestFailure) -> Reply {
        let key = try schemaKey()
        let directory = try await directory()
        guard directory.containers[key.container] != nil else { throw unknownContainer(key) }
        let schema = directory.schemas[key]?.schema ?? Schema()
        return Reply(body: Array(SchemaPrinter.print(schema).utf8), contentType: "text/plain; charset=UTF-8")
    }

    /// Replaces a schema by the text in the body, as a plan that is shown; `dryRun` only shows it.
    func importSchema() async throws(RequestFailure) -> Reply {
        let key = try schemaKey()
        let directory = try await directory()
        guard directory.containers[key.container] != nil else { throw unknownContainer(key) }
        let current = directory.schemas[key] ?? VersionedSchema(version: 0, schema: Schema())
        let text = try schemaText()
        let wanted: Schema
        do throws(SchemaError) {
            wanted = try SchemaParser.parse(text)
        } catch {
            throw RequestFailure(.badRequest, "the schema, \(error)")
        }
        let plan = SchemaPlan(
            from: current.schema, to: wanted, mode: url["additive"] == "true" ? .additive : .replace,
            protecting: key.environment == .production ? current.schema : Schema())
        guard plan.refusals.isEmpty, let result = plan.applied(to: current.schema) else {
            throw RequestFailure(
                .badRequest, "nothing was changed: " + plan.refusals.map(\.description).joined(separator: "; "))
        }
        let losses = plan.changes.filter(\.losesData)
        guard losses.isEmpty || url["allowDataLoss"] == "true" || url["dryRun"] == "true" else {
            throw RequestFailure(
                .badRequest,
                "nothing was changed: \(losses.map(\.description).joined(separator: "; ")). Say --allow-data-loss to do it, or "
                    + "--additive to keep what the file leaves out")
        }
        var version = current.version
        if url["dryRun"] != "true", !plan.changes.isEmpty {
            version = try await change(.setSchema(key, expectedVersion: current.version, result))
        }
        return Reply { writer in
            writer.member("version", integer: Int64(version))
            writer.member("applied", url["dryRun"] != "true")
            writer.key("changes")
            writer.array { writer in for change in plan.changes { writer.string(change.description) } }
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

    private func unknownContainer(_ key: SchemaKey) -> RequestFailure {
        RequestFailure(
            .notFound, "no container '\(key.container)': create it with `zonekeeper container create \(key.container)`")
    }
}
