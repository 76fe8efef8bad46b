package import GRDB
import RecordModel
import Wire

/// The rows of effects on other groups, and of how far those of others were applied here.
///
/// The last sequence given for a destination is never given again within an incarnation, so a receiver that skips what
/// is not above its watermark applies each effect once, however often it is sent.
struct Outbox {
    /// Effects that may wait for one destination, and their bytes.
    ///
    /// Nothing is dropped: matching waits where a tenth is used, and subscriptions are refused where nine tenths are.
    /// Below `FeatureLevel.exactNotifications` what came when there were more was dropped.
    struct Bounds: Hashable, Sendable {
        var rowsMax: Int64 = 100_000
        var bytesMax: Int64 = 64 << 20
    }

    static let tables = """
        CREATE TABLE IF NOT EXISTS outbox_self (
            id INTEGER PRIMARY KEY, incarnation INTEGER NOT NULL, losses INTEGER NOT NULL,
            watchers INTEGER NOT NULL);
        INSERT OR IGNORE INTO outbox_self VALUES (1, 1, 0, 0);
        CREATE TABLE IF NOT EXISTS outbox_stream (
            destination INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL,
            is_full INTEGER NOT NULL);
        CREATE TABLE IF NOT EXISTS outbox (
            destination INTEGER NOT NULL, sequence INTEGER NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (destination, sequence)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS inbox (
            source INTEGER PRIMARY KEY, incarnation INTEGER NOT NULL, sequence INTEGER NOT NULL);
        """

    let db: Database
    let level: FeatureLevel
    var bounds = Bounds()

    /// How much waits for one destination.
    private struct Stream {
        var sequence: Int64 = 0
        var rows: Int64 = 0
        var bytes: Int64 = 0
        var isFull = false
    }

    private func stream(_ destination: UInt64) throws -> Stream {
        try db.first(
            "SELECT sequence, rows, bytes, is_full FROM outbox_stream WHERE destination = ?", destination
        ) { row in
            Stream(
                sequence: row.integer(0), rows: row.integer(1), bytes: row.integer(2), isFull: row.integer(3) != 0)
        } ?? Stream()
    }

    private func write(_ stream: Stream, _ destination: UInt64) throws {
        try Invariant.check(
            stream.rows >= 0 && stream.bytes >= 0 && (stream.rows > 0 || stream.bytes == 0),
            "\(stream.rows) effects of \(stream.bytes) bytes wait for group \(destination)")
        try db.run(
            "INSERT OR REPLACE INTO outbox_stream VALUES (?, ?, ?, ?, ?)", destination, stream.sequence, stream.rows,
            stream.bytes, stream.isFull ? 1 : 0)
    }

    /// Whether subscriptions with copies at a destination have to wait.
    func isFull(for destination: UInt64) throws -> Bool {
        let stream = try stream(destination)
        return stream.isFull || stream.rows >= bounds.rowsMax / 10 * 9 || stream.bytes >= bounds.bytesMax / 10 * 9
    }

    /// A stream for which `isFull` holds, within the usual bounds.
    static let fullStream: String = {
        let bounds = Bounds()
        return "SELECT 1 FROM outbox_stream WHERE is_full = 1 OR rows >= \(bounds.rowsMax / 10 * 9) "
            + "OR bytes >= \(bounds.bytesMax / 10 * 9)"
    }()

    /// Whether matches may be sent to a destination: not so many that others would be late.
    func hasRoom(for destination: UInt64) throws -> Bool {
        let stream = try stream(destination)
        return stream.rows < bounds.rowsMax / 10 && stream.bytes < bounds.bytesMax / 10
    }

    /// Has a destination do something.
    func send(_ effect: Effect, to destination: UInt64) throws {
        var stream = try stream(destination)
        let body = effect.encoded()
        let isTooMuch =
            stream.isFull || stream.rows >= bounds.rowsMax || stream.bytes + Int64(body.count) > bounds.bytesMax
        if isTooMuch && level < .exactNotifications {
            stream.isFull = true
        } else {
            stream.sequence += 1
            stream.rows += 1
            stream.bytes += Int64(body.count)
            try db.run("INSERT INTO outbox VALUES (?, ?, ?)", destination, stream.sequence, body)
        }
        try write(stream, destination)
    }

    /// The sequence of the last effect on a destination.
    func mark(of destination: UInt64) throws -> OutboxMark {
        OutboxMark(destination: destination, sequence: UInt64(bitPattern: try stream(destination).sequence))
    }

    /// Removes what was delivered; a destination that lost something is told.
    /// - Returns: whether matching waited for that and can go on.
    func acknowledge(_ acknowledgement: OutboxAcknowledgement) throws -> Bool {
        guard try incarnation() == acknowledgement.incarnation else { return false }
        let key = acknowledgement.destination
        let through = Int64(clamping: acknowledgement.through)
        let delivered = try db.first(
            "SELECT count(*), coalesce(sum(length(body)), 0) FROM outbox WHERE destination = ? AND sequence <= ?", key,
            through
        ) { (rows: $0.integer(0), bytes: $0.integer(1)) }
        guard let delivered, delivered.rows > 0 else { return false }
        try db.run("DELETE FROM outbox WHERE destination = ? AND sequence <= ?", key, through)
        var stream = try stream(acknowledgement.destination)
        stream.rows -= delivered.rows
        stream.bytes -= delivered.bytes
        let isToTell = stream.isFull && (stream.rows == 0 || level >= .exactNotifications)
        if isToTell { stream.isFull = false }
        try write(stream, acknowledgement.destination)
        if isToTell { try send(.lost, to: acknowledgement.destination) }
        guard level >= .exactNotifications, stream.rows < bounds.rowsMax / 20, stream.bytes < bounds.bytesMax / 20
        else { return false }
        return try MatchingQueue(db: db, level: level).wake(acknowledgement.destination)
    }

    /// Tells all homes that may have subscriptions to a container's data that changes of it were lost.
    func tellLoss(of container: String) throws {
        let homes = try db.all("SELECT source FROM inbox ORDER BY source") {
            UInt64(bitPattern: $0.integer(0))
        }
        for home in homes { try send(.lostOf(container: container), to: home) }
    }

    /// Applies the effects of another group, each once and in order.
    func receive(_ delivery: OutboxDelivery, perform: (Effect) throws -> Void) throws -> OutboxReceipt {
        guard try isOfThisLife(delivery), !delivery.effects.isEmpty else { return OutboxReceipt(isTaken: false) }
        let watermark = try watermark(of: delivery.source, in: delivery.incarnation)
        if delivery.last <= watermark { return OutboxReceipt(isTaken: true) }
        // What the source has removed and this group never saw cannot come any more.
        var receipt = OutboxReceipt(isTaken: true)
        receipt.hasLost = delivery.first > watermark + 1
        if receipt.hasLost { try countLoss(from: delivery.source) }
        for (offset, effect) in delivery.effects.enumerated() where delivery.first + UInt64(offset) > watermark {
            switch effect {
            case .lost:
                receipt.hasLost = true
                try countLoss(from: delivery.source)
            case .lostOf(let container):
                receipt.hasLost = true
                try countLoss(of: container)
            case .resend: try resendCopies()
            case .watch, .unwatch, .notify, .end: try perform(effect)
            }
        }
        try setWatermark(of: delivery.source, in: delivery.incarnation, to: delivery.last)
        return receipt
    }

    /// After a restore, streams from before are over; those of groups that began a new incarnation earlier wait until
    /// this one does, too, or it would forget what they brought.
    private func isOfThisLife(_ delivery: OutboxDelivery) throws -> Bool {
        let incarnation = try incarnation()
        return level < .exactNotifications
            ? incarnation <= delivery.incarnation : incarnation == delivery.incarnation
    }

    func incarnation() throws -> UInt64 { try Self.incarnation(in: db) }

    static func incarnation(in db: Database) throws -> UInt64 {
        try db.first("SELECT incarnation FROM outbox_self") { UInt64(bitPattern: $0.integer(0)) } ?? 1
    }

    /// The watermark of a source, in an incarnation of its streams.
    private func watermark(of source: UInt64, in incarnation: UInt64) throws -> UInt64 {
        let row = try db.first("SELECT incarnation, sequence FROM inbox WHERE source = ?", source) {
            (UInt64(bitPattern: $0.integer(0)), UInt64(bitPattern: $0.integer(1)))
        }
        guard let row, row.0 == incarnation else { return 0 }
        return row.1
    }

    private func setWatermark(of source: UInt64, in incarnation: UInt64, to sequence: UInt64) throws {
        try db.run("INSERT OR REPLACE INTO inbox VALUES (?, ?, ?)", source, incarnation, sequence)
    }

    /// Ends the tokens of everybody whose notifications are here. Copies of subscriptions may have been lost, too, and
    /// those that fire once have fired without being told of.
    private func countLoss(from source: UInt64) throws {
        try db.run("UPDATE outbox_self SET losses = losses + 1")
        guard level >= .exactNotifications else { return }
        try resendCopies()
        try send(.resend, to: source)
    }

    /// Ends the tokens of a container's users whose notifications are here.
    private func countLoss(of container: String) throws {
        try db.run(
            "INSERT INTO loss VALUES (?, 1) ON CONFLICT (container) DO UPDATE SET losses = losses + 1", container)
    }

    private func resendCopies() throws {
        try db.run("UPDATE subscription SET is_sent = 0 WHERE is_sent = 1")
    }

    /// After a restore: nothing of the streams from before counts, and copies of subscriptions come again from their
    /// homes.
    func begin(incarnation: Int64) throws {
        guard try self.incarnation() < UInt64(bitPattern: incarnation) else { return }
        try db.run("UPDATE outbox_self SET incarnation = ?, watchers = watchers + 1", incarnation)
        let later = level < .exactNotifications ? [] : ["matching", "matching_queue", "watched"]
        for table in ["outbox", "outbox_stream", "inbox", "watcher"] + later {
            try db.run("DELETE FROM \(table)")
        }
        try resendCopies()
    }
}

/// What those who deliver read of an outbox.
package enum WaitingEffects {
    /// How many effects wait, for all destinations together.
    package static func count(in db: Database) throws -> Int {
        try db.first("SELECT coalesce(sum(rows), 0) FROM outbox_stream") { Int($0.integer(0)) } ?? 0
    }

    /// The groups for which effects wait, ascending.
    package static func destinations(in db: Database) throws -> [UInt64] {
        try db.all("SELECT destination FROM outbox_stream WHERE rows > 0 ORDER BY destination") {
            UInt64(bitPattern: $0.integer(0))
        }
    }

    /// The effects that a destination is to be given next, of so many bytes, give or take one; nil if none waits.
    package static func nextDelivery(
        from source: UInt64, to destination: UInt64, bytesMax: Int = OutboxDelivery.bytesMax, in db: Database
    ) throws -> OutboxDelivery? {
        var delivery = OutboxDelivery(
            source: source, incarnation: try Outbox.incarnation(in: db), first: 0, effects: [])
        var bytes = 0
        try db.forEach(
            "SELECT sequence, body FROM outbox WHERE destination = ? ORDER BY sequence LIMIT ?", destination,
            Int64(OutboxDelivery.effectsMax)
        ) { row in
            let body = row.bytes(1)
            bytes += body.count
            if !delivery.effects.isEmpty && bytes > bytesMax { return false }
            let sequence = UInt64(bitPattern: row.integer(0))
            if delivery.effects.isEmpty { delivery.first = sequence }
            try Invariant.check(
                sequence == delivery.first + UInt64(delivery.effects.count),
                "effect \(sequence) on group \(destination) follows \(delivery.last)")
            delivery.effects.append(try Effect(decoding: body))
            return true
        }
        return delivery.effects.isEmpty ? nil : delivery
    }

    /// Whether every effect up to the marks was delivered.
    package static func isDelivered(_ marks: [OutboxMark], in db: Database) throws -> Bool {
        try marks.allSatisfy { mark in
            try db.first(
                "SELECT EXISTS (SELECT 1 FROM outbox WHERE destination = ? AND sequence <= ?)", mark.destination,
                mark.sequence
            ) {
                $0.integer(0) == 0
            } ?? true
        }
    }
}
