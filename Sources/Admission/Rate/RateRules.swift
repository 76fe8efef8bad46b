/// The constants of rate limiting (section 8 of the design), in one place. Durations are in nanoseconds.
package enum RateRules {
    /// The highest limit that can be set, in requests a second.
    package static let limitMax: UInt64 = 1_000_000
    /// The highest share: the highest limit with its highest correction.
    package static let microRateMax: UInt64 = 2 * limitMax * micro
    /// One request, in the unit that shares and tokens are counted in.
    package static let micro: UInt64 = 1_000_000
    package static let millisecond: UInt64 = 1_000_000
    package static let second: UInt64 = 1_000_000_000

    /// A share is good so long after its report was sent.
    package static let lifetimeMilliseconds: UInt64 = 2_000
    /// The ledger takes a share as in force so long after answering: the lifetime, and 5 % for clocks that drift apart.
    package static let ledgerLifetime: UInt64 = lifetimeMilliseconds * millisecond * 105 / 100

    /// How often a node reports while its share is in use.
    package static let reportInterval = 100 * millisecond
    /// How often it reports while its demand is new to the ledger, and for how long.
    package static let quickInterval = 10 * millisecond
    package static let quickPeriod = 300 * millisecond
    /// A node takes requests as having stopped after so long, or four times their usual distance, but at most the
    /// longer time.
    package static let silentAfterMin = 20 * millisecond
    package static let silentAfterMax = 400 * millisecond
    /// A node that gets no answer reports again after four times the usual wait for one and this, then after twice
    /// that, up to a second.
    package static let resendInterval = 20 * millisecond
    package static let resendIntervalMax = second
    /// A node without requests for so long gives its share back.
    package static let releaseAfter = second
    /// A limiter without requests for so long is forgotten, at the node and at the ledger.
    package static let forgetAfter = 60 * second

    /// What a container saves while it is not fully used: so many seconds of its limit, and at least so many requests,
    /// so that nodes with a part of a very low limit are not kept from using it.
    package static let savedSeconds = 1.0
    /// In requests.
    package static let savedMin = 5.0
    /// What nodes save on their own, from their shares: so much of a second's share, but at least two requests; less
    /// where the limit is low, as all nodes together should not have more than the container saves.
    package static let burstDivisor: UInt64 = 10
    static let burstMin = 2 * micro
    static func burstLeast(limit: UInt64) -> UInt64 { limit < 10 ? burstMin * 3 / 4 : burstMin }
    /// The most that a silent node holds, as a part of the limit.
    package static let silentDivisor: UInt64 = 8
    /// The longest wait that a refusal promises.
    package static let promiseMax = 30 * second
}
