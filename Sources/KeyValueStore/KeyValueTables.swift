package import GRDB
package import RecordModel

/// The key-value stores of one shard, as tables of its database.
///
/// Commands change them, one at a time and in the order of the log; what each does depends on the tables and the
/// command and on nothing else, so replicas that applied the same commands have the same rows, integer ids included.
/// Reads run on any connection. Nothing is kept in memory between calls.
package enum KeyValueTables {
    /// As `expectedVersion`: the key must have no value.
    package static let absent = ChangeTag(incarnation: 0, sequence: 0)

    /// Makes the tables, empty; does nothing where they are.
    ///
    /// Names, keys and values are blobs: they are compared byte by byte, and a NUL in them ends nothing. `kv_state.sizes`
    /// is the rule by which values are counted, `forgotten` the time of the last dated key whose answer was forgotten.
    package static func create(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE IF NOT EXISTS kv_shard (
                    id INTEGER PRIMARY KEY CHECK (id = 1),
                    incarnation INTEGER NOT NULL
                ) STRICT;
                INSERT OR IGNORE INTO kv_shard (id, incarnation) VALUES (1, 1);
                CREATE TABLE IF NOT EXISTS kv_state (
                    id INTEGER PRIMARY KEY CHECK (id = 1),
                    sizes INTEGER NOT NULL,
                    forgotten INTEGER NOT NULL
                ) STRICT;
                INSERT OR IGNORE INTO kv_state (id, sizes, forgotten) VALUES (1, 2, 0);
                CREATE TABLE IF NOT EXISTS kv_store (
                    id INTEGER PRIMARY KEY,
                    container BLOB NOT NULL,
                    environment INTEGER NOT NULL,
                    user BLOB NOT NULL,
                    incarnation INTEGER NOT NULL,
                    sequence INTEGER NOT NULL,
                    floor INTEGER NOT NULL,
                    keys INTEGER NOT NULL,
                    bytes INTEGER NOT NULL,
                    tombstones INTEGER NOT NULL,
                    modified INTEGER NOT NULL
                ) STRICT;
                CREATE UNIQUE INDEX IF NOT EXISTS kv_store_name ON kv_store (container, environment, user);
                CREATE TABLE IF NOT EXISTS kv_pair (
                    id INTEGER PRIMARY KEY,
                    store INTEGER NOT NULL,
                    key BLOB NOT NULL,
                    incarnation INTEGER NOT NULL,
                    sequence INTEGER NOT NULL,
                    modified INTEGER NOT NULL,
                    bytes INTEGER NOT NULL,
                    device BLOB,
                    value BLOB
                ) STRICT;
                CREATE UNIQUE INDEX IF NOT EXISTS kv_pair_key ON kv_pair (store, key);
                CREATE UNIQUE INDEX IF NOT EXISTS kv_pair_feed ON kv_pair (store, sequence);
                CREATE INDEX IF NOT EXISTS kv_tombstone ON kv_pair (store, sequence) WHERE value IS NULL;
                CREATE INDEX IF NOT EXISTS kv_tombstone_age ON kv_pair (modified, store, sequence) WHERE value IS NULL;
                CREATE TABLE IF NOT EXISTS kv_answer (
                    id INTEGER PRIMARY KEY,
                    store INTEGER NOT NULL,
                    key BLOB NOT NULL,
                    time INTEGER NOT NULL,
                    digest INTEGER NOT NULL,
                    outcome BLOB NOT NULL
                ) STRICT;
                CREATE UNIQUE INDEX IF NOT EXISTS kv_answer_key ON kv_answer (store, key);
                CREATE INDEX IF NOT EXISTS kv_answer_age ON kv_answer (time, id);
                """)
    }
}

/// Rows that cannot be what was written: the database is damaged. Nothing may be answered from it; a retry does not
/// help.
package struct KeyValueCorruption: Error, Hashable, Sendable {
    package var message: String
}
