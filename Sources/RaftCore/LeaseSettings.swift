/// What a leader's lease relies on (dissertation section 6.4.1; `DESIGN.md` has the proof that it is safe).
///
/// Reads under a lease are linearizable only as long as every clock of the group keeps to
/// `clockDriftPartsPerMillionMax`, suspension included. Elections, commits and reads without a lease rely on no clock.
public struct LeaseSettings: Hashable, Sendable {
    /// How long every replica of the group lets no one else be elected after it heard a leader: at most the least
    /// `RaftSettings.electionTimeoutMilliseconds` of the group, and the same on all of its replicas.
    public var promiseMilliseconds: UInt64
    /// How much faster or slower than true time any clock of the group may run, in millionths, measured over one promise.
    public var clockDriftPartsPerMillionMax: UInt64

    /// - Parameter clockDriftPartsPerMillionMax: below 500,000. Quartz keeps to 100, a clock that is being slewed by NTP to 500;
    ///   the default leaves twenty times of that.
    public init(promiseMilliseconds: UInt64, clockDriftPartsPerMillionMax: UInt64 = 10_000) {
        self.promiseMilliseconds = promiseMilliseconds
        self.clockDriftPartsPerMillionMax = clockDriftPartsPerMillionMax
    }

    /// How long the lease lasts on the leader's clock, counted from the sending of the round that gave it: if that clock is
    /// as slow and the followers' as fast as allowed, the promise ends at the same true time.
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
