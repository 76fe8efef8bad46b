package import RecordModel

/// Whose schema.
package struct SchemaKey: Hashable, Sendable {
    @Bytewise package var container: String
    package var environment: Environment

    package init(container: String, environment: Environment) {
        self.container = container
        self.environment = environment
    }

    /// Whose schema a database's records follow.
    package init(of database: DatabaseKey) {
        self.init(container: database.container, environment: database.environment)
    }
}

/// A schema and its version, which grows by one with every change.
package struct VersionedSchema: Hashable, Sendable {
    package var version: UInt64
    package var schema: Schema
    /// How often the environment was reset, which only development can be: a shard that learns of a greater one empties
    /// the environment's databases.
    package var generation: UInt64

    package init(version: UInt64, schema: Schema, generation: UInt64 = 0) {
        self.version = version
        self.schema = schema
        self.generation = generation
    }
}
