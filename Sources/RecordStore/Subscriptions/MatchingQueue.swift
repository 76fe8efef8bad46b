import GRDB
import RecordModel
import Wire

/// Changes that wait to be matched with subscriptions, those of each container in the order of their commits.
///
/// Matching waits here rather than being dropped: while a command has looked at enough subscriptions, and while too
/// much waits for a destination. A container whose changes come faster than that for long loses some; all its users
/// with subscriptions on this shard are told once there is room again.
struct MatchingQueue {
    /// Changes of one container that may wait, and their bytes.
    struct Bounds: Hashable, Sendable {
        var rowsMax: Int64 = 10_000
        var bytesMax: Int64 = 16 << 20
    }

    static let tables = """
        CREATE TABLE matching_queue (
            container TEXT PRIMARY KEY, rows INTEGER NOT NULL, bytes INTEGER NOT NULL, waits_for INTEGER,
            is_lost INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE matching (
            id INTEGER PRIMARY KEY, container TEXT NOT NULL, position INTEGER NOT NULL, last INTEGER NOT NULL,
            body BLOB NOT NULL);
        CREATE INDEX matching_container ON matching (container, id);
        """

    /// Whether something waits that can be gone on with.
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

    private struct State {
        var rows: Int64 = 0
        var bytes: Int64 = 0
        var waitsFor: Int64?
        var isLost = false
    }

    let db: Database
    var bounds = Bounds()

    private func state(of container: String) throws -> State? {
        try SQLStatement(
            cached: "SELECT rows, bytes, waits_for, is_lost FROM matching_queue WHERE container = ?", in: db
        ).first(.text(container)) { row in
            State(
                rows: row.integer(0), bytes: row.integer(1), waitsFor: row.isNull(2) ? nil : row.integer(2),
                isLost: row.integer(3) != 0)
        }
    }

    private func write(_ state: State, of container: String) throws {
        try Invariant.check(
            state.rows >= 0 && state.bytes >= 0 && (state.rows > 0 || state.bytes == 0),
            "\(state.rows) changes of container \(container) wait, of \(state.bytes) bytes")
        if state.rows == 0 && !state.isLost {
            return try SQLStatement(cached: "DELETE FROM matching_queue WHERE container = ?", in: db)
                .run(.text(container))
        }
        try SQLStatement(cached: "INSERT OR REPLACE INTO matching_queue VALUES (?, ?, ?, ?, ?)", in: db).run(
            .text(container), .integer(state.rows), .integer(state.bytes),
            state.waitsFor.map { .integer($0) } ?? .null, .integer(state.isLost ? 1 : 0))
    }

    func isEmpty(of container: String) throws -> Bool { try state(of: container) == nil }

    /// Has a change wait; where too many do, it is lost.
    /// - Parameter waitsFor: a destination for which too much waits.
    func add(_ leftover: Matcher.Leftover) throws {
        let container = leftover.change.zone.database.container
        let body = leftover.change.encoded()
        var state = try state(of: container) ?? State()
        if state.rows >= bounds.rowsMax || state.bytes + Int64(body.count) > bounds.bytesMax {
            state.isLost = true
        } else {
            if state.rows == 0 { state.waitsFor = leftover.stop.waitsFor.map { Int64(bitPattern: $0) } }
            state.rows += 1
            state.bytes += Int64(body.count)
            try SQLStatement(cached: "INSERT INTO matching VALUES (NULL, ?, ?, ?, ?)", in: db).run(
                .text(container), .integer(leftover.stop.position), .integer(leftover.last), .blob(body))
        }
        try write(state, of: container)
    }

    /// The containers that can be gone on with; those whose first change waits longest come first.
    func ready(limit: Int) throws -> [String] {
        try SQLStatement(
            cached: """
                SELECT container FROM matching_queue q WHERE waits_for IS NULL
                ORDER BY (SELECT min(id) FROM matching m WHERE m.container = q.container), container LIMIT ?
                """, in: db
        ).all(.integer(Int64(limit))) { $0.text(0) }
    }

    func first(of container: String) throws -> Row? {
        try SQLStatement(
            cached: "SELECT id, position, last, body FROM matching WHERE container = ? ORDER BY id LIMIT 1", in: db
        ).first(.text(container)) {
            Row(id: $0.integer(0), position: $0.integer(1), last: $0.integer(2), body: $0.bytes(3))
        }
    }

    /// The first change of a container was matched up to a place.
    /// - Parameter stop: nil where nothing of it is left.
    func advance(_ row: Row, of container: String, to stop: Matcher.Stop?) throws {
        var state = try state(of: container) ?? State()
        if let stop {
            try SQLStatement(cached: "UPDATE matching SET position = ? WHERE id = ?", in: db)
                .run(.integer(stop.position), .integer(row.id))
            state.waitsFor = stop.waitsFor.map { Int64(bitPattern: $0) }
        } else {
            try SQLStatement(cached: "DELETE FROM matching WHERE id = ?", in: db).run(.integer(row.id))
            state.rows -= 1
            state.bytes -= Int64(row.body.count)
        }
        try write(state, of: container)
    }

    /// Goes on with matching: containers have equal shares.
    /// - Parameters:
    ///   - bytes: of bodies that may be read, give or take one; counted down.
    ///   - open: a database by its key.
    /// - Returns: how many rows that counts for.
    func work(
        budget: Int, bytes: inout Int, _ matcher: Matcher, level: FeatureLevel,
        open: (DatabaseKey) throws -> OpenDatabase
    ) throws -> Int {
        let containers = try ready(limit: budget)
        var used = 0
        for container in containers {
            var left = max(budget / containers.count, 1)
            var stop: Matcher.Stop?
            while left > 0, bytes > 0, stop == nil, let row = try first(of: container) {
                let before = left
                let change = try QueuedChange(decoding: row.body)
                bytes -= row.body.count
                let database = try open(change.zone.database)
                stop = try matcher.match(change, in: database, after: row.position, through: row.last, &left)
                try advance(row, of: container, to: stop)
                left = min(left, before - 1)
                used += before - left
            }
            if try takeLoss(of: container) { try Outbox(db: db, level: level).tellLoss(of: container) }
        }
        return used
    }

    /// Whether a container's changes were lost, and there is room again: then its users are to be told, once.
    func takeLoss(of container: String) throws -> Bool {
        guard var state = try state(of: container), state.isLost, state.rows <= bounds.rowsMax / 2,
            state.bytes <= bounds.bytesMax / 2
        else { return false }
        state.isLost = false
        try write(state, of: container)
        return true
    }

    /// There is room for effects on a destination again.
    /// - Returns: whether something waited for that.
    func wake(_ destination: UInt64) throws -> Bool {
        try SQLStatement(cached: "UPDATE matching_queue SET waits_for = NULL WHERE waits_for = ?", in: db)
            .run(.integer(Int64(bitPattern: destination)))
        return db.changesCount > 0
    }

    /// Removes a part of what waits of a container; uses up the budget where more is left.
    func remove(container: String, budget: inout Int) throws {
        try SQLStatement(
            cached: """
                DELETE FROM matching WHERE id IN (SELECT id FROM matching WHERE container = ? ORDER BY id LIMIT ?)
                """, in: db
        ).run(.text(container), .integer(Int64(budget)))
        budget -= db.changesCount
        guard budget > 0 else { return }
        for table in ["matching_queue", "loss"] {
            try SQLStatement(cached: "DELETE FROM \(table) WHERE container = ?", in: db).run(.text(container))
        }
    }

    /// What `FeatureLevel.exactNotifications` brings: changes that wait move here, databases that are watched are known
    /// each, and homes send all copies again, as some may have been lost.
    /// - Returns: whether there is something to do.
    static func raise(in db: Database) throws -> Bool {
        let queue = MatchingQueue(db: db)
        // One at a time: there may be any number of them.
        try SQLStatement(cached: "SELECT position, last, body FROM job WHERE kind = ? ORDER BY id", in: db)
            .forEach([.integer(Job.Kind.match.rawValue)]) { row in
                try queue.add(
                    Matcher.Leftover(
                        change: .record(try QueryMatching(decoding: row.bytes(2))),
                        stop: Matcher.Stop(position: row.integer(0)), last: row.integer(1)))
                return true
            }
        try SQLStatement(cached: "DELETE FROM job WHERE kind = ?", in: db).run(.integer(Job.Kind.match.rawValue))
        try SQLStatement(
            cached: """
                INSERT INTO watched SELECT DISTINCT container, environment, scope, owner,
                    (SELECT watchers FROM outbox_self) FROM watcher
                """, in: db
        ).run()
        try SQLStatement(cached: "UPDATE subscription SET is_sent = 0 WHERE is_sent = 1", in: db).run()
        return try db.changesCount > 0 || !queue.ready(limit: 1).isEmpty
    }
}
