import Directory
import RecordModel
import Service

extension AdminRequest {
    /// The schema as JSON: types, fields, grants, and how far each index is built.
    func schemaState() async throws(RequestFailure) -> Reply {
        let key = try schemaKey()
        let current = try await currentSchema(key)
        let progress = try await context.service.indexStates(key, by: deadline)
        let schema = current.schema.normalized
        return Reply { writer in
            writer.member("container", key.container)
            writer.member("environment", key.environment.rawValue)
            writer.member("version", integer: Int64(current.version))
            writer.member("generation", integer: Int64(current.generation))
            writer.key("roles")
            writer.array { writer in for role in schema.roles { writer.string(role) } }
            writer.key("types")
            writer.array { writer in
                for type in schema.types {
                    writer.object { Self.write(type, progress.filter { $0.type == type.name }, to: &$0) }
                }
            }
        }
    }

    private static func write(_ type: RecordType, _ progress: [IndexProgress], to writer: inout JSONWriter) {
        writer.member("name", type.name)
        writer.key("fields")
        writer.array { writer in
            for field in type.fields {
                writer.object { Self.write(field, progress.filter { $0.field == field.name }, to: &$0) }
            }
        }
        writer.key("grants")
        writer.array { writer in
            for grant in type.grants {
                writer.object { writer in
                    writer.member("role", grant.role)
                    writer.key("permissions")
                    writer.array { writer in for word in grant.permissions.words { writer.string(word) } }
                }
            }
        }
    }

    private static func write(
        _ field: FieldDefinition, _ progress: [IndexProgress], to writer: inout JSONWriter
    ) {
        writer.member("name", field.name)
        writer.member("type", field.type.schemaText)
        writer.member("system", field.isSystem)
        writer.key("indexes")
        writer.array { writer in
            for word in field.indexes.words {
                // One index of the store may serve several words.
                let index = progress.first { $0.index.split(separator: " ").contains { $0 == word } }
                writer.object { writer in
                    writer.member("index", word)
                    writer.member("ready", index?.isReady ?? true)
                    writer.member("done", integer: Int64(index?.done ?? 0))
                    writer.member("total", integer: Int64(index?.total ?? 0))
                }
            }
        }
    }
}
