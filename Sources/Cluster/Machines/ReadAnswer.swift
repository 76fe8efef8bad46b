package import RecordModel
package import Wire

/// What a shard answers to a read. Records and preferences come as JSON that the edge passes on: it is rendered once, where the
/// rows are.
package enum ReadAnswer: Hashable, Sendable {
    /// Bytes whose shape the request defines, and a cursor where there is more.
    case found([UInt8], cursor: [UInt8]?)
    case refused(ServiceError)
    /// The shard holds another version of the schema: a lower one has to be installed, a higher one to be fetched.
    case needsSchema(installed: UInt64)
}

extension ReadAnswer: WireCodable {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .found(let bytes, let cursor):
            writer.field(1, bytes)
            if let cursor { writer.field(2, cursor) }
        case .refused(let error): writer.field(3) { error.encode(to: &$0) }
        case .needsSchema(let installed): writer.field(4, installed)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var bytes: [UInt8]?
        var cursor: [UInt8]?
        var other: ReadAnswer?
        while let field = try reader.nextField() {
            switch field {
            case 1: bytes = try reader.array()
            case 2: cursor = try reader.array()
            case 3: other = .refused(try reader.message())
            case 4: other = .needsSchema(installed: try reader.unsigned())
            default: try reader.skip()
            }
        }
        if let bytes {
            self = .found(bytes, cursor: cursor)
        } else if let other {
            self = other
        } else {
            throw .missingField(1)
        }
    }
}
