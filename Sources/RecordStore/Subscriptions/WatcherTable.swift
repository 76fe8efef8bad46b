import GRDB
import RecordModel
import Wire

/// The rows of those who watch databases whose changes are on this shard.
struct WatcherTable {
    /// From `FeatureLevel.exactNotifications` on: the databases that have watchers, each with the number of its last
    /// change of them.
    static let tables = """
        CREATE TABLE watched (
            container TEXT NOT NULL, environment INTEGER NOT NULL, scope INTEGER NOT NULL, owner TEXT NOT NULL,
            revision INTEGER NOT NULL, PRIMARY KEY (container, environment, scope, owner)) WITHOUT ROWID;
        CREATE TABLE loss (container TEXT PRIMARY KEY, losses INTEGER NOT NULL) WITHOUT ROWID;
        """

    /// What became of the watchers of a database.
    struct Change {
        var database: DatabaseKey
        /// The revision before.
        var former: Int64
        var revision: Int64
        /// The row that is not there any more.
        var removed: Int64?
        var added: Int64?
    }

    let db: Database
    let level: FeatureLevel

    /// What tells the watchers of a database from those at any other time; 0 where it has none.
    func revision(of database: DatabaseKey) throws -> Int64 {
        if level < .exactNotifications { return try lastNumber() }
        return try db.first(
            "SELECT revision FROM watched WHERE container = ? AND environment = ? AND scope = ? AND owner = ?",
            database.container, database.environment.column, database.scope.column, database.owner
        ) { $0.integer(0) } ?? 0
    }

    /// The last number that a change of watchers or a subscription was given. It only grows, and no watcher has a
    /// greater one.
    func lastNumber() throws -> Int64 {
        try db.first("SELECT watchers FROM outbox_self") { $0.integer(0) } ?? 0
    }

    /// The next number.
    func makeNumber() throws -> Int64 {
        try db.run("UPDATE outbox_self SET watchers = watchers + 1")
        return try lastNumber()
    }

    func all(of database: DatabaseKey) throws -> [(id: Int64, watcher: Watcher)] {
        try db.all(
            """
            SELECT id, body FROM watcher WHERE container = ? AND environment = ? AND scope = ? AND owner = ?
            ORDER BY id
            """, database.container, database.environment.column, database.scope.column, database.owner
        ) { (id: $0.integer(0), watcher: try Watcher(decoding: $0.bytes(1))) }
    }

    private func find(_ watcher: Watcher) throws -> (id: Int64, body: [UInt8])? {
        let database = watcher.database
        return try db.first(
            """
            SELECT id, body FROM watcher WHERE container = ? AND environment = ? AND scope = ? AND owner = ?
                AND user = ? AND name = ?
            """, database.container, database.environment.column, database.scope.column, database.owner,
            watcher.subscriber.owner, watcher.subscription.id
        ) { ($0.integer(0), $0.bytes(1)) }
    }

    /// Adds a watcher, or takes it for the one of the same name; nil where that is the same.
    func install(_ watcher: Watcher) throws -> Change? {
        let (database, body) = (watcher.database, watcher.encoded())
        let former = try revision(of: database)
        let old = try find(watcher)
        if let old, old.body == body, level >= .exactNotifications { return nil }
        let number = try makeNumber()
        var change = Change(database: database, former: former, revision: number, removed: old?.id)
        // Changes that wait to be matched go by the row: one of another life is a watcher that came later.
        if let old, try level < .exactNotifications || Watcher(decoding: old.body).generation == watcher.generation {
            try db.run("UPDATE watcher SET body = ? WHERE id = ?", body, old.id)
            change.added = old.id
        } else {
            if let old { try remove(row: old.id) }
            try db.run(
                "INSERT INTO watcher VALUES (?, ?, ?, ?, ?, ?, ?, ?)", level < .exactNotifications ? nil : number,
                database.container, database.environment.column, database.scope.column, database.owner,
                watcher.subscriber.owner, watcher.subscription.id, body)
            change.added = db.lastInsertedRowID
        }
        try write(change)
        return change
    }

    /// Removes the watcher of a name; nil where there is none.
    func remove(_ watcher: Watcher) throws -> Change? {
        let former = try revision(of: watcher.database)
        let old = try find(watcher)
        // Below the level each removal counts, of whatever.
        if old == nil && level >= .exactNotifications { return nil }
        if let old { try remove(row: old.id) }
        let change = Change(
            database: watcher.database, former: former, revision: try makeNumber(), removed: old?.id)
        try write(change)
        return change
    }

    private func remove(row: Int64) throws {
        try db.run("DELETE FROM watcher WHERE id = ?", row)
    }

    private func write(_ change: Change) throws {
        guard level >= .exactNotifications else { return }
        let database = change.database
        let (environment, scope) = (database.environment.column, database.scope.column)
        let isWatched = try db.first(
            """
            SELECT EXISTS (SELECT 1 FROM watcher WHERE container = ? AND environment = ? AND scope = ? AND owner = ?)
            """, database.container, environment, scope, database.owner
        ) { $0.integer(0) != 0 }
        if isWatched == true {
            try db.run(
                "INSERT OR REPLACE INTO watched VALUES (?, ?, ?, ?, ?)", database.container, environment, scope,
                database.owner, change.revision)
        } else {
            try db.run(
                "DELETE FROM watched WHERE container = ? AND environment = ? AND scope = ? AND owner = ?",
                database.container, environment, scope, database.owner)
        }
    }

    /// Removes a part of those who watch a container; uses up the budget where more is left.
    func remove(container: String, budget: inout Int) throws {
        try db.run(
            """
            DELETE FROM watcher WHERE id IN (SELECT id FROM watcher WHERE container = ?
                ORDER BY environment, scope, owner, user, name LIMIT ?)
            """, container, budget)
        let count = db.changesCount
        budget -= count
        if count > 0 {
            let number = try makeNumber()
            guard level >= .exactNotifications else { return }
            try db.run("UPDATE watched SET revision = ? WHERE container = ?", number, container)
        }
        if budget > 0, level >= .exactNotifications {
            try db.run("DELETE FROM watched WHERE container = ?", container)
        }
    }
}
