import NIOCore

/// How long to wait before the next attempt to connect: 100 ms, doubled each time up to 2 s, less up to half of it at
/// random so that nodes that lost the same peer do not come back in step.
struct Backoff {
    static let firstMilliseconds: Int64 = 100
    static let lastMilliseconds: Int64 = 2_000

    private var attempts = 0

    mutating func next(using generator: inout some RandomNumberGenerator) -> TimeAmount {
        let full = min(Self.firstMilliseconds << Int64(min(attempts, 10)), Self.lastMilliseconds)
        attempts += 1
        return .milliseconds(Int64.random(in: (full / 2)...full, using: &generator))
    }

    /// The connection stood: the next failure starts from the beginning.
    mutating func reset() { attempts = 0 }
}
