package import GRDB
package import RecordModel
package import Wire

/// Who reads a user's notifications and has its place kept with them: a webhook, or a device's token.
package struct LogReader: Hashable, Sendable {
    /// Grows with each move, from 1.
    package var version: UInt64
    /// When it goes by itself, in milliseconds since 1970; nil: never.
    package var expires: Int64?
    /// What its maker keeps: shards do not look into it.
    package var body: [UInt8]

    package init(version: UInt64, expires: Int64?, body: [UInt8]) {
        self.version = version
        self.expires = expires
        self.body = body
    }

    /// Bytes of a body.
    package static let bytesMax = 16 << 10
    /// Readers of one user; where another comes, the one that expires first goes.
    package static let countMax: Int64 = 100
}

/// What is done to the readers of a user's notifications, at the user's home. The outcome is a `LogReaderOutcome`.
package enum LogReaderCommand: Hashable, Sendable {
    /// Makes or moves one, provided that its version is still what the command's maker saw; 0 where there was none.
    case move(subscriber: DatabaseKey, home: UInt64, time: Int64, name: String, from: UInt64, to: LogReader)
    /// Removes a part of what a subscriber has: notifications, readers, subscriptions and their copies.
    case forget(subscriber: DatabaseKey, time: Int64)
}

/// What became of a `LogReaderCommand`.
package struct LogReaderOutcome: Hashable, Sendable {
    /// Whether the reader was moved, or nothing is left of the subscriber.
    package var isDone: Bool
    package init(isDone: Bool) { self.isDone = isDone }
}

/// The rows of readers.
struct LogReaderTable {
    static let tables = """
        CREATE TABLE log_reader (
            registry INTEGER NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, expires INTEGER,
            body BLOB NOT NULL, PRIMARY KEY (registry, name)) WITHOUT ROWID;
        CREATE INDEX log_reader_expiry ON log_reader (expires) WHERE expires IS NOT NULL;
        """

    let db: Database

    func find(_ name: String, of registry: Int64) throws -> LogReader? {
        try db.first(
            "SELECT version, expires, body FROM log_reader WHERE registry = ? AND name = ?", registry, name
        ) { row in
            LogReader(
                version: UInt64(bitPattern: row.integer(0)), expires: row.isNull(1) ? nil : row.integer(1),
                body: row.bytes(2))
        }
    }

    func write(_ reader: LogReader, _ name: String, of registry: Int64, isNew: Bool) throws {
        if isNew, try count(of: registry) >= LogReader.countMax {
            try db.run(
                """
                DELETE FROM log_reader WHERE registry = ?1 AND name = (SELECT name FROM log_reader
                    WHERE registry = ?1 ORDER BY expires IS NULL, expires, name LIMIT 1)
                """, registry)
        }
        try db.run(
            "INSERT OR REPLACE INTO log_reader VALUES (?, ?, ?, ?, ?)", registry, name, reader.version, reader.expires,
            reader.body)
    }

    private func count(of registry: Int64) throws -> Int64 {
        try db.first("SELECT count(*) FROM log_reader WHERE registry = ?", registry) { $0.integer(0) } ?? 0
    }

    /// Removes those whose time is over.
    /// - Returns: how many that were.
    func purge(at time: Int64, budget: Int) throws -> Int {
        try db.run(
            """
            DELETE FROM log_reader WHERE (registry, name) IN (SELECT registry, name FROM log_reader
                WHERE expires <= ? ORDER BY expires, registry, name LIMIT ?)
            """, time, budget)
        return db.changesCount
    }
}

extension LogReader {
    /// A reader of a user's notifications, by its name.
    /// - Parameter subscriber: the user's private database.
    package static func find(_ name: String, of subscriber: DatabaseKey, in db: Database) throws -> LogReader? {
        guard let registry = try RegistryRow.find(subscriber, in: db) else { return nil }
        return try LogReaderTable(db: db).find(name, of: registry.id)
    }
}

extension LogReaderCommand {
    /// Subscriptions that one command removes with their copies, and other rows.
    private static let forgottenMax = 50
    private static let forgottenRowsMax = 1_000

    /// Moves a reader of notifications, or removes a part of what a subscriber has.
    package func apply(in transaction: RecordTransaction) throws -> LogReaderOutcome {
        transaction.commandNumber += 1
        guard transaction.level >= .webhooks else { return LogReaderOutcome(isDone: false) }
        let (db, home) = (transaction.db, transaction.home)
        switch self {
        case .move(let subscriber, let group, let time, let name, let version, var reader):
            transaction.observe(time)
            let registry = try home.registry(of: subscriber, home: group, life: try transaction.subscriberLife())
            let table = LogReaderTable(db: db)
            let known = try table.find(name, of: registry.id)
            guard known?.version ?? 0 == version, reader.body.count <= LogReader.bytesMax else {
                return LogReaderOutcome(isDone: false)
            }
            reader.version = version + 1
            try table.write(reader, name, of: registry.id, isNew: known == nil)
            return LogReaderOutcome(isDone: true)
        case .forget(let subscriber, let time):
            transaction.observe(time)
            if transaction.level >= .endedLogs, let registry = try RegistryRow.find(subscriber, in: db) {
                try transaction.endSubscriberLives(to: registry.life)
            }
            return LogReaderOutcome(
                isDone: try home.forget(
                    subscriber, subscriptionsMax: Self.forgottenMax, rowsMax: Self.forgottenRowsMax))
        }
    }
}

extension LogReader: WireMessage {
    package static var blank: Self { LogReader(version: 0, expires: nil, body: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &version)
        try wire.field(2, &expires)
        try wire.field(3, &body)
    }
}

extension LogReaderCommand: WireUnion {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .move(let subscriber, let home, let time, let name, let version, let reader):
            writer.parts(1, subscriber, home, time, name, version, reader)
        case .forget(let subscriber, let time): writer.parts(2, subscriber, time)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1:
            self = try reader.parts { .move(subscriber: $0, home: $1, time: $2, name: $3, from: $4, to: $5) }
        case 2: self = try reader.parts { .forget(subscriber: $0, time: $1) }
        default: return nil
        }
    }
}

extension LogReaderOutcome: WireMessage {
    package static var blank: Self { LogReaderOutcome(isDone: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) { try wire.field(1, &isDone) }
}
