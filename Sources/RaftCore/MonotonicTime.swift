/// A reading of a clock that never goes back.
///
/// Only differences mean anything; the shell picks the origin. The core never reads a clock.
public struct MonotonicTime: Comparable, Hashable, Sendable, CustomStringConvertible {
    /// Since the shell's origin.
    public var nanoseconds: UInt64

    public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }
    public init(milliseconds: UInt64) { nanoseconds = milliseconds * 1_000_000 }

    public static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The shell's origin.
    public static let zero = MonotonicTime(nanoseconds: 0)

    /// The time this much later; the greatest time there is if that would overflow.
    public func adding(nanoseconds more: UInt64) -> MonotonicTime {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(more)
        return MonotonicTime(nanoseconds: overflow ? .max : sum)
    }

    /// The time this much later; the greatest time there is if that would overflow.
    public func adding(milliseconds more: UInt64) -> MonotonicTime {
        let (product, overflow) = more.multipliedReportingOverflow(by: 1_000_000)
        return adding(nanoseconds: overflow ? .max : product)
    }

    public var description: String { "\(nanoseconds / 1_000_000)ms" }
}
