package import Authorization
package import RecordModel

/// Creation or deletion of one zone of a private database by its owner.
package struct ModifyZone: Hashable, Sendable {
    package enum Kind: UInt64, Hashable, Sendable { case create = 1, delete }
    package var zone: ZoneKey
    package var caller: Caller
    /// Milliseconds since 1970 by the clock of the node that made the command.
    package var time: Int64
    package var kind: Kind

    package init(_ kind: Kind, zone: ZoneKey, caller: Caller, time: Int64) {
        self.zone = zone
        self.caller = caller
        self.time = time
        self.kind = kind
    }
}

/// Brings a shard's copy of one container environment's schema to a version; older and equal versions change nothing.
package struct InstallSchema: Hashable, Sendable {
    package var container: String
    package var environment: Environment
    /// At least 1; the directory gives a version to one schema only.
    package var version: UInt64
    package var schema: Schema

    package init(container: String, environment: Environment, version: UInt64, schema: Schema) {
        self.container = container
        self.environment = environment
        self.version = version
        self.schema = schema
    }
}

/// What one log entry asks the record tables to do.
package enum RecordCommand: Hashable, Sendable {
    case modifyRecords(ModifyRecords)
    case modifyZone(ModifyZone)
    case installSchema(InstallSchema)
}
