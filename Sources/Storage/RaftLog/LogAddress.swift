/// A place in the log: a segment's number, which is its generation, and a byte offset in it. Ordered as written.
struct LogAddress: RawRepresentable, Comparable, Hashable, Sendable, CustomStringConvertible {
    /// Number in the upper 32 bits, offset in the lower.
    var rawValue: UInt64

    init(rawValue: UInt64) { self.rawValue = rawValue }

    init(segment: UInt64, offset: Int) {
        precondition(segment <= UInt64(UInt32.max), "segment number \(segment) does not fit in 32 bits")
        rawValue = segment << 32 | UInt64(UInt32(offset))
    }

    var segment: UInt64 { rawValue >> 32 }
    var offset: Int { Int(rawValue & 0xFFFF_FFFF) }
    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    /// Before everything.
    static let start = LogAddress(rawValue: 0)
    var description: String { "\(segment):\(offset)" }
}
