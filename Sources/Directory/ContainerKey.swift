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

extension ContainerKey: WireMessage {
    package static var blank: Self { ContainerKey(number: 0, wrapped: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &number)
        try wire.field(2, &wrapped)
    }
}
