/// Times and limits of a replica. All replicas of a group should have the same times.
public struct RaftSettings: Hashable, Sendable {
    /// The least time of silence after which a replica campaigns; each wait is drawn from `[t, 2t)`. A leader whose
    /// connection broke is waited for no longer than it was promised.
    public var electionTimeoutMilliseconds: UInt64 = 1000
    /// How often an idle leader sends heartbeats, at multiples of the interval. At most half of the election timeout.
    public var heartbeatIntervalMilliseconds: UInt64 = 100
    /// The most bytes of entries in one append; one entry always fits.
    public var appendBytesMax = 1 << 20
    /// The most bytes of entries in one append to a follower whose log is not known to agree; one entry always fits.
    public var probeBytesMax = 64 << 10
    /// The most appends under way to one follower.
    public var inflightAppendsMax = 64
    /// The most bytes of entries under way to one follower; one append is always allowed.
    public var inflightBytesMax = 8 << 20
    /// The most bytes of entries in a leader's memory that are not committed, those of earlier leaders included; beyond
    /// it commands are refused. One command is always allowed.
    public var uncommittedBytesMax = 16 << 20
    /// Recent entries kept in memory. Entries that are not durable and committed are kept on top of it; entries that
    /// are not applied are kept up to four times of it.
    public var cacheBytesMax = 4 << 20
    /// The most reads waiting for their index; beyond it reads are refused.
    public var pendingReadsMax = 65536
    /// Which of the voters that are left campaigns first when the connection to a leader breaks, by its place among
    /// them. The same on all replicas of a group; different groups choose different ones, so that the leads of a lost
    /// machine spread.
    public var firstTurn: UInt64 = 0
    /// Whether and how a leader serves reads under a lease; nil: every read waits for a round of heartbeats.
    public var lease: LeaseSettings?

    /// Creates the default settings.
    public init() {}

    /// How long a replica votes for no other candidate after it heard a leader, and a leader continues without a
    /// majority.
    var patienceMilliseconds: UInt64 { lease?.promiseMilliseconds ?? electionTimeoutMilliseconds }

    /// The least election timeout, in nanoseconds.
    var electionTimeoutNanoseconds: UInt64 { electionTimeoutMilliseconds * 1_000_000 }

    /// Traps unless the settings make sense together.
    func check() {
        precondition(heartbeatIntervalMilliseconds > 0, "the heartbeat interval is 0")
        precondition(
            electionTimeoutMilliseconds >= 2 * heartbeatIntervalMilliseconds,
            "an election timeout of \(electionTimeoutMilliseconds) ms is less than two heartbeat intervals of "
                + "\(heartbeatIntervalMilliseconds) ms")
        precondition(electionTimeoutMilliseconds <= 3_600_000, "election timeout \(electionTimeoutMilliseconds) ms")
        precondition(appendBytesMax > 0 && probeBytesMax > 0, "appends of \(appendBytesMax), \(probeBytesMax) bytes")
        precondition(inflightAppendsMax > 0, "a window of \(inflightAppendsMax) appends")
        precondition(inflightBytesMax > 0, "a window of \(inflightBytesMax) bytes")
        if let lease { lease.check(electionTimeoutMilliseconds: electionTimeoutMilliseconds) }
        precondition(cacheBytesMax >= 0 && uncommittedBytesMax > 0 && pendingReadsMax > 0, "limits must be positive")
    }
}

/// What a leader's lease relies on (dissertation section 6.4.1; `DESIGN.md` has the proof that it is safe).
///
/// Reads under a lease are linearizable only as long as every clock of the group keeps to
/// `clockDriftPartsPerMillionMax`, suspension included. Elections, commits and reads without a lease rely on no clock.
public struct LeaseSettings: Hashable, Sendable {
    /// How long every replica of the group lets no one else be elected after it heard a leader: at most the least
    /// `RaftSettings.electionTimeoutMilliseconds` of the group, and the same on all of its replicas.
    public var promiseMilliseconds: UInt64
    /// How much faster or slower than true time any clock of the group may run, in millionths, measured over one
    /// promise.
    public var clockDriftPartsPerMillionMax: UInt64

    /// - Parameter clockDriftPartsPerMillionMax: below 500,000. Quartz keeps to 100, a clock that is being slewed by
    ///   NTP to 500; the default leaves twenty times of that.
    public init(promiseMilliseconds: UInt64, clockDriftPartsPerMillionMax: UInt64 = 10_000) {
        self.promiseMilliseconds = promiseMilliseconds
        self.clockDriftPartsPerMillionMax = clockDriftPartsPerMillionMax
    }

    /// How long the lease lasts on the leader's clock, counted from the sending of the round that gave it: if that
    /// clock is as slow and the followers' as fast as allowed, the promise ends at the same true time.
    var nanoseconds: UInt64 {
        let million: UInt64 = 1_000_000
        return promiseMilliseconds * million / (million + clockDriftPartsPerMillionMax)
            * (million - clockDriftPartsPerMillionMax)
    }

    /// Traps unless the settings make sense together with the election timeout.
    func check(electionTimeoutMilliseconds: UInt64) {
        precondition(
            promiseMilliseconds > 0 && promiseMilliseconds <= electionTimeoutMilliseconds,
            "a lease on a promise of \(promiseMilliseconds) ms needs election timeouts at least as long, not "
                + "\(electionTimeoutMilliseconds) ms")
        precondition(clockDriftPartsPerMillionMax < 500_000, "a clock drift of \(clockDriftPartsPerMillionMax) ppm")
    }
}
