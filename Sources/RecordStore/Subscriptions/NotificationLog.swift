package import GRDB
package import RecordModel
package import Wire

/// A place in a user's notifications.
package struct NotificationToken: Hashable, Sendable {
    /// A checksum of whose it is.
    package var owner: UInt64
    /// Of the group's streams: a restore begins another.
    package var incarnation: UInt64
    /// How often something of the container was lost on its way to the group.
    package var losses: Int64
    /// Of the user's row: 0 where there was none yet.
    package var life: Int64
    /// Everything up to here was seen.
    package var sequence: Int64
}

/// What is read of a user's notifications.
package struct NotificationLog: Sendable {
    /// One notification.
    package struct Entry: Hashable, Sendable {
        /// Counts up.
        package var sequence: Int64
        /// Milliseconds since 1970.
        package var time: Int64
        /// A JSON object.
        package var payload: [UInt8]
        /// What a device shows one notification of at a time.
        package var collapseID: String?
    }

    /// What a read came to.
    package enum Page: Sendable {
        case entries([Entry], token: NotificationToken, hasMore: Bool)
        /// Everything is to be fetched again, and the log followed without a token.
        case expired(Expiry)
    }

    /// Why a token cannot be followed.
    package enum Expiry: Sendable {
        /// A backup was restored, or notifications were lost on their way.
        case lost
        case tooOld
    }

    /// Whose records the reader may read, by type. What was told of any other record is left out.
    package struct Readable: Hashable, Sendable {
        /// Types of which the reader may read those that it made.
        package var types: Set<String>
        /// Types of which it may read all records.
        package var typesOfOthers: Set<String>
        package init(types: Set<String>, typesOfOthers: Set<String>) {
            self.types = types
            self.typesOfOthers = typesOfOthers
        }
    }

    /// The same as earlier builds ask for it: types that were dropped are in neither list.
    package struct Hidden: Hashable, Sendable {
        /// Types of which the reader may read no record.
        package var types: [String] = []
        /// Types of which the reader may read only its own.
        package var typesOfOthers: [String] = []
        /// Where it is known, it alone counts.
        package var readable: Readable?
        package init() {}
    }

    static let ageMax: Int64 = 7 * 86_400_000
    static func cutoff(_ now: Int64) -> Int64 { saturating(now, -ageMax) }
}

/// The rows of the logs, for those who write them.
struct NotificationRows {
    /// How far back one that says the same is looked for.
    private static let collapsingMax: Int64 = 32
    /// How many notifications come between two counts of a log.
    private static let countingInterval: Int64 = 64

    let db: Database
    let level: FeatureLevel

    /// Makes an entry of a log; the oldest go where there are too many.
    ///
    /// It has the time of the change: the shard's own lags where nothing else happens, and while all nodes were down.
    /// What is told of late has the time at which it is, so that it is kept as long as others.
    func enter(_ match: Match, _ payload: [UInt8], at time: Int64, in old: RegistryRow) throws {
        let time = level < .changeTimes ? time : max(time, match.time)
        try collapse(match, payload, in: old)
        var registry = old
        registry.sequence += 1
        try Invariant.check(
            registry.floor >= 0 && registry.floor < registry.sequence,
            "notification \(registry.sequence) of registry \(registry.id) comes, and up to \(registry.floor) they went")
        try db.run(
            "INSERT INTO notification VALUES (?, ?, ?, ?, ?, ?, ?)", registry.id, registry.sequence, time,
            match.client,
            // Private records are their owner's to read, whatever roles say.
            match.scope == .private ? nil : match.record?.type, match.record?.isCreator == true ? 1 : 0, payload)
        if let floor = try excess(in: registry) {
            registry.floor = floor
            try db.run("DELETE FROM notification WHERE registry = ? AND sequence <= ?", registry.id, registry.floor)
        }
        try db.run(
            "UPDATE registry SET sequence = ?, floor = ? WHERE id = ?", registry.sequence, registry.floor, registry.id)
    }

    /// Where a log is half full, removes the last notification that says the same of a zone as one that comes: a reader
    /// who has not read that one reads this one, and fetches what both tell of.
    ///
    /// Nothing that a reader lacks goes: what is told to a device and what is not are never taken for the same. A
    /// webhook's stay, as one that is sent again is to be what it was.
    private func collapse(_ match: Match, _ payload: [UInt8], in registry: RegistryRow) throws {
        guard level >= .collapsingLogs, match.record == nil, !match.subscriber.isOfWebhook,
            registry.sequence - registry.floor > Limits.notificationsMax / 2
        else { return }
        var last: Int64?
        try db.forEach(
            """
            SELECT sequence, payload FROM notification WHERE registry = ? AND sequence > ? AND client IS ?
            ORDER BY sequence DESC
            """, registry.id, registry.sequence - Self.collapsingMax, match.client
        ) { row in
            guard NotificationPayload.Stored.areAlike(row.bytes(1), payload) else { return true }
            last = row.integer(0)
            return false
        }
        guard let last else { return }
        try db.run("DELETE FROM notification WHERE registry = ? AND sequence = ?", registry.id, last)
    }

    /// The last of those that are too many in a log; nil where none is. There may be some more until they are counted.
    private func excess(in registry: RegistryRow) throws -> Int64? {
        // At most as many as the numbers that were given.
        guard registry.sequence - registry.floor > Limits.notificationsMax else { return nil }
        guard level >= .collapsingLogs else { return registry.sequence - Limits.notificationsMax }
        guard registry.sequence % Self.countingInterval == 0 else { return nil }
        return try db.first(
            "SELECT sequence FROM notification WHERE registry = ? ORDER BY sequence DESC LIMIT 1 OFFSET ?",
            registry.id, Limits.notificationsMax
        ) { $0.integer(0) }
    }

    /// Removes notifications and readers that are too old at a time.
    /// - Returns: how many rows that were.
    func purge(at time: Int64, budget: Int) throws -> Int {
        let old = try db.all(
            "SELECT registry, sequence FROM notification WHERE time < ? ORDER BY time, registry, sequence LIMIT ?",
            NotificationLog.cutoff(time), budget
        ) { ($0.integer(0), $0.integer(1)) }
        for (registry, sequence) in old {
            try db.run("DELETE FROM notification WHERE registry = ? AND sequence = ?", registry, sequence)
            try db.run("UPDATE registry SET floor = max(floor, ?) WHERE id = ?", sequence, registry)
        }
        return try old.count + LogReaderTable(db: db).purge(at: time, budget: budget)
    }
}

extension NotificationLog {
    /// The notifications of a user after a token, in order, without those of changes that a client made itself.
    /// - Parameters:
    ///   - subscriber: the user's private database.
    ///   - token: nil begins with the first one that is kept.
    ///   - hidden: what was told of records that the reader may not read any more is left out.
    package static func page(
        of subscriber: DatabaseKey, since token: NotificationToken?, client: String?, hidden: Hidden,
        limit: Int, in db: Database
    ) throws -> Page {
        let registry = try RegistryRow.find(subscriber, in: db) ?? RegistryRow(id: 0, life: 0, sequence: 0, floor: 0)
        var place = try begin(of: registry, subscriber, in: db)
        if let token {
            if let expiry = token.expiry(at: place, end: registry.sequence) { return .expired(expiry) }
            place.sequence = token.sequence
        }
        var entries: [Entry] = []
        var (bytes, hasMore) = (0, false)
        try db.forEach(
            """
            SELECT sequence, time, payload, type, is_creator FROM notification
            WHERE registry = ?1 AND sequence > ?2 AND (client IS NULL OR client IS NOT ?3) ORDER BY sequence
            """, registry.id, place.sequence, client
        ) { row in
            if !row.isNull(3), hidden.covers(row.text(3), isCreator: row.integer(4) != 0) { return true }
            let payload = NotificationPayload.Stored(bytes: row.bytes(2))
            bytes += payload.json.count
            guard entries.count < limit, entries.isEmpty || bytes <= pageBytesMax else {
                hasMore = limit > 0
                return false
            }
            entries.append(
                Entry(
                    sequence: row.integer(0), time: row.integer(1), payload: payload.json,
                    collapseID: payload.collapseID))
            return true
        }
        place.sequence = hasMore ? entries.last?.sequence ?? place.sequence : registry.sequence
        return .entries(entries, token: place, hasMore: hasMore)
    }

    /// The place before the first notification that is kept.
    private static func begin(
        of registry: RegistryRow, _ subscriber: DatabaseKey, in db: Database
    ) throws -> NotificationToken {
        let (incarnation, losses) =
            try db.first(
                "SELECT incarnation, losses + coalesce((SELECT losses FROM loss WHERE container = ?), 0) FROM outbox_self",
                subscriber.container
            ) { (UInt64(bitPattern: $0.integer(0)), $0.integer(1)) } ?? (1, 0)
        return NotificationToken(
            owner: fnv1a(subscriber.encoded()), incarnation: incarnation, losses: losses, life: registry.life,
            sequence: registry.floor)
    }

    private static let pageBytesMax = 2 << 20
}

extension NotificationLog.Hidden {
    /// Whether a record is not for the reader.
    fileprivate func covers(_ type: String, isCreator: Bool) -> Bool {
        if let readable { return !(isCreator ? readable.types : readable.typesOfOthers).contains(type) }
        return types.contains(type) || !isCreator && typesOfOthers.contains(type)
    }
}

extension NotificationToken {
    /// Why a token cannot be followed; nil if it can.
    /// - Parameters:
    ///   - begin: the place before the first notification that is kept.
    ///   - end: the number of the last one.
    fileprivate func expiry(at begin: NotificationToken, end: Int64) -> NotificationLog.Expiry? {
        guard owner == begin.owner, incarnation == begin.incarnation, losses == begin.losses else { return .lost }
        guard life == begin.life || life == 0, sequence <= end else { return .lost }
        return sequence < begin.sequence ? .tooOld : nil
    }
}

extension NotificationLog.Readable: WireMessage {
    package static var blank: Self { Self(types: [], typesOfOthers: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &inOrder)
        try wire.field(2, &othersInOrder)
    }

    private var inOrder: [String] {
        get { types.sorted() }
        set { types = Set(newValue) }
    }

    private var othersInOrder: [String] {
        get { typesOfOthers.sorted() }
        set { typesOfOthers = Set(newValue) }
    }
}

extension NotificationToken: WireMessage {
    package static var blank: Self { NotificationToken(owner: 0, incarnation: 0, losses: 0, life: 0, sequence: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &incarnation)
        try wire.required(2, &losses)
        try wire.required(3, &life)
        try wire.required(4, &sequence)
        try wire.required(5, &owner)
    }
}
