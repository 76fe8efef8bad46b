import Histogram

/// How much of a run was the load tester itself.
struct TesterShare: Hashable, Sendable {
    /// CPU seconds of the thread that sends and counts, and its part of the run, 0 to 1.
    let cpuSeconds: Double
    let busyShare: Double
    /// Answers a second that the thread could have counted had it been busy all the time; nil where it did next to nothing.
    let capacityPerSecond: Double?
    /// Of an open loop: how late requests were sent, in milliseconds, at the 99th percentile.
    let latenessP99Milliseconds: Double?
    /// Of an open loop: how long requests waited for a free connection, in milliseconds, at the 99th percentile.
    let connectionWaitP99Milliseconds: Double?
    /// The part of the machine's CPU that nobody used, 0 to 1.
    let machineIdleShare: Double?

    init(_ result: LoadResult) {
        let tally = result.measurement.tally
        let answered = Double(tally.succeeded + tally.failed)
        let isOpen = tally.lateness.totalCount > 0
        cpuSeconds = result.testerCPUSeconds
        busyShare = result.seconds > 0 ? min(1, cpuSeconds / result.seconds) : 0
        capacityPerSecond = cpuSeconds > 0.001 && answered >= 100 ? answered / cpuSeconds : nil
        latenessP99Milliseconds = isOpen ? Double(tally.lateness.valueAtPercentile(99)) / 1_000_000 : nil
        connectionWaitP99Milliseconds =
            isOpen ? result.measurement.connectionWaits.milliseconds(atPercentile: 99) : nil
        machineIdleShare = result.machineIdleShare
    }

    private static let busyMax = 0.85
    private static let latenessMax = 20.0
    private static let idleMin = 0.05

    /// Why the figures are the tester's rather than the cluster's; nil where they are the cluster's.
    var limitReason: String? {
        if busyShare > Self.busyMax {
            return
                "the tester is the limit: its thread was busy for \(String(percent: (busyShare * 100).rounded() / 100)) of the time"
        }
        if let late = latenessP99Milliseconds, late > Self.latenessMax {
            return
                "the tester is the limit: one request in a hundred was sent \(String(milliseconds: late)) ms late or more"
        }
        return nil
    }

    /// That requests waited for a connection rather than at a node; nil where they did not. The nodes were busy all the same, so it
    /// says nothing against what they accepted, only against the rate offered and the times since requests were due.
    var connectionReason: String? {
        guard let wait = connectionWaitP99Milliseconds, wait > Self.latenessMax else { return nil }
        return
            "the tester's connections are the limit: one request in a hundred waited \(String(milliseconds: wait)) ms or more for "
            + "a free one; --connections makes more"
    }

    /// What to keep in mind about the machine; nil where there is nothing.
    var machineNote: String? {
        guard let idle = machineIdleShare, idle < Self.idleMin else { return nil }
        return
            "the machine was busy throughout: where the cluster runs on it too, tester and cluster took from each other"
    }
}
