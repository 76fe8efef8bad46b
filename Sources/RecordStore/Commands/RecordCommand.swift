package import Authorization
package import RecordModel
package import Wire

/// Creation or deletion of one zone of a private database by its owner.
package struct ModifyZone: Hashable, Sendable, WireMessage {
    /// What is done to the zone; the raw value is the one in the log.
    package enum Kind: UInt64, Hashable, Sendable, WireValue { case create = 1, delete }
    /// A custom zone of a private database; its name has 1 to `Limits.nameLengthMax` characters.
    package var zone: ZoneKey
    /// Must be the user who owns the database; for any other the command is refused.
    package var caller: Caller
    /// Milliseconds since 1970 by the clock of the node that made the command.
    package var time: Int64
    /// `create` answers with the zone where it exists already; `delete` is refused where it does not.
    package var kind: Kind
    /// The schema version that the node which asks holds. A shard with a lower one answers `needsSchema`, so that it
    /// learns of a reset before it makes zones; a higher one is no matter.
    package var schemaVersion: UInt64
    /// As `ModifyRecords.idempotency`.
    package var idempotency: IdempotencyKey?
    /// As `ModifyRecords.client`.
    package var client: String?
    /// What the request may be remembered by depends on them; nil: it may be remembered by a gigabyte. From
    /// `FeatureLevel.zoneMemories` on.
    package var quota: QuotaTerms?

    package init(
        _ kind: Kind, zone: ZoneKey, caller: Caller, time: Int64, schemaVersion: UInt64 = 0,
        idempotency: IdempotencyKey? = nil
    ) {
        self.schemaVersion = schemaVersion
        self.idempotency = idempotency
        self.zone = zone
        self.caller = caller
        self.time = time
        self.kind = kind
    }

    package static var blank: Self {
        ModifyZone(.create, zone: .blank, caller: Caller(user: nil), time: 0, schemaVersion: 0, idempotency: nil)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &zone)
        try wire.field(2, &time)
        try wire.required(3, &kind)
        try wire.field(4, &caller)
        try wire.field(5, &schemaVersion)
        try wire.field(6, &idempotency)
        try wire.field(7, &client)
        try wire.field(8, &quota)
    }
}

/// Brings a shard's copy of one container environment's schema to a version. Older versions change nothing, nor do
/// equal ones, but that a later generation of the container retires its zones.
///
/// New indexes are filled and dropped ones removed by maintenance, as are records of types and values of fields that
/// are gone. Where it brings back what is still being removed, the removal is finished first, within the command.
package struct InstallSchema: Hashable, Sendable, WireMessage {
    /// The container's name; the shard need not have heard of it before.
    package var container: String
    /// Development and production have versions and generations of their own.
    package var environment: Environment
    /// At least 1; the directory gives a version to one schema only.
    package var version: UInt64
    /// Grows with each reset of the environment: a greater one than the shard's takes every zone away.
    package var generation: UInt64
    /// The whole schema of the version: what the shard's copy has beyond it is removed.
    package var schema: Schema

    package init(
        container: String, environment: Environment, version: UInt64, generation: UInt64 = 0, schema: Schema
    ) {
        self.generation = generation
        self.container = container
        self.environment = environment
        self.version = version
        self.schema = schema
    }

    package static var blank: Self {
        InstallSchema(container: "", environment: .development, version: 0, generation: 0, schema: Schema())
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &container)
        try wire.required(2, &environment)
        try wire.field(3, &version)
        try wire.field(4, &schema)
        try wire.field(5, &generation)
    }
}

/// Does a bounded part of the work that other commands left: fills and drops indexes, goes on with cascades, scrubs
/// what the schema lost, reclaims deleted zones, and removes old tombstones and idempotency rows.
package struct Maintain: Hashable, Sendable, WireMessage {
    /// Milliseconds since 1970 by the clock of the node that made the command.
    package var time: Int64
    /// About how many rows the command may look at or change; taken to be 1 to 10,000.
    package var rowsMax: UInt64
    /// What is older by the shard's time is removed, by this command or a later one.
    package var retention: Retention
    /// For how long some containers keep earlier versions of records. From `FeatureLevel.versions` on.
    package var versions: [VersionAge] = []

    package init(time: Int64, rowsMax: UInt64 = 500, retention: Retention = Retention()) {
        self.time = time
        self.rowsMax = rowsMax
        self.retention = retention
    }

    package static var blank: Self { Maintain(time: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &time)
        try wire.field(2, &rowsMax)
        try wire.field(3, &retention.tombstoneAgeMax)
        try wire.field(4, &retention.tombstonesMax)
        try wire.field(5, &retention.assetGrace, unless: AssetReference.graceMilliseconds)
        try wire.field(6, &versions)
    }
}

/// For how long a container keeps earlier versions of records.
package struct VersionAge: Hashable, Sendable, WireMessage {
    /// Its name.
    package var container: String
    /// Milliseconds of the shard's time; 0: none are kept.
    package var ageMax: Int64
    /// The version of the container's limits that say so.
    package var epoch: UInt64

    /// By the limits of a directory.
    package init(container: String, ageMax: Int64, epoch: UInt64) {
        self.container = container
        self.ageMax = ageMax
        self.epoch = epoch
    }

    package static var blank: Self { VersionAge(container: "", ageMax: 0, epoch: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &container)
        try wire.field(2, &ageMax)
        try wire.field(3, &epoch)
    }

    /// What was replaced up to this time of the shard is too old.
    func cutoff(_ now: Int64) -> Int64 { ageMax <= 0 ? .max : saturating(now, -ageMax) }
}

/// How long the tombstones of deleted records are kept for change feeds (a token that is older is expired), and assets
/// that nothing names.
package struct Retention: Hashable, Sendable {
    /// Milliseconds of shard time; 90 days.
    package var tombstoneAgeMax: Int64
    /// Tombstones that a zone may have.
    package var tombstonesMax: UInt64
    /// How long an asset without a record is still counted, in milliseconds of shard time.
    package var assetGrace = AssetReference.graceMilliseconds

    package init(tombstoneAgeMax: Int64 = 90 * 86_400_000, tombstonesMax: UInt64 = 1_000_000) {
        self.tombstoneAgeMax = tombstoneAgeMax
        self.tombstonesMax = tombstonesMax
    }
}

/// What one log entry asks the record tables to do.
package enum RecordCommand: Hashable, Sendable, WireUnion {
    case modifyRecords(ModifyRecords)
    case modifyZone(ModifyZone)
    case installSchema(InstallSchema)
    case maintain(Maintain)
    case quota(QuotaCommand)

    package func encode(to writer: inout WireWriter) {
        switch self {
        case .modifyRecords(let command): command.write(1, to: &writer)
        case .modifyZone(let command): command.write(2, to: &writer)
        case .installSchema(let command): command.write(3, to: &writer)
        case .maintain(let command): command.write(4, to: &writer)
        case .quota(let command): command.write(5, to: &writer)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .modifyRecords(try reader.message())
        case 2: self = .modifyZone(try reader.message())
        case 3: self = .installSchema(try reader.message())
        case 4: self = .maintain(try reader.message())
        case 5: self = .quota(try reader.message())
        default: return nil
        }
    }

    /// Who asks, with which device.
    var origin: ChangeOrigin {
        switch self {
        case .modifyRecords(let command): ChangeOrigin(user: command.caller.user, client: command.client)
        case .modifyZone(let command): ChangeOrigin(user: command.caller.user, client: command.client)
        case .installSchema, .maintain, .quota: ChangeOrigin()
        }
    }
}
