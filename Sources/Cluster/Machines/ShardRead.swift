package import Authorization
package import Directory
package import KeyValueStore
package import RecordModel
package import RecordStore
package import Wire

/// What a shard is asked to read. The answer's bytes are described with each case.
package enum ShardRead: Sendable {
    /// The elements of a `records` array, one for each name.
    case lookup(RecordLookup)
    /// The elements of a `records` array, and a cursor.
    case query(RecordQuery, Rendering)
    /// `DatabaseQueryPart`, of the database's zones on this shard, and a position up to which it is complete.
    case databaseQuery(DatabaseQuery, Rendering)
    /// The elements of a `records` array, and the token of the next page.
    case zoneChanges(ZoneChangesRequest, Rendering)
    /// The elements of a `versions` array, and whether there are more.
    case versions(VersionsRequest, Rendering)
    /// `DatabaseChangesPage`.
    case databaseChanges(DatabaseChangesRequest)
    /// `[ZoneState]`, of the database's zones on this shard.
    case zones(DatabaseKey, schemaVersion: UInt64)
    /// `[ZoneState]` of one or none.
    case zone(ZoneKey, schemaVersion: UInt64)
    /// `[IndexState]`, of the schema's indexes on this shard.
    case indexes(SchemaKey, schemaVersion: UInt64)
    /// `UsagePage`.
    case usage(UsageRequest)
    /// `LedgerState`.
    case ledger(DatabaseKey)
    /// The `RecordOutcome` that a request got when it came first; nothing where its idempotency key is not remembered.
    case earlierOutcome(ModifyRecords)
    /// A JSON object. With `numbersAsStrings`, INT64, DOUBLE and TIMESTAMP values are written as strings; a build that
    /// does not know it writes numbers.
    case keyValue(StoreKey, KeyValueRead, numbersAsStrings: Bool = false)
    /// `[Subscription]`: those of a user, whose private database it is, to databases of a scope. Without ids all.
    case subscriptions(SubscriptionsRead)
    /// A JSON object; as of key-value stores, the answer has a token, how many notifications it has, or why the token
    /// cannot be followed.
    case notifications(NotificationsRead)
    /// A `LogReader` of a user's notifications, by its name; nothing where there is none.
    case logReader(DatabaseKey, name: String)
    /// `SubscriberPage` of users with subscriptions or notifications on the shard.
    case subscribers(SubscribersRead)
    /// Whether effects are delivered: one byte, 1 if they are.
    case isDelivered([OutboxMark])
    /// Whether all copies of subscriptions are sent and delivered: one byte, 1 if they are.
    case hasSentCopies
    /// Whether the tables count a file with this SHA-256: one byte, 1 if they do.
    case countsAsset([UInt8])
    /// The group's feature level, as a number in the binary form.
    case level

    /// Whose data it reads.
    package var container: String {
        switch self {
        case .lookup(let lookup): lookup.zone.database.container
        case .query(let query, _): query.zone.database.container
        case .databaseQuery(let query, _): query.database.container
        case .zoneChanges(let request, _): request.zone.database.container
        case .versions(let request, _): request.zone.database.container
        case .databaseChanges(let request): request.database.container
        case .zones(let database, _), .ledger(let database): database.container
        case .zone(let zone, _): zone.database.container
        case .indexes(let key, _): key.container
        case .usage(let request): request.container
        case .earlierOutcome(let command): command.zone.database.container
        case .keyValue(let store, _, _): store.container
        case .subscriptions(let read): read.subscriber.container
        case .notifications(let read): read.subscriber.container
        case .logReader(let subscriber, _): subscriber.container
        case .subscribers(let read): read.key.container
        case .isDelivered, .hasSentCopies, .countsAsset, .level: ""
        }
    }

    /// How records are rendered.
    package struct Rendering: Hashable, Sendable {
        /// The fields to write; nil is all, and an empty list is no field.
        package var desiredKeys: [String]?
        /// Whether INT64, DOUBLE and TIMESTAMP values are written as strings.
        package var numbersAsStrings: Bool
        /// How files are shown.
        package var assets: AssetRendering
        /// Whether encrypted values are left out: for who may see the record, but not these.
        package var leavesSealed = false

        package init(desiredKeys: [String]?, numbersAsStrings: Bool, assets: AssetRendering = .sizes) {
            self.desiredKeys = desiredKeys
            self.numbersAsStrings = numbersAsStrings
            self.assets = assets
        }
    }

    /// What the dictionaries of assets have beside checksum and size.
    package enum AssetRendering: Hashable, Sendable {
        /// Not even a checksum.
        case sizes
        case checksums
        /// A URL that begins with `origin` and is good until a time in milliseconds since 1970.
        case links(origin: String, expires: Int64)
        /// A receipt by which a user may save the file in any field of a zone, until a time.
        case receipts(zone: ZoneKey, user: String, expires: Int64)
        /// Both, for the record's own zone.
        case linksAndReceipts(origin: String, user: String, expires: Int64)
    }

    /// Records of one zone by name, rendered one by one.
    package struct RecordLookup: Sendable {
        /// The zone of all items.
        package var zone: ZoneKey
        /// The schema version that the node which asks holds; a shard with a lower one answers `needsSchema`.
        package var schemaVersion: UInt64
        /// Whose permissions decide about the zone, and about each record.
        package var caller: Caller
        /// The names in the order of the answer, at most `Limits.recordsPerPageMax`.
        package var items: [(name: String, rendering: Rendering)]

        package init(
            zone: ZoneKey, schemaVersion: UInt64, caller: Caller, items: [(name: String, rendering: Rendering)]
        ) {
            self.zone = zone
            self.schemaVersion = schemaVersion
            self.caller = caller
            self.items = items
        }
    }

    /// A read of a user's subscriptions.
    package struct SubscriptionsRead: Hashable, Sendable {
        /// The user's private database.
        package var subscriber: DatabaseKey
        /// Of which databases.
        package var scope: Scope
        /// Those that are asked for; nil is all.
        package var ids: [String]?

        package init(of subscriber: DatabaseKey, _ scope: Scope, ids: [String]?) {
            self.subscriber = subscriber
            self.scope = scope
            self.ids = ids
        }
    }

    /// A read of a user's notifications.
    package struct NotificationsRead: Hashable, Sendable {
        /// The user's private database.
        package var subscriber: DatabaseKey
        /// An encoded `NotificationToken`; nil begins with the first notification that is kept.
        package var token: [UInt8]?
        /// The device that reads: it is not told of its own changes.
        package var client: String?
        /// Notifications of the page; 0 asks for the token of the end, from `FeatureLevel.webhooks` on.
        package var limit: Int
        /// What the reader may not read.
        package var hidden = NotificationLog.Hidden()

        package init(subscriber: DatabaseKey, token: [UInt8]?, client: String?, limit: Int) {
            self.subscriber = subscriber
            self.token = token
            self.client = client
            self.limit = limit
        }
    }

    /// A read of a store of the key-value sidecar.
    package enum KeyValueRead: Hashable, Sendable {
        case get(keys: [String])
        case list(after: String?)
        /// The answer also has the page's token as its cursor, and how many changes it has.
        case changes(since: String?, limit: Int)
        case usage
    }
}

/// A list that a shard answers with.
package struct ShardList<Element: WireCodable & Sendable>: Sendable, WireMessage {
    /// In an order that the read defines.
    package var elements: [Element]

    package init(_ elements: [Element]) { self.elements = elements }

    package static var blank: Self { ShardList([]) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &elements)
    }
}

/// One record of a query over a whole database, with its place in the order over all shards.
package struct RankedRecord: Hashable, Sendable, WireMessage {
    /// Compared as unsigned bytes.
    package var position: [UInt8]
    /// The record, with its zone.
    package var json: [UInt8]

    package static var blank: Self { RankedRecord(position: [], json: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &position)
        try wire.field(2, &json)
    }
}

/// What a shard answers to a read. Records and preferences come as JSON that the edge passes on: it is rendered once,
/// where the rows are.
package enum ReadAnswer: Hashable, Sendable, WireCodable {
    case found(ShardAnswer)
    case refused(ServiceError)
    /// The shard holds another version of the schema: a lower one has to be installed, a higher one to be fetched.
    case needsSchema(installed: UInt64)

    package func encode(to writer: inout WireWriter) {
        var parts = Parts()
        switch self {
        case .found(let answer):
            parts.answer = answer
            parts.bytes = answer.bytes
        case .refused(let error): parts.refusal = error
        case .needsSchema(let installed): parts.installed = installed
        }
        parts.encode(to: &writer)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var parts = try Parts(from: &reader)
        if let bytes = parts.bytes {
            parts.answer.bytes = bytes
            self = .found(parts.answer)
        } else if let refusal = parts.refusal {
            self = .refused(refusal)
        } else if let installed = parts.installed {
            self = .needsSchema(installed: installed)
        } else {
            throw .missingField(1)
        }
    }

    /// The binary form.
    private struct Parts: WireMessage {
        /// Of what was found, and nil of the others.
        var bytes: [UInt8]?
        var answer = ShardAnswer([])
        var refusal: ServiceError?
        var installed: UInt64?

        static var blank: Self { Parts() }

        mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &bytes)
            try wire.field(2, &answer.cursor)
            try wire.field(3, &refusal)
            try wire.field(4, &installed)
            try wire.field(5, &answer.hasMore, unless: false)
            try wire.field(6, &answer.explanation)
            try wire.field(7, &answer.denials, unless: 0)
            try wire.field(8, &answer.changes, unless: 0)
            try wire.field(9, &answer.expiry)
            try wire.field(10, &answer.count, unless: 0)
        }
    }
}

/// What a shard found. The request defines what is in it.
package struct ShardAnswer: Hashable, Sendable {
    /// Encoded or JSON, as the case of `ShardRead` says.
    package var bytes: [UInt8]
    /// Where to go on: a query's cursor or a feed's token.
    package var cursor: [UInt8]?
    /// Whether a feed goes on.
    package var hasMore = false
    /// A JSON object that says how a query was answered.
    package var explanation: [UInt8]?
    /// How many items the caller was refused for lack of permission.
    package var denials = 0
    /// How many records of a query or of a zone's feed there are; a build that does not know it says none.
    package var count = 0
    /// How many changes a page of a key-value store's feed has.
    package var changes = 0
    /// Why a key-value store's feed cannot be followed from the token that was sent; then there is nothing else.
    package var expiry: KeyValueTokenExpiry?

    package init(_ bytes: [UInt8], cursor: [UInt8]? = nil, hasMore: Bool = false) {
        self.bytes = bytes
        self.cursor = cursor
        self.hasMore = hasMore
    }
}
