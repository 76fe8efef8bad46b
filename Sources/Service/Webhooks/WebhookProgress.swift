package import Wire

/// How far a webhook was told, and how its deliveries went: what its reader keeps with the log of notifications.
///
/// A delivery is fixed before it is sent, so that a repeat of it, by this node or the next leader, has the same id and
/// the same notifications. A value; time in milliseconds since 1970 is passed in.
package struct WebhookProgress: Hashable, Sendable {
    /// What is being delivered.
    package struct Delivery: Hashable, Sendable {
        /// Tells it from every other delivery of any webhook.
        package var id: String
        /// Whether it tells that notifications were lost, and of none.
        package var isLoss = false
        /// The number of its last notification.
        package var through: Int64 = 0
        /// How many notifications it has.
        package var count: UInt64 = 0
        /// The place in the log after it; empty is the beginning.
        var end: [UInt8] = []
        /// How often it failed.
        package var failures: UInt64 = 0
        /// When it failed first, by how long it was tried since: time in which no node tried it does not count. 0 where
        /// it did not fail.
        package var failingSince: Int64 = 0
        /// Not before then it is tried again.
        package var notBefore: Int64 = 0
    }

    /// What came of one attempt.
    package struct Attempt: Hashable, Sendable {
        /// The delivery's.
        package var id: String
        /// How many notifications were sent.
        package var count: UInt64
        /// When it was sent.
        package var time: Int64
        /// How long it took.
        package var milliseconds: UInt64
        /// The answer's; 0 where there was none.
        package var status: UInt64
        /// Why it failed; empty where it did not.
        package var reason: String
    }

    /// What follows from a failure.
    package enum Consequence: Hashable, Sendable {
        case retry
        /// It has failed for too long.
        case disable(reason: String)
    }

    /// Of the configuration that was put into force.
    package var revision: UInt64 = 0
    /// The place in the log up to which everything is delivered; empty is the beginning.
    package private(set) var position: [UInt8] = []
    /// Deliveries so far.
    package private(set) var number: UInt64 = 0
    /// What is under way; nil where nothing waits, as far as is known.
    package private(set) var current: Delivery?
    /// The last ones, the newest at the end.
    package private(set) var attempts: [Attempt] = []

    /// Attempts that are remembered, and bytes of each one's reason.
    package static let attemptsMax = 20
    private static let reasonBytesMax = 200
    /// How long a webhook may fail, and the pauses between attempts.
    package static let failingMillisecondsMax: Int64 = 3 * 86_400_000
    private static let pauseMilliseconds: Int64 = 5_000
    private static let pauseMillisecondsMax: Int64 = 3_600_000

    /// Another configuration is in force: what failed before says nothing of it, once it is enabled.
    package mutating func begin(revision: UInt64, isEnabled: Bool = true) {
        self.revision = revision
        guard isEnabled else { return }
        current?.failures = 0
        current?.failingSince = 0
        current?.notBefore = 0
    }

    /// Fixes the next delivery.
    /// - Parameters:
    ///   - id: what its id begins with: the webhook's, and something that no delivery before a restore has, which takes
    ///     `number` back.
    ///   - end: the place in the log after its last notification.
    package mutating func begin(of id: String, through: Int64, count: UInt64, end: [UInt8]) {
        precondition(current == nil, "delivery \(number) is not over")
        number += 1
        current = Delivery(id: "\(id)-\(number)", through: through, count: count, end: end)
    }

    /// Notifications were lost: the next delivery says so, and the log is read from its beginning after it.
    /// - Parameter id: as of `begin`.
    package mutating func lose(of id: String) {
        if current?.isLoss == true { return }
        number += 1
        current = Delivery(id: "\(id)-\(number)", isLoss: true)
    }

    /// Nothing is to be told up to a place in the log. Only by a place it is found out that something was lost behind
    /// it.
    /// - Returns: whether it is another one than before.
    package mutating func pass(to place: [UInt8]) -> Bool {
        precondition(current == nil, "delivery \(number) is not over")
        if position == place { return false }
        position = place
        return true
    }

    /// For how long the current delivery is to wait. A clock that went back makes it wait no longer than any does.
    package func wait(at now: Int64) -> Int64 {
        let wait = (current?.notBefore ?? 0) - now
        return wait > Self.pauseMillisecondsMax ? 0 : max(0, wait)
    }

    /// The delivery is over, also where nothing of it was left to be told.
    package mutating func succeed(_ attempt: Attempt?) {
        if let attempt { note(attempt) }
        position = current?.end ?? position
        current = nil
    }

    /// An attempt failed.
    package mutating func fail(_ attempt: Attempt) -> Consequence {
        note(attempt)
        guard var delivery = current else { return .retry }
        if delivery.failures > 0 { delivery.failingSince += max(0, attempt.time - delivery.notBefore) }
        delivery.failures += 1
        // A clock that went back must not make it older than it is.
        if delivery.failingSince == 0 || delivery.failingSince > attempt.time { delivery.failingSince = attempt.time }
        delivery.notBefore = attempt.time + Self.pause(after: delivery.failures)
        current = delivery
        guard attempt.time - delivery.failingSince >= Self.failingMillisecondsMax else { return .retry }
        return .disable(reason: "deliveries failed for three days, the last one: \(attempt.reason)")
    }

    /// 5 seconds, and twice as long each time, up to an hour.
    private static func pause(after failures: UInt64) -> Int64 {
        min(pauseMilliseconds << min(Int64(failures) - 1, 20), pauseMillisecondsMax)
    }

    private mutating func note(_ attempt: Attempt) {
        var attempt = attempt
        attempt.reason = String(decoding: attempt.reason.utf8.prefix(Self.reasonBytesMax), as: UTF8.self)
        attempts = attempts.suffix(Self.attemptsMax - 1) + [attempt]
    }
}

extension WebhookProgress: WireMessage {
    package static var blank: Self { WebhookProgress() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &revision)
        try wire.field(2, &position)
        try wire.field(3, &number)
        try wire.field(4, &current)
        try wire.field(5, &attempts)
    }
}

extension WebhookProgress.Delivery: WireMessage {
    package static var blank: Self { WebhookProgress.Delivery(id: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &id)
        try wire.field(2, &isLoss, unless: false)
        try wire.field(3, &through)
        try wire.field(4, &count)
        try wire.field(5, &end)
        try wire.field(6, &failures)
        try wire.field(7, &failingSince)
        try wire.field(8, &notBefore)
    }
}

extension WebhookProgress.Attempt: WireMessage {
    package static var blank: Self {
        WebhookProgress.Attempt(id: "", count: 0, time: 0, milliseconds: 0, status: 0, reason: "")
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &id)
        try wire.field(2, &count)
        try wire.field(3, &time)
        try wire.field(4, &milliseconds)
        try wire.field(5, &status)
        try wire.field(6, &reason)
    }
}
