import Foundation

/// UUIDs of version 7, as clients make them.
enum IdempotencyKeys {
    static func next() -> String {
        let milliseconds = String(UInt64(Date().timeIntervalSince1970 * 1_000), radix: 16)
        let time = String(repeating: "0", count: 12 - milliseconds.count) + milliseconds
        let random = String(Home.unique(), radix: 16)
        let tail = String(repeating: "0", count: 12 - random.count) + random
        return "\(time.prefix(8))-\(time.suffix(4))-7000-8000-\(tail)"
    }
}
