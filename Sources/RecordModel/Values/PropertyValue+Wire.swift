package import Wire

/// One field, whose number says the kind.
extension PropertyValue: WireCodable {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .string(let text): writer.field(1, text)
        case .data(let bytes): writer.field(2, bytes)
        case .int64(let number): writer.field(3, signed: number)
        case .double(let number): writer.field(4, double: number)
        case .date(let milliseconds): writer.field(5, signed: milliseconds)
        case .bool(let flag): writer.field(6, flag)
        case .array(let members):
            writer.field(7) { nested in
                for member in members { nested.field(1) { member.encode(to: &$0) } }
            }
        case .dictionary(let entries):
            writer.field(8) { nested in
                for entry in entries {
                    nested.field(1, entry.key)
                    nested.field(2) { entry.value.encode(to: &$0) }
                }
            }
        }
    }

    /// - Throws: `WireError` if the bytes are malformed, nested deeper than `depthMax`, or hold a dictionary out of
    ///   order.
    package init(from reader: inout WireReader) throws(WireError) {
        try self.init(from: &reader, depth: 0)
    }

    private init(from reader: inout WireReader, depth: Int) throws(WireError) {
        var value: PropertyValue?
        while let field = try reader.nextField() {
            switch field {
            case 1: value = .string(try reader.string())
            case 2: value = .data(try reader.array())
            case 3: value = .int64(try reader.signed())
            case 4: value = .double(try reader.double())
            case 5: value = .date(try reader.signed())
            case 6: value = .bool(try reader.bool())
            case 7:
                var nested = try reader.nested()
                value = .array(try Self.members(from: &nested, depth: depth + 1))
            case 8:
                var nested = try reader.nested()
                value = .dictionary(try Self.entries(from: &nested, depth: depth + 1))
            default: try reader.skip()
            }
        }
        guard let value else { throw .missingField(1) }
        self = value
    }

    private static func members(from reader: inout WireReader, depth: Int) throws(WireError) -> [PropertyValue] {
        guard depth <= depthMax else { throw .invalidValue(field: 7) }
        var members: [PropertyValue] = []
        while let field = try reader.nextField() {
            guard field == 1 else { throw .unknownField(field) }
            var nested = try reader.nested()
            members.append(try PropertyValue(from: &nested, depth: depth))
        }
        return members
    }

    private static func entries(from reader: inout WireReader, depth: Int) throws(WireError) -> [Entry] {
        guard depth <= depthMax else { throw .invalidValue(field: 8) }
        var entries: [Entry] = []
        while let field = try reader.nextField() {
            guard field == 1 else { throw field > 2 ? .unknownField(field) : .invalidValue(field: 8) }
            let key = try reader.string()
            if let last = entries.last, !last.key.utf8.lexicographicallyPrecedes(key.utf8) {
                throw .invalidValue(field: 8)
            }
            guard try reader.nextField() == 2 else { throw .invalidValue(field: 8) }
            var nested = try reader.nested()
            entries.append(Entry(key: key, value: try PropertyValue(from: &nested, depth: depth)))
        }
        return entries
    }
}
