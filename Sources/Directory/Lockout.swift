package import Wire

/// The failed sign-ins of an account since the last one that succeeded, and until when its password is not looked at.
package struct Lockout: Hashable, Sendable {
    /// Those that count; at most `failuresMax`.
    package var failures: UInt64
    /// Milliseconds since 1970; 0 while nothing was locked.
    package var lockedUntil: Int64
    /// When the last failure was, in milliseconds since 1970.
    package var lastFailure: Int64

    /// Failures that lock nothing.
    package static let failuresFree: UInt64 = 5
    /// The first number of failures that locks for the longest time; no more are counted.
    package static let failuresMax: UInt64 = 16
    /// How long the account is locked at most.
    package static let pauseMaxMilliseconds: Int64 = 15 * 60 * 1_000
    /// Time without a failure after which one is forgiven. In the long run that is how often somebody may guess.
    package static let forgivenAfterMilliseconds: Int64 = 15 * 60 * 1_000

    package init(failures: UInt64, lockedUntil: Int64, lastFailure: Int64 = 0) {
        self.failures = failures
        self.lockedUntil = lockedUntil
        self.lastFailure = lastFailure
    }

    /// What follows from so many failures, the last one at `time` (milliseconds since 1970): the first five lock
    /// nothing, the sixth locks for a second, and each further one for twice as long, up to 15 minutes.
    package static func after(failures: UInt64, time: Int64) -> Lockout {
        guard failures > failuresFree else { return Lockout(failures: failures, lockedUntil: 0, lastFailure: time) }
        let doublings = min(failures - failuresFree - 1, 20)
        let pause = min(1_000 << Int64(doublings), pauseMaxMilliseconds)
        let (until, overflow) = time.addingReportingOverflow(pause)
        return Lockout(failures: failures, lockedUntil: overflow ? .max : until, lastFailure: time)
    }

    /// With one more failure, after forgiving those that time has healed.
    ///
    /// A clock that is behind neither shortens what another one's began nor heals anything.
    package func counting(failureAt time: Int64) -> Lockout {
        let (difference, overflow) = time.subtractingReportingOverflow(lastFailure)
        let quiet = overflow ? (time > lastFailure ? Int64.max : 0) : max(0, difference)
        let forgiven = UInt64(quiet / Self.forgivenAfterMilliseconds)
        let count = failures - min(failures, forgiven)
        var next = Lockout.after(failures: min(count + 1, Self.failuresMax), time: time)
        next.lockedUntil = max(next.lockedUntil, lockedUntil)
        next.lastFailure = max(time, lastFailure)
        return next
    }

    /// Whether a sign-in is refused at `now`, in milliseconds since 1970.
    package func isLocked(at now: Int64) -> Bool { now < lockedUntil }
}

extension Lockout: WireCodable {
    /// 1 failures, 2 locked until, 3 last failure.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, failures)
        writer.field(2, signed: lockedUntil)
        writer.field(3, signed: lastFailure)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(failures: 0, lockedUntil: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: failures = try reader.unsigned()
            case 2: lockedUntil = try reader.signed()
            case 3: lastFailure = try reader.signed()
            default: try reader.skip()
            }
        }
    }
}
