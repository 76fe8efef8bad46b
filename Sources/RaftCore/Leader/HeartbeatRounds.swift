/// When the latest rounds of heartbeats were sent: what a lease is counted from.
struct HeartbeatRounds: Hashable, Sendable {
    /// More rounds than this are not under way at once, so an answer to an older one is rare and worth nothing.
    private static let countMax = 64

    private var recent: [Round] = []

    private struct Round: Hashable, Sendable {
        var number: UInt64
        var sentAt: MonotonicTime
    }

    /// Notes a round that is sent now, and forgets those too old to give a lease.
    mutating func begin(_ number: UInt64, now: MonotonicTime, lease: LeaseSettings) {
        if let latest = recent.last { precondition(latest.number < number, "round \(number) after \(latest.number)") }
        let expired = recent.prefix { $0.sentAt.adding(nanoseconds: lease.nanoseconds) <= now }.count
        recent.removeFirst(max(expired, recent.count - (Self.countMax - 1), 0))
        recent.append(Round(number: number, sentAt: now))
    }

    /// When the round was sent; nil if that is too long ago to matter.
    func sentAt(_ number: UInt64) -> MonotonicTime? {
        recent.last { $0.number == number }?.sentAt
    }
}
