import RecordModel
import Wire

/// A position in a query's order, as clients carry it to the next page.
///
/// Opaque to clients, but not secret: it only says where to go on, and every record after it is judged as on the first
/// page.
struct QueryCursor: Hashable {
    /// What the query was; a cursor for another one is refused.
    var queryHash: UInt64
    var incarnation: UInt64
    var position: QueryPosition

    /// FNV-1a of the query and its zone: stable across nodes and
    /// versions.
    static func hash(_ query: Query, zone: ZoneKey) -> UInt64 {
        fnv1a(zone.encoded() + query.encoded())
    }
}

extension QueryCursor: WireCodable {
    /// 1 query hash, 2 incarnation, 3 key (nested: 1 number, 2 bytes, nothing for a missing value), 4 record id.
    func encode(to writer: inout WireWriter) {
        writer.field(1, queryHash)
        writer.field(2, incarnation)
        for key in position.keys {
            writer.field(3) { nested in
                switch key {
                case .number(let number): nested.field(1, signed: number)
                case .bytes(let bytes): nested.field(2, bytes)
                case nil: break
                }
            }
        }
        if let recordID = position.recordID { writer.field(4, signed: recordID) }
    }

    init(from reader: inout WireReader) throws(WireError) {
        self.init(queryHash: 0, incarnation: 0, position: QueryPosition(keys: [], recordID: nil))
        while let field = try reader.nextField() {
            switch field {
            case 1: queryHash = try reader.unsigned()
            case 2: incarnation = try reader.unsigned()
            case 3: position.keys.append(try Self.key(from: try reader.nested()))
            case 4: position.recordID = try reader.signed()
            default: try reader.skip()
            }
        }
        guard position.keys.count <= Limits.sortsMax + 1 else { throw .invalidValue(field: 3) }
    }

    private static func key(from reader: WireReader) throws(WireError) -> IndexKey? {
        var reader = reader
        var key: IndexKey?
        while let field = try reader.nextField() {
            switch field {
            case 1: key = .number(try reader.signed())
            case 2: key = .bytes(try reader.array())
            default: try reader.skip()
            }
        }
        return key
    }
}
