package import Wire

/// What is too large to be passed between nodes, or to be kept by them. Asking for the same again does not help.
package struct Oversize: Hashable, Sendable, WireMessage {
    package enum Part: UInt64, Sendable {
        /// What was asked; nothing was done.
        case request = 1
        /// The answer. What was asked was done.
        case answer = 2
    }

    /// What is too large.
    package var part: Part
    /// Encoded.
    package var bytes: Int
    package var bytesMax: Int

    package init(_ part: Part, bytes: Int, bytesMax: Int) {
        self.part = part
        self.bytes = bytes
        self.bytesMax = bytesMax
    }

    package static var blank: Self { Oversize(.request, bytes: 0, bytesMax: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &part)
        try wire.field(2, &bytes)
        try wire.field(3, &bytesMax)
    }
}

extension Oversize.Part: WireValue {}
