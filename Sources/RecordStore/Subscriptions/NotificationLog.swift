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

extension RecordTables {
    /// The notifications of a user after a token, in order, without those of changes that a client made itself.
    /// - Parameters:
    ///   - subscriber: the user's private database.
    ///   - token: nil begins with the first one that is kept.
    ///   - hidden: what was told of records that the reader may not read any more is left out.
    package static func notifications(
        of subscriber: DatabaseKey, since token: NotificationToken?, client: String?, hidden: NotificationLog.Hidden,
        limit: Int, in db: Database
    ) throws -> NotificationLog.Page {
        let registry = try RegistryRow.find(subscriber, in: db) ?? RegistryRow(id: 0, life: 0, sequence: 0, floor: 0)
        var place = try begin(of: registry, subscriber, in: db)
        if let token {
            if let expiry = token.expiry(at: place, end: registry.sequence) { return .expired(expiry) }
            place.sequence = token.sequence
        }
        var entries: [NotificationLog.Entry] = []
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
            guard entries.count < limit, entries.isEmpty || bytes <= notificationPageBytesMax else {
                hasMore = limit > 0
                return false
            }
            entries.append(
                NotificationLog.Entry(
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

    private static let notificationPageBytesMax = 2 << 20
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
        let isOfThisLife =
            owner == begin.owner && incarnation == begin.incarnation && losses == begin.losses
            && (life == begin.life || life == 0) && sequence <= end
        if !isOfThisLife { return .lost }
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
