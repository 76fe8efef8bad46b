package import GRDB

extension RecordTables {
    /// Creates the record tables in a new shard database.
    ///
    /// Everything but names and bodies is an integer given in apply. Row numbers follow from the tables' contents
    /// (greatest + 1), so replicas that applied the same commands hold the same rows.
    package static func create(in db: Database) throws {
        try db.execute(sql: statements)
        try db.execute(sql: rememberedUse)
        try db.execute(sql: AssetTables.creation)
        try db.execute(sql: VersionTable.creation)
        try db.execute(sql: schemaFloors)
        try SubscriptionHome.makeTables(in: db)
    }

    /// Brings tables that an earlier version made to what `create` makes; does nothing where they are.
    package static func upgrade(in db: Database) throws {
        if try !db.tableExists("asset") { try db.execute(sql: AssetTables.creation) }
        if try !db.tableExists("record_version") { try db.execute(sql: VersionTable.creation) }
        if try !db.tableExists("schema_floor") { try db.execute(sql: schemaFloors) }
        try SubscriptionHome.makeTables(in: db)
        guard try !db.tableExists("idempotency_use") else { return }
        try db.execute(sql: "ALTER TABLE record_state ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0")
        try db.execute(sql: rememberedUse)
        try db.execute(
            sql: """
                INSERT INTO idempotency_use
                SELECT database, caller, sum(\(RememberedOutcome.rowBytes)) FROM idempotency GROUP BY database, caller
                """)
    }

    /// Every table and the columns that order its rows.
    static let allTables: [(name: String, order: String)] = [
        ("record_state", "id"), ("schema", "id"), ("record_type", "id"), ("field_index", "id"), ("user", "id"),
        ("database", "id"), ("ledger", "database"), ("ledger_share", "database, shard"), ("zone", "id"),
        ("record", "id"), ("edge", "zone, target, action, source"),
        ("job", "id"), ("stray", "type, field"), ("idempotency", "id"), ("idempotency_use", "database, caller"),
        ("index_number", "field, zone, value, record"), ("index_bytes", "field, zone, value, record"),
        ("index_missing", "field, zone, record"), ("asset", "sha256, size"), ("asset_zone", "zone"),
        ("asset_database", "database"), ("asset_ledger", "database"), ("asset_share", "database, shard"),
        ("outbox_self", "id"), ("outbox_stream", "destination"), ("outbox", "destination, sequence"),
        ("inbox", "source"), ("registry", "id"), ("subscription", "id"), ("notification", "registry, sequence"),
        ("watcher", "id"), ("matching_queue", "container"), ("matching", "id"),
        ("watched", "container, environment, scope, owner"), ("loss", "container"), ("log_reader", "registry, name"),
        ("record_version", "id"), ("subscriber_life", "id"), ("schema_floor", "schema"),
    ]

    /// The least incarnation of what comes to a container's environment that was purged, where it is above the shard's.
    private static let schemaFloors = """
        CREATE TABLE schema_floor (schema INTEGER PRIMARY KEY, incarnation INTEGER NOT NULL);
        """

    /// How many bytes the rows of `idempotency` take, of each caller in a database.
    private static let rememberedUse = """
        CREATE TABLE idempotency_use (
            database INTEGER NOT NULL, caller TEXT NOT NULL, bytes INTEGER NOT NULL,
            PRIMARY KEY (database, caller)) WITHOUT ROWID;
        """

    private static let statements = """
        CREATE TABLE record_state (
            id INTEGER PRIMARY KEY, time INTEGER NOT NULL, incarnation_floor INTEGER NOT NULL,
            forgotten INTEGER NOT NULL DEFAULT 0);
        INSERT INTO record_state VALUES (1, 0, 1, 0);
        CREATE TABLE schema (
            id INTEGER PRIMARY KEY, container TEXT NOT NULL, environment INTEGER NOT NULL, version INTEGER NOT NULL,
            generation INTEGER NOT NULL, revision INTEGER NOT NULL, body BLOB NOT NULL,
            UNIQUE (container, environment));
        CREATE TABLE record_type (
            id INTEGER PRIMARY KEY, schema INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (schema, name));
        CREATE TABLE field_index (
            id INTEGER PRIMARY KEY, type INTEGER NOT NULL, name TEXT NOT NULL, purpose INTEGER NOT NULL,
            shape TEXT NOT NULL, state INTEGER NOT NULL, job INTEGER NOT NULL);
        CREATE INDEX field_index_type ON field_index (type);
        CREATE TABLE user (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
        CREATE TABLE database (
            id INTEGER PRIMARY KEY, schema INTEGER NOT NULL, scope INTEGER NOT NULL, owner TEXT NOT NULL,
            incarnation INTEGER NOT NULL, sequence INTEGER NOT NULL, zones INTEGER NOT NULL,
            bytes INTEGER NOT NULL, records INTEGER NOT NULL, epoch INTEGER NOT NULL,
            received_bytes INTEGER NOT NULL, received_records INTEGER NOT NULL,
            returned_bytes INTEGER NOT NULL, returned_records INTEGER NOT NULL, overdrawn INTEGER NOT NULL,
            UNIQUE (schema, scope, owner));
        CREATE TABLE ledger (
            database INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, cap_bytes INTEGER NOT NULL,
            cap_records INTEGER NOT NULL, month INTEGER NOT NULL, transfer INTEGER NOT NULL);
        CREATE TABLE ledger_share (
            database INTEGER NOT NULL, shard INTEGER NOT NULL, granted_bytes INTEGER NOT NULL,
            granted_records INTEGER NOT NULL, returned_bytes INTEGER NOT NULL, returned_records INTEGER NOT NULL,
            PRIMARY KEY (database, shard)) WITHOUT ROWID;
        CREATE TABLE zone (
            id INTEGER PRIMARY KEY, database INTEGER NOT NULL, name TEXT NOT NULL, incarnation INTEGER NOT NULL,
            sequence INTEGER NOT NULL, created_at INTEGER NOT NULL, state INTEGER NOT NULL,
            floor INTEGER NOT NULL, tombstones INTEGER NOT NULL, changed_at INTEGER NOT NULL,
            bytes INTEGER NOT NULL, records INTEGER NOT NULL,
            UNIQUE (database, name, incarnation));
        CREATE INDEX zone_retired ON zone (id) WHERE state = 1;
        CREATE INDEX zone_changed ON zone (database, changed_at) WHERE changed_at > 0;
        CREATE INDEX zone_tombstones ON zone (tombstones) WHERE tombstones > 0;
        CREATE TABLE record (
            id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, name TEXT NOT NULL, type INTEGER NOT NULL,
            sequence INTEGER NOT NULL, created_at INTEGER NOT NULL, created_by INTEGER NOT NULL,
            modified_at INTEGER NOT NULL, modified_by INTEGER NOT NULL, deleted INTEGER NOT NULL, body BLOB);
        CREATE UNIQUE INDEX record_name ON record (zone, name);
        CREATE UNIQUE INDEX record_feed ON record (zone, sequence);
        CREATE INDEX record_tombstone ON record (zone, sequence) WHERE deleted = 1;
        CREATE INDEX record_tombstone_age ON record (modified_at, zone, sequence) WHERE deleted = 1;
        CREATE TABLE edge (
            zone INTEGER NOT NULL, target TEXT NOT NULL, action INTEGER NOT NULL, source INTEGER NOT NULL,
            made INTEGER NOT NULL, PRIMARY KEY (zone, target, action, source)) WITHOUT ROWID;
        CREATE TABLE job (
            id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, subject INTEGER NOT NULL, body BLOB NOT NULL,
            position INTEGER NOT NULL, last INTEGER NOT NULL);
        CREATE TABLE stray (
            type INTEGER NOT NULL, field TEXT NOT NULL, job INTEGER NOT NULL, PRIMARY KEY (type, field)) WITHOUT ROWID;
        CREATE TABLE idempotency (
            id INTEGER PRIMARY KEY, database INTEGER NOT NULL, caller TEXT NOT NULL, key BLOB NOT NULL,
            position INTEGER NOT NULL, hash BLOB NOT NULL, outcome BLOB NOT NULL, expires INTEGER NOT NULL,
            UNIQUE (database, caller, key, position));
        CREATE INDEX idempotency_expires ON idempotency (expires);
        CREATE TABLE index_number (
            field INTEGER NOT NULL, zone INTEGER NOT NULL, value INTEGER NOT NULL, record INTEGER NOT NULL,
            PRIMARY KEY (field, zone, value, record)) WITHOUT ROWID;
        CREATE TABLE index_bytes (
            field INTEGER NOT NULL, zone INTEGER NOT NULL, value BLOB NOT NULL, record INTEGER NOT NULL,
            PRIMARY KEY (field, zone, value, record)) WITHOUT ROWID;
        CREATE TABLE index_missing (
            field INTEGER NOT NULL, zone INTEGER NOT NULL, record INTEGER NOT NULL,
            PRIMARY KEY (field, zone, record)) WITHOUT ROWID;
        """
}

/// The life of a zone row.
enum ZoneLife {
    static let live: Int64 = 0
    /// Deleted; its records and index rows are still to be reclaimed.
    static let retired: Int64 = 1
    /// Deleted and empty; kept so that the next zone of the name gets a greater incarnation.
    static let tombstone: Int64 = 2
}

/// The life of a row of `field_index`; its id is the column `field` of the index rows.
enum IndexLife {
    /// Kept up by writes, and being filled with what was there before.
    static let building: Int64 = 0
    static let ready: Int64 = 1
    /// Its rows are being removed; then its own row goes, so that no id is given twice while rows of it are left.
    static let dropped: Int64 = 2
}
