package import Wire

/// What is too large to be passed between nodes, or to be kept by them. Asking for the same again does not help.
package struct Oversize: Hashable, Sendable {
    package enum Part: UInt64, Sendable {
        /// What was asked; nothing was done.
        case request = 1
        /// The answer. What was asked was done.
        case answer = 2
    }

    package var part: Part
    /// Encoded.
    package var bytes: Int
    package var bytesMax: Int

    package init(_ part: Part, bytes: Int, bytesMax: Int) {
        self.part = part
        self.bytes = bytes
        self.bytesMax = bytesMax
    }
}

extension Oversize: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, part.rawValue)
        writer.field(2, UInt64(bytes))
        writer.field(3, UInt64(bytesMax))
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(.request, bytes: 0, bytesMax: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1:
                guard let part = Part(rawValue: try reader.unsigned()) else { throw .invalidValue(field: 1) }
                self.part = part
            case 2: bytes = Int(clamping: try reader.unsigned())
            case 3: bytesMax = Int(clamping: try reader.unsigned())
            default: try reader.skip()
            }
        }
    }
}
