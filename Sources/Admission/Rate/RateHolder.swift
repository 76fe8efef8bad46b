/// One node, as a container's account knows it. Rates in requests a second.
struct RateHolder: Sendable {
    let node: UInt64
    var boot: UInt64
    /// Earlier boots, newest last: late reports of theirs are ignored.
    var retiredBoots: [UInt64] = []
    var sequence: UInt64 = 0
    var accepted: UInt64 = 0
    var arrivals: UInt64 = 0
    var limit: UInt64
    var reportedAt: UInt64
    /// What the newest report said, and what its answer granted: the node holds one of the two until it reports again.
    var held = 0.0
    var granted = 0.0
    /// Until when either can be in force.
    var until: UInt64 = 0
    /// The newest answer, for a report that comes twice.
    var answer: RateGrant?
    /// What the node wants, smoothed; 0: silent.
    var demand = 0.0
    /// Tokens that were given of what the container saved: the account was charged, and the node has not reported them
    /// spent.
    var prepaid = 0.0
    /// What the node could accept at once when it reported.
    var left = 0.0

    func inForce(at now: UInt64) -> Double { now < until ? max(held, granted) : 0 }

    /// Whether the node has a part in the division: it holds a share, or asked for one just now.
    func isLive(at now: UInt64) -> Bool {
        inForce(at: now) > 0 || demand > 0 && now - min(now, reportedAt) < RateRules.second / 2
    }

    /// What the node is likely to have accepted since it reported.
    func unreported(at now: UInt64) -> Double {
        let end = min(now, until)
        return end > reportedAt ? min(max(held, granted), demand) * seconds(end - reportedAt) : 0
    }

    /// The most that the node can have accepted since it reported, or could accept at once, beyond what the account was
    /// charged for.
    func exposure(at now: UInt64) -> Double {
        let end = min(now, until)
        guard end >= reportedAt else { return 0 }
        let share = max(held, granted)
        let burst = max(requests(RateRules.burstMin), share / Double(RateRules.burstDivisor))
        let saved = min(left + share * seconds(end - reportedAt), max(burst, left) + unreported(at: now))
        return max(0, saved - prepaid)
    }

    /// Begins the counts of another boot.
    mutating func restart(boot: UInt64) {
        retiredBoots.append(self.boot)
        if retiredBoots.count > 4 { retiredBoots.removeFirst() }
        self.boot = boot
        (sequence, accepted, arrivals) = (0, 0, 0)
        // The process that held the share is gone.
        (held, granted, demand, until, left) = (0, 0, 0, 0, 0)
        answer = nil
    }

    /// Smooths the demand: up at once, down with a time constant of 0.3 s, to nothing when the node says that requests
    /// stopped.
    mutating func noteDemand(_ report: RateReport, now: UInt64) {
        let new = Double(report.arrivals - min(arrivals, report.arrivals))
        let passed = seconds(max(now - min(now, reportedAt), RateRules.quickInterval))
        if report.isSilent || !report.wants {
            demand = 0
        } else {
            demand = max(new / passed, demand * 0.3 / (0.3 + passed))
            // Those who wait as they were told would come within a second if they could.
            demand = max(demand, report.promised > 0 ? granted + Double(min(report.promised, 1 << 32)) : 0)
            if demand < 0.02 { demand = 0 }
        }
    }
}

/// Nanoseconds as seconds.
func seconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds) / 1e9 }

/// Micro-requests as requests.
func requests(_ micro: UInt64) -> Double { Double(micro) / 1e6 }
