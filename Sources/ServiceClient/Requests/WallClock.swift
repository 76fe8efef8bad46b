import Foundation

/// The time of day.
package enum WallClock {
    /// Milliseconds since 1970, now.
    package static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }
}
