package import GRDB
import RecordModel
import Wire

/// Changes that wait to be matched with subscriptions, in lanes: those of each database in the order of their commits.
///
/// Matching waits here rather than being dropped: while a command has looked at enough subscriptions, and while too
/// much waits for a destination. A container whose changes come faster than that for long loses some; all its users
/// with subscriptions on this shard are told once there is room again.
///
/// Below `FeatureLevel.filedSubscriptions` a container has one lane. What is in it then is worked off before anything
/// that comes to the lanes of its databases.
struct MatchingQueue {
    /// Changes in the lane of a public database, or in those of all users' databases of a container, that may wait, and
    /// their bytes.
    struct Bounds: Hashable, Sendable {
        var rowsMax: Int64 = 10_000
        var bytesMax: Int64 = 16 << 20
    }

    /// `container` is the name of a lane.
    static let tables = """
        CREATE TABLE matching_queue (
            container TEXT PRIMARY KEY, rows INTEGER NOT NULL, bytes INTEGER NOT NULL, waits_for INTEGER,
            is_lost INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE matching (
            id INTEGER PRIMARY KEY, container TEXT NOT NULL, position INTEGER NOT NULL, last INTEGER NOT NULL,
            body BLOB NOT NULL);
        CREATE INDEX matching_container ON matching (container, id);
        """

    /// Whether something waits that can be gone on with, or is to be told.
    static let exists = "EXISTS (SELECT 1 FROM matching_queue WHERE waits_for IS NULL)"

    /// A change, and how far it was matched.
    struct Row {
        var id: Int64
        /// The watcher that was looked at last.
        var position: Int64
        /// Watchers with greater numbers came after the change.
        var last: Int64
        var body: [UInt8]
    }

    /// No destination.
    private static let never: Int64 = -1

    private struct State {
        var rows: Int64 = 0
        var bytes: Int64 = 0
        var waitsFor: Int64?
        var isLost = false
    }

    let db: Database
    let level: FeatureLevel
    var bounds = Bounds()

    // MARK: Lanes

    /// The name of the lane of a database. No name of a container has a slash.
    private func lane(of database: DatabaseKey) -> String {
        if level < .filedSubscriptions { return database.container }
        let environment = database.environment.column
        return database.scope == .public
            ? "\(database.container)/p\(environment)"
            : "\(database.container)/u\(environment)/\(database.scope.column)/\(database.owner)"
    }

    private static func container(of lane: String) -> String { String(lane.prefix { $0 != "/" }) }

    /// The row that says that changes of a lane were lost: its own, or one for all users' databases of the container,
    /// which has no changes and is never ready.
    private static func noteOfLoss(of lane: String) -> String {
        let users = container(of: lane) + "/u"
        return lane.hasPrefix(users) ? users : lane
    }

    /// How much waits in the lanes that share their bounds with one.
    private func waiting(beside lane: String) throws -> (rows: Int64, bytes: Int64) {
        let note = Self.noteOfLoss(of: lane)
        let end = note == lane ? lane + "\u{1}" : note.dropLast() + "v"
        return try db.first(
            """
            SELECT coalesce(sum(rows), 0), coalesce(sum(bytes), 0) FROM matching_queue
            WHERE container >= ? AND container < ?
            """, note, end
        ) { ($0.integer(0), $0.integer(1)) } ?? (0, 0)
    }

    /// Whether changes wait that are to be matched before those of a database.
    func isWaiting(before database: DatabaseKey) throws -> Bool { try state(of: lane(of: database)) != nil }

    private func state(of lane: String) throws -> State? {
        try db.first("SELECT rows, bytes, waits_for, is_lost FROM matching_queue WHERE container = ?", lane) { row in
            State(
                rows: row.integer(0), bytes: row.integer(1), waitsFor: row.isNull(2) ? nil : row.integer(2),
                isLost: row.integer(3) != 0)
        }
    }

    private func write(_ state: State, of lane: String) throws {
        try Invariant.check(
            state.rows >= 0 && state.bytes >= 0 && (state.rows > 0 || state.bytes == 0),
            "\(state.rows) changes in the lane \(lane) wait, of \(state.bytes) bytes")
        if state.rows == 0 && !state.isLost {
            return try db.run("DELETE FROM matching_queue WHERE container = ?", lane)
        }
        try db.run(
            "INSERT OR REPLACE INTO matching_queue VALUES (?, ?, ?, ?, ?)", lane, state.rows, state.bytes,
            state.waitsFor, state.isLost ? 1 : 0)
    }

    /// Has a change wait; where too many do, it is lost.
    func add(_ leftover: Matcher.Leftover) throws {
        let database = leftover.change.zone.database
        let lane = lane(of: database)
        let body = leftover.change.encoded()
        let waiting = try waiting(beside: lane)
        if waiting.rows >= bounds.rowsMax || waiting.bytes + Int64(body.count) > bounds.bytesMax {
            return try noteLoss(of: lane)
        }
        var state = try state(of: lane) ?? State()
        if state.rows == 0 { state.waitsFor = leftover.stop.waitsFor.map { Int64(bitPattern: $0) } }
        state.rows += 1
        state.bytes += Int64(body.count)
        try db.run(
            "INSERT INTO matching VALUES (NULL, ?, ?, ?, ?)", lane, leftover.stop.position, leftover.last, body)
        try write(state, of: lane)
    }

    private func noteLoss(of lane: String) throws {
        let note = Self.noteOfLoss(of: lane)
        var state = try state(of: note) ?? State()
        if note != lane { state.waitsFor = Self.never }
        state.isLost = true
        try write(state, of: note)
    }

    /// The lanes that can be gone on with; those whose first change waits longest come first.
    func ready(limit: Int) throws -> [String] {
        try db.all(
            """
            SELECT container FROM matching_queue q WHERE waits_for IS NULL
            ORDER BY (SELECT min(id) FROM matching m WHERE m.container = q.container), container LIMIT ?
            """, limit
        ) { $0.text(0) }
    }

    func first(of lane: String) throws -> Row? {
        try db.first(
            "SELECT id, position, last, body FROM matching WHERE container = ? ORDER BY id LIMIT 1", lane
        ) {
            Row(id: $0.integer(0), position: $0.integer(1), last: $0.integer(2), body: $0.bytes(3))
        }
    }

    /// The first change of a lane was matched up to a place.
    /// - Parameter stop: nil where nothing of it is left.
    func advance(_ row: Row, of lane: String, to stop: Matcher.Stop?) throws {
        var state = try state(of: lane) ?? State()
        if let stop {
            try db.run("UPDATE matching SET position = ? WHERE id = ?", stop.position, row.id)
            state.waitsFor = stop.waitsFor.map { Int64(bitPattern: $0) }
        } else {
            try db.run("DELETE FROM matching WHERE id = ?", row.id)
            state.rows -= 1
            state.bytes -= Int64(row.body.count)
        }
        try write(state, of: lane)
    }

    /// Goes on with matching: lanes have equal shares.
    /// - Parameters:
    ///   - bytes: of bodies that may be read, give or take one; counted down.
    ///   - open: a database by its key.
    /// - Returns: how many rows that counts for.
    func work(
        budget: Int, bytes: inout Int, _ matcher: Matcher, open: (DatabaseKey) throws -> OpenDatabase
    ) throws -> Int {
        let lanes = try ready(limit: budget)
        var used = 0
        for lane in lanes {
            var left = max(budget / lanes.count, 1)
            var stop: Matcher.Stop?
            while left > 0, bytes > 0, stop == nil, let row = try first(of: lane) {
                let before = left
                let change = try QueuedChange(decoding: row.body)
                bytes -= row.body.count
                let database = try open(change.zone.database)
                stop = try matcher.match(change, in: database, after: row.position, through: row.last, &left)
                try advance(row, of: lane, to: stop)
                left = min(left, before - 1)
                used += before - left
            }
            if try takeLoss(of: lane) {
                try Outbox(db: db, level: level).tellLoss(of: Self.container(of: lane))
            }
        }
        return used
    }

    /// Whether changes of a lane were lost, and there is room again: then the container's users are to be told, once.
    private func takeLoss(of lane: String) throws -> Bool {
        let note = Self.noteOfLoss(of: lane)
        guard var state = try state(of: note), state.isLost else { return false }
        let waiting = try waiting(beside: lane)
        guard waiting.rows <= bounds.rowsMax / 2, waiting.bytes <= bounds.bytesMax / 2 else { return false }
        state.isLost = false
        try write(state, of: note)
        return true
    }

    /// There is room for effects on a destination again.
    /// - Returns: whether something waited for that.
    func wake(_ destination: UInt64) throws -> Bool {
        try db.run("UPDATE matching_queue SET waits_for = NULL WHERE waits_for = ?", destination)
        return db.changesCount > 0
    }

    /// Removes a part of what waits of a container; uses up the budget where more is left.
    func remove(container: String, budget: inout Int) throws {
        let isOfContainer = "(container = ?1 OR container >= ?1 || '/' AND container < ?1 || '0')"
        try db.run(
            """
            DELETE FROM matching WHERE id IN (SELECT id FROM matching WHERE \(isOfContainer)
            ORDER BY container, id LIMIT ?2)
            """, container, budget)
        budget -= db.changesCount
        guard budget > 0 else { return }
        for table in ["matching_queue", "loss"] {
            try db.run("DELETE FROM \(table) WHERE \(isOfContainer)", container)
        }
    }

    /// What `FeatureLevel.filedSubscriptions` brings: each database has a lane of its own.
    /// - Returns: whether something waits.
    static func divide(in db: Database) throws -> Bool {
        let queue = MatchingQueue(db: db, level: .filedSubscriptions)
        // One at a time: all together may be large.
        var last: Int64 = .min
        let next = "SELECT id, body FROM matching WHERE id > ? ORDER BY id LIMIT 1"
        while let (id, body) = try db.first(next, last, body: { ($0.integer(0), $0.bytes(1)) }) {
            let lane = queue.lane(of: try QueuedChange(decoding: body).zone.database)
            try db.run("UPDATE matching SET container = ? WHERE id = ?", lane, id)
            last = id
        }
        // What was lost is told with the next work: it waits for nobody now.
        try db.execute(
            sql: """
                DELETE FROM matching_queue WHERE is_lost = 0;
                UPDATE matching_queue SET rows = 0, bytes = 0, waits_for = NULL;
                INSERT INTO matching_queue SELECT container, count(*), sum(length(body)), NULL, 0 FROM matching
                GROUP BY container;
                """)
        return try !queue.ready(limit: 1).isEmpty
    }

    /// What `FeatureLevel.exactNotifications` brings: changes that wait move here, databases that are watched are known
    /// each, and homes send all copies again, as some may have been lost.
    /// - Returns: whether there is something to do.
    static func raise(in db: Database) throws -> Bool {
        let queue = MatchingQueue(db: db, level: .exactNotifications)
        // One at a time: there may be any number of them.
        try db.forEach(
            "SELECT position, last, body FROM job WHERE kind = ? ORDER BY id", Job.Kind.match.rawValue
        ) { row in
            try queue.add(
                Matcher.Leftover(
                    change: .record(try QueryMatching(decoding: row.bytes(2))),
                    stop: Matcher.Stop(position: row.integer(0)), last: row.integer(1)))
            return true
        }
        try db.run("DELETE FROM job WHERE kind = ?", Job.Kind.match.rawValue)
        try db.run(
            """
            INSERT INTO watched SELECT DISTINCT container, environment, scope, owner,
                (SELECT watchers FROM outbox_self) FROM watcher
            """)
        try db.run("UPDATE subscription SET is_sent = 0 WHERE is_sent = 1")
        return try db.changesCount > 0 || !queue.ready(limit: 1).isEmpty
    }
}

/// Changes that wait to be matched with subscriptions on a shard.
package struct WaitingMatches: Hashable, Sendable {
    /// How many they are.
    package var count = 0
    /// Whether some wait for nothing but their turn.
    package var isReady = false

    /// What waits on a shard.
    package init(in db: Database) throws {
        let found = try db.first(
            """
            SELECT coalesce(sum(rows), 0), coalesce(sum(CASE WHEN waits_for IS NULL THEN rows END), 0)
            FROM matching_queue
            """
        ) { (Int($0.integer(0)), $0.integer(1) > 0) }
        (count, isReady) = found ?? (0, false)
    }

    /// Nothing.
    package init() {}
}
