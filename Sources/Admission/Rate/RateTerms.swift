package import RecordModel
import Synchronization
package import Wire

/// The share that a node holds, as a line in the plane of time and tokens: `tokens(at:)` counts what the share has paid
/// for.
struct RateTerms: Hashable, Sendable {
    /// Micro-requests paid for at `since`.
    var base: UInt64 = 0
    /// Nanoseconds of the node's monotonic clock.
    var since: UInt64 = 0
    /// Micro-requests a second; at most `RateRules.microRateMax`.
    var microRate: UInt64 = 0
    /// Micro-requests a second that the share will soon grow to; less than `microRate` means nothing.
    var fairMicroRate: UInt64 = 0
    /// When the share ends, never more than a lifetime (2 s) after `since`.
    var until: UInt64 = 0
    /// What may be left unspent in any case: what the ledger gave of what the container saved, or a request or two.
    var burstLeast: UInt64 = RateRules.micro
    /// Micro-requests that the ledger has saved besides, as far as the node knows.
    var saved: UInt64 = 0

    /// What may be left unspent: a tenth of a second of the share, or more.
    var burst: UInt64 { max(burstLeast, microRate / RateRules.burstDivisor) }

    func isValid(at now: UInt64) -> Bool { microRate > 0 && now < until }

    /// Micro-requests paid for until `now`; it stands still when the share has ended. In steps of a microsecond, so
    /// that two seconds of the highest share fit into 64 bits.
    func tokens(at now: UInt64) -> UInt64 {
        let end = min(now, until)
        guard end > since else { return base }
        return base + microRate * ((end - since) / 1_000) / 1_000_000
    }

    /// Microseconds until `microTokens` more are paid for, rounded up.
    func microseconds(toPay microTokens: UInt64) -> UInt64 {
        Self.microseconds(toPay: microTokens, by: microRate)
    }

    /// The same by the share that is to come; others need a moment to make room for it.
    func promisedMicroseconds(toPay microTokens: UInt64) -> UInt64 {
        let now = microseconds(toPay: microTokens)
        guard fairMicroRate > microRate else { return now }
        return min(now, Self.microseconds(toPay: microTokens, by: fairMicroRate) + 50_000)
    }

    /// How far promises are apart: a little more than tokens, for a share that changes by a few percent until then.
    /// What that leaves goes to any node that asks.
    var distanceMicroseconds: UInt64 {
        Self.microseconds(toPay: RateRules.micro + RateRules.micro / 64, by: max(microRate, fairMicroRate))
    }

    private static func microseconds(toPay microTokens: UInt64, by microRate: UInt64) -> UInt64 {
        let (high, low) = microTokens.multipliedFullWidth(by: 1_000_000)
        guard high < microRate else { return .max }
        let (quotient, remainder) = microRate.dividingFullWidth((high, low))
        return remainder > 0 ? quotient + 1 : quotient
    }
}

/// Terms that one writer replaces (under a lock of its own) and any number of readers read without waiting.
///
/// Two copies: the writer fills the one that is not in use, then turns the version. A reader that was overtaken (the
/// version moved while it read) reads again. Fields are stored with release and loaded with acquire order, so a reader
/// that sees a field of a later version also sees that the version moved.
struct RateTermsCell: ~Copyable, Sendable {
    private struct Copy: ~Copyable, Sendable {
        let base = Atomic<UInt64>(0)
        let since = Atomic<UInt64>(0)
        let microRate = Atomic<UInt64>(0)
        let fairMicroRate = Atomic<UInt64>(0)
        let until = Atomic<UInt64>(0)
        let burstLeast = Atomic<UInt64>(RateRules.micro)
        let saved = Atomic<UInt64>(0)

        func load() -> RateTerms {
            RateTerms(
                base: base.load(ordering: .acquiring), since: since.load(ordering: .acquiring),
                microRate: microRate.load(ordering: .acquiring),
                fairMicroRate: fairMicroRate.load(ordering: .acquiring), until: until.load(ordering: .acquiring),
                burstLeast: burstLeast.load(ordering: .acquiring), saved: saved.load(ordering: .acquiring))
        }

        func store(_ terms: RateTerms) {
            base.store(terms.base, ordering: .releasing)
            since.store(terms.since, ordering: .releasing)
            microRate.store(terms.microRate, ordering: .releasing)
            fairMicroRate.store(terms.fairMicroRate, ordering: .releasing)
            until.store(terms.until, ordering: .releasing)
            burstLeast.store(terms.burstLeast, ordering: .releasing)
            saved.store(terms.saved, ordering: .releasing)
        }
    }

    private let version = Atomic<UInt64>(0)
    private let even = Copy()
    private let odd = Copy()

    func load() -> RateTerms {
        while true {
            let before = version.load(ordering: .acquiring)
            let terms = before & 1 == 0 ? even.load() : odd.load()
            if version.load(ordering: .acquiring) == before { return terms }
        }
    }

    /// For one writer at a time.
    func store(_ terms: RateTerms) {
        let next = version.load(ordering: .relaxed) + 1
        if next & 1 == 0 { even.store(terms) } else { odd.store(terms) }
        version.store(next, ordering: .releasing)
    }
}

/// What a rate limit counts.
package enum RateKind: String, Hashable, Sendable, CaseIterable, WireValue {
    /// Requests for records, zones and users.
    case requests
    /// Requests for preferences.
    case keyValues
    /// Requests of administrators who act as users; from `FeatureLevel.administration` on.
    case acting

    package func write(_ number: Int, to writer: inout WireWriter) {
        switch self {
        case .requests: writer.field(number, 1)
        case .keyValues: writer.field(number, 2)
        case .acting: writer.field(number, 3)
        }
    }

    package init(field reader: inout WireReader) throws(WireError) {
        switch try reader.unsigned() {
        case 1: self = .requests
        case 2: self = .keyValues
        case 3: self = .acting
        default: throw .invalidValue(field: reader.number)
        }
    }
}

/// What one rate limit of the cluster belongs to.
package struct RateKey: Hashable, Sendable, WireMessage, Comparable {
    /// The container's name, compared by its bytes.
    @Bytewise package var container: String
    /// Which of the container's requests count.
    package var kind: RateKind

    package init(container: String, kind: RateKind) {
        self.container = container
        self.kind = kind
    }

    package static var blank: Self { RateKey(container: "", kind: .requests) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &container)
        try wire.required(2, &kind)
    }

    /// By container in byte order, then by the kind's raw value.
    package static func < (left: Self, right: Self) -> Bool {
        (left.$container, left.kind.rawValue) < (right.$container, right.kind.rawValue)
    }
}

/// The constants of rate limiting (section 8 of the design), in one place. Durations are in nanoseconds.
package enum RateRules {
    /// The highest limit that can be set, in requests a second.
    package static let limitMax: UInt64 = 1_000_000
    /// The highest share: the highest limit with its highest correction.
    package static let microRateMax: UInt64 = 2 * limitMax * micro
    /// Micro-requests that one limiter counts, 48 days of the highest limit: far from the end of 64 bits.
    static let microTokensMax: UInt64 = 1 << 62
    /// One request, in the unit that shares and tokens are counted in.
    package static let micro: UInt64 = 1_000_000
    /// Nanoseconds in a millisecond.
    package static let millisecond: UInt64 = 1_000_000
    /// Nanoseconds in a second.
    package static let second: UInt64 = 1_000_000_000

    /// A share is good so long after its report was sent.
    package static let lifetimeMilliseconds: UInt64 = 2_000
    /// The ledger takes a share as in force so long after answering: the lifetime, and 5 % for clocks that drift apart.
    package static let ledgerLifetime: UInt64 = lifetimeMilliseconds * millisecond * 105 / 100

    /// How often a node reports while its share is in use.
    package static let reportInterval = 100 * millisecond
    /// How often it reports while its demand is new to the ledger, and for how long.
    package static let quickInterval = 10 * millisecond
    /// How long a node reports at the quick interval after its demand began.
    package static let quickPeriod = 300 * millisecond
    /// A node takes requests as having stopped after so long, or four times their usual distance, but at most the
    /// longer time.
    package static let silentAfterMin = 20 * millisecond
    /// The longest time without requests before a node reports itself silent.
    package static let silentAfterMax = 400 * millisecond
    /// A node that gets no answer reports again after four times the usual wait for one and this, then after twice
    /// that, up to a second.
    package static let resendInterval = 20 * millisecond
    /// The longest wait for an answer before a node reports again.
    package static let resendIntervalMax = second
    /// A node without requests for so long gives its share back.
    package static let releaseAfter = second
    /// A limiter without requests for so long is forgotten, at the node and at the ledger.
    package static let forgetAfter = 60 * second

    /// What a container saves while it is not fully used: seconds of its limit, and at least a number of requests, so
    /// that nodes with a part of a very low limit can use it.
    package static let savedSeconds = 1.0
    /// In requests.
    package static let savedMin = 5.0
    /// What nodes save from their own shares: a part of a second's share, but at least two requests; less if the limit
    /// is low, so that all nodes together do not have more than the container saves.
    package static let burstDivisor: UInt64 = 10
    static let burstMin = 2 * micro
    static func burstLeast(limit: UInt64) -> UInt64 { limit < 10 ? burstMin * 3 / 4 : burstMin }
    /// The most that a silent node holds, as a part of the limit.
    package static let silentDivisor: UInt64 = 8
    /// The longest wait that a refusal promises.
    package static let promiseMax = 30 * second
}
