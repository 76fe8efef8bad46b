package import Wire

/// One data key of a container, as the directory keeps it: wrapped by the cluster's encryption key, never in clear.
package struct ContainerKey: Hashable, Sendable {
    /// From 1, one more with each rotation; values say which key sealed them.
    package var number: UInt64
    /// See `FieldVault.newContainerKey`.
    package var wrapped: [UInt8]

    package init(number: UInt64, wrapped: [UInt8]) {
        self.number = number
        self.wrapped = wrapped
    }
}

extension ContainerKey: WireCodable {
    /// 1 number, 2 wrapped key.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, number)
        writer.field(2, wrapped)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(number: 0, wrapped: [])
        while let field = try reader.nextField() {
            switch field {
            case 1: number = try reader.unsigned()
            case 2: wrapped = try reader.array()
            default: try reader.skip()
            }
        }
    }
}
