import RecordModel
import Wire

/// A position in a query's order, as clients carry it to the next page.
///
/// Opaque to clients, but not secret: it only says where to go on, and every record after it is judged as on the first
/// page.
struct QueryCursor: Hashable, WireMessage {
    /// What the query was, and what its order follows; a cursor for another one is refused.
    var queryHash: UInt64
    var incarnation: UInt64
    var position: QueryPosition

    /// FNV-1a of the query with its order, and its zone: the same on every node.
    static func hash(_ query: Query, zone: ZoneKey, type: RecordType) -> UInt64 {
        fnv1a(zone.encoded() + query.encodedWithOrder(in: type))
    }

    static var blank: Self {
        QueryCursor(queryHash: 0, incarnation: 0, position: QueryPosition(keys: [], recordID: nil))
    }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &queryHash)
        try wire.field(2, &incarnation)
        try wire.field(3, &keys)
        try wire.field(4, &position.recordID)
    }

    func check() throws(WireError) {
        guard position.keys.count <= Limits.sortsMax + 1 else { throw .invalidValue(field: 3) }
    }

    private var keys: [Key] {
        get { position.keys.map(Key.init) }
        set { position.keys = newValue.map(\.key) }
    }

    /// Nothing for a missing value.
    private struct Key: WireMessage {
        var key: IndexKey?

        static var blank: Self { Key() }

        mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &key.number)
            try wire.field(2, &key.bytes)
        }
    }
}

/// Positions as bytes whose unsigned order is the order of the records, over all zones of a database: what shards and
/// the node that merges their answers agree on without knowing the query.
///
/// With sort keys: the keys, the zone's name, the record id. Without: the zone's name, the implied keys, the record id.
/// Each part begins with its kind (1, 2 or 3); where it descends, all its bytes are turned over. A position after all
/// that begins with some parts ends with 0xFF, which no part begins with.
struct PositionBytes {
    var order: QueryOrder
    var zoneFirst: Bool

    /// A position in one zone, or, where it has no record id, after all records that begin with its keys.
    struct Place: Hashable {
        /// Nil where the position is after all zones' records with its keys.
        var zone: String?
        var position: QueryPosition
    }

    private static let missing: UInt8 = 1
    private static let present: UInt8 = 2
    private static let last: UInt8 = 3
    private static let end: UInt8 = 0xFF

    func encode(_ place: Place) -> [UInt8] {
        var output: [UInt8] = []
        if zoneFirst, let zone = place.zone { Self.append(.bytes(Array(zone.utf8)), to: &output) }
        for (key, sort) in zip(place.position.keys, order.keys) {
            var part: [UInt8] = []
            if let key {
                Self.append(key, to: &part)
            } else {
                part = [sort.missingFirst == sort.isAscending ? Self.missing : Self.last]
            }
            output += sort.isAscending ? part : part.map { ~$0 }
        }
        guard let recordID = place.position.recordID else { return output + [Self.end] }
        if !zoneFirst, let zone = place.zone { Self.append(.bytes(Array(zone.utf8)), to: &output) }
        var part: [UInt8] = []
        Self.append(.number(recordID), to: &part)
        return output + (order.tiesAscend ? part : part.map { ~$0 })
    }

    /// Nil where the bytes are no position in this order.
    func decode(_ bytes: [UInt8]) -> Place? {
        var rest = bytes[...]
        var place = Place(zone: nil, position: QueryPosition(keys: [], recordID: nil))
        if zoneFirst {
            guard let zone = Self.zone(&rest) else { return nil }
            place.zone = zone
        }
        for sort in order.keys {
            if rest.elementsEqual([Self.end]) { return place }
            let flip: UInt8 = sort.isAscending ? 0 : 0xFF
            if let first = rest.first, [Self.missing, Self.last].contains(first ^ flip) {
                rest.removeFirst()
                place.position.keys.append(nil)
                continue
            }
            guard let key = Self.key(&rest, sort.keyClass, flip) else { return nil }
            place.position.keys.append(key)
        }
        if rest.elementsEqual([Self.end]) { return place }
        if !zoneFirst {
            guard let zone = Self.zone(&rest) else { return nil }
            place.zone = zone
        }
        guard case .number(let recordID)? = Self.key(&rest, .number, order.tiesAscend ? 0 : 0xFF), rest.isEmpty else {
            return nil
        }
        place.position.recordID = recordID
        return place
    }

    /// Numbers with their sign turned over, most significant byte first; bytes with each 0 followed by 0xFF, and ended
    /// by 0 and 0, so that a beginning comes before what goes on.
    private static func append(_ key: IndexKey, to output: inout [UInt8]) {
        output.append(present)
        switch key {
        case .number(let number):
            let bits = UInt64(bitPattern: number) ^ (1 << 63)
            withUnsafeBytes(of: bits.bigEndian) { output.append(contentsOf: $0) }
        case .bytes(let bytes):
            for byte in bytes {
                output.append(byte)
                if byte == 0 { output.append(0xFF) }
            }
            output += [0, 0]
        }
    }

    private static func key(_ rest: inout ArraySlice<UInt8>, _ keyClass: IndexClass, _ flip: UInt8) -> IndexKey? {
        guard let kind = rest.popFirst(), kind ^ flip == present else { return nil }
        switch keyClass {
        case .number:
            guard rest.count >= 8 else { return nil }
            let bits = rest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1 ^ flip) }
            rest.removeFirst(8)
            return .number(Int64(bitPattern: bits ^ (1 << 63)))
        case .bytes:
            var bytes: [UInt8] = []
            while let byte = rest.popFirst() {
                guard byte ^ flip == 0 else {
                    bytes.append(byte ^ flip)
                    continue
                }
                switch rest.popFirst().map({ $0 ^ flip }) {
                case 0: return .bytes(bytes)
                case 0xFF: bytes.append(0)
                default: return nil
                }
            }
            return nil
        }
    }

    private static func zone(_ rest: inout ArraySlice<UInt8>) -> String? {
        guard case .bytes(let bytes)? = key(&rest, .bytes, 0) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Where a zone's records go on after a place.
    func start(in zone: String, after place: Place) -> ZoneStart {
        guard let other = place.zone else { return .after(place.position) }
        let before: Int64 = order.tiesAscend ? .min : .max
        let behind: Int64 = order.tiesAscend ? .max : .min
        let isEarlier = zone.utf8.lexicographicallyPrecedes(other.utf8)
        if zone.utf8.elementsEqual(other.utf8) {
            let isWhole = place.position.keys.isEmpty && place.position.recordID == nil
            return isWhole ? .atEnd : .after(place.position)
        }
        if zoneFirst { return isEarlier ? .atEnd : .beginning }
        return .after(QueryPosition(keys: place.position.keys, recordID: isEarlier ? behind : before))
    }

    enum ZoneStart {
        case beginning
        case after(QueryPosition)
        case atEnd
    }
}
