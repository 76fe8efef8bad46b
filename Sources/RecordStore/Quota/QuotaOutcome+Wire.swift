package import Wire

extension QuotaOutcome: WireCodable {
    /// 1 which outcome it is, 2 and 3 its amounts, 4 its month, 5 its bytes.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .granted(let cumulative, let free):
            Self.write(1, cumulative, free, to: &writer)
        case .insufficient(let cumulative, let free):
            Self.write(2, cumulative, free, to: &writer)
        case .credited: writer.field(1, 3)
        case .released(let received, let returned):
            Self.write(4, received, returned, to: &writer)
        case .deposited: writer.field(1, 5)
        case .transfer(let month, let bytes):
            writer.field(1, 6)
            writer.field(4, month)
            writer.field(5, bytes)
        }
    }

    private static func write(
        _ kind: UInt64, _ first: QuotaAmounts, _ second: QuotaAmounts, to writer: inout WireWriter
    ) {
        writer.field(1, kind)
        writer.field(2) { first.encode(to: &$0) }
        writer.field(3) { second.encode(to: &$0) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var (kind, month, bytes): (UInt64, UInt64, UInt64) = (0, 0, 0)
        var (first, second) = (QuotaAmounts(), QuotaAmounts())
        while let field = try reader.nextField() {
            switch field {
            case 1: kind = try reader.unsigned()
            case 2: first = try reader.message()
            case 3: second = try reader.message()
            case 4: month = try reader.unsigned()
            case 5: bytes = try reader.unsigned()
            default: try reader.skip()
            }
        }
        switch kind {
        case 1: self = .granted(cumulative: first, free: second)
        case 2: self = .insufficient(cumulative: first, free: second)
        case 3: self = .credited
        case 4: self = .released(received: first, returned: second)
        case 5: self = .deposited
        case 6: self = .transfer(month: month, bytes: bytes)
        default: throw .invalidValue(field: 1)
        }
    }
}
