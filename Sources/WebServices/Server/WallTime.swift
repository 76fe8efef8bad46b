import Foundation

/// The node's wall clock.
enum WallTime {
    /// Milliseconds since 1970.
    static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }
}
