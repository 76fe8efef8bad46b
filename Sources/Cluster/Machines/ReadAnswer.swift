package import KeyValueStore
package import RecordModel
package import Wire

/// What a shard answers to a read. Records and preferences come as JSON that the edge passes on: it is rendered once,
/// where the rows are.
package enum ReadAnswer: Hashable, Sendable, WireCodable {
    case found(ShardAnswer)
    case refused(ServiceError)
    /// The shard holds another version of the schema: a lower one has to be installed, a higher one to be fetched.
    case needsSchema(installed: UInt64)

    package func encode(to writer: inout WireWriter) {
        switch self {
        case .found(let answer):
            writer.field(1, answer.bytes)
            if let cursor = answer.cursor { writer.field(2, cursor) }
            if answer.hasMore { writer.field(5, true) }
            if let explanation = answer.explanation { writer.field(6, explanation) }
            if answer.denials > 0 { writer.field(7, UInt64(answer.denials)) }
            if answer.changes > 0 { writer.field(8, UInt64(answer.changes)) }
            if let expiry = answer.expiry { writer.field(9, expiry.rawValue) }
        case .refused(let error): writer.field(3) { error.encode(to: &$0) }
        case .needsSchema(let installed): writer.field(4, installed)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var found: ShardAnswer?
        var other: ReadAnswer?
        while let field = try reader.nextField() {
            switch field {
            case 1: found = ShardAnswer(try reader.array())
            case 2: found?.cursor = try reader.array()
            case 3: other = .refused(try reader.message())
            case 4: other = .needsSchema(installed: try reader.unsigned())
            case 5: found?.hasMore = try reader.bool()
            case 6: found?.explanation = try reader.array()
            case 7: found?.denials = Int(clamping: try reader.unsigned())
            case 8: found?.changes = Int(clamping: try reader.unsigned())
            case 9:
                guard let expiry = KeyValueTokenExpiry(rawValue: try reader.string()) else {
                    throw .invalidValue(field: 9)
                }
                found?.expiry = expiry
            default: try reader.skip()
            }
        }
        if let found {
            self = .found(found)
        } else if let other {
            self = other
        } else {
            throw .missingField(1)
        }
    }
}

/// What a shard found. The request defines what is in it.
package struct ShardAnswer: Hashable, Sendable {
    package var bytes: [UInt8]
    /// Where to go on: a query's cursor or a feed's token.
    package var cursor: [UInt8]?
    /// Whether a feed goes on.
    package var hasMore = false
    /// A JSON object that says how a query was answered.
    package var explanation: [UInt8]?
    /// How many items the caller was refused for lack of permission.
    package var denials = 0
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
