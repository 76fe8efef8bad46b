import RecordModel
import Wire

/// A change of a zone or a record by the current command, in a database that somebody watches.
struct WatchedChange {
    var zone: ZoneKey
    /// Tells it from every other change: the zone's incarnation and sequence.
    var tag: ChangeTag
    /// The type of the record; nil where the zone itself came or went.
    var type: String?
    /// The record, where queries may match it: as it is now, or as it was before it was deleted.
    var record: IndexedRecord?
    /// Of a zone `deleted` or `updated`.
    var event: Match.Event = .updated
}

/// Who makes a change, and with which device.
struct ChangeOrigin: Hashable {
    var user: String?
    /// As the device names itself.
    var client: String?
}

/// What is matched with subscriptions of one kind.
enum QueuedChange {
    /// A record, for those whose queries may match it.
    case record(QueryMatching)
    /// What one command changed in a custom zone, for those who watch the zone or its database.
    case zone(ZoneMatching)

    var zone: ZoneKey {
        switch self {
        case .record(let matching): matching.change.zone
        case .zone(let matching): matching.change.zone
        }
    }
}

/// A change of a record, and who made it when.
struct QueryMatching {
    var change: WatchedChange
    var origin: ChangeOrigin
    /// Milliseconds since 1970.
    var time: Int64
}

/// The changes of a zone by one command and one device.
struct ZoneMatching {
    /// The last of them; without a record.
    var change: WatchedChange
    /// The types of the records; nil among them is the zone itself.
    var types: Set<String?>
    var origin: ChangeOrigin
    /// Milliseconds since 1970.
    var time: Int64
}

extension WatchedChange {
    /// 16 bytes that are the same wherever the change is told of, and no other change's.
    func notificationID(at level: FeatureLevel) -> [UInt8] {
        var writer = WireWriter()
        writer.field(1) { zone.encode(to: &$0) }
        writer.field(2) { tag.encode(to: &$0) }
        writer.field(3, type == nil)
        // The end of a zone has the tag of what was done there last, be it only its beginning.
        if level >= .namedEnds, type == nil, event == .deleted { writer.field(5, true) }
        let first = fnv1a(writer.bytes)
        writer.field(4, first)
        let second = fnv1a(writer.bytes)
        return withUnsafeBytes(of: first.bigEndian) { Array($0) } + withUnsafeBytes(of: second.bigEndian) { Array($0) }
    }
}

extension QueuedChange: WireUnion {
    func encode(to writer: inout WireWriter) {
        switch self {
        case .record(let matching): matching.write(1, to: &writer)
        case .zone(let matching): matching.write(2, to: &writer)
        }
    }

    init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .record(try reader.message())
        case 2: self = .zone(try reader.message())
        default: return nil
        }
    }
}

extension QueryMatching: WireMessage {
    static var blank: Self {
        let change = WatchedChange(
            zone: .blank, tag: .blank, type: nil,
            record: IndexedRecord(name: "", sequence: 0, created: .blank, modified: .blank, fields: Fields()))
        return QueryMatching(change: change, origin: ChangeOrigin(), time: 0)
    }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &change.zone)
        try wire.required(2, &change.tag)
        try wire.field(3, &change.type)
        try wire.required(4, &change.event)
        try wire.field(5, &origin.client)
        try wire.field(6, &time)
        try wire.required(7, &record.name)
        try wire.required(8, &record.sequence)
        try wire.required(9, &record.created)
        try wire.required(10, &record.modified)
        try wire.field(11, nested: &record.fields)
        try wire.field(12, &origin.user)
    }

    /// Only changes of records are matched with queries.
    private var record: IndexedRecord {
        get {
            guard let record = change.record else { preconditionFailure("a change of a zone matches no query") }
            return record
        }
        set { change.record = newValue }
    }
}

extension ZoneMatching: WireMessage {
    static var blank: Self {
        ZoneMatching(
            change: WatchedChange(zone: .blank, tag: .blank, type: nil), types: [], origin: ChangeOrigin(), time: 0)
    }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &change.zone)
        try wire.required(2, &change.tag)
        try wire.field(3, &change.type)
        try wire.field(4, &recordTypes)
        try wire.field(5, &hasZone, unless: false)
        try wire.field(6, &time)
        try wire.field(7, &origin.user)
        try wire.field(8, &origin.client)
        try wire.field(9, &endsZone, unless: false)
    }

    /// Whether the zone was deleted. From `FeatureLevel.boundSubscriptions` on.
    var endsZone: Bool {
        get { change.type == nil && change.event == .deleted }
        set { if newValue { change.event = .deleted } }
    }

    private var recordTypes: [String] {
        get { types.compactMap { $0 }.sorted() }
        set { types = types.filter { $0 == nil }.union(newValue.map(Optional.some)) }
    }

    private var hasZone: Bool {
        get { types.contains(nil) }
        set { if newValue { types.insert(nil) } else { types.remove(nil) } }
    }
}
