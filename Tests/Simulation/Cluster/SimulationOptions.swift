package import RaftCore
import RecordModel
import RecordStore
import Storage

/// How bad the world of one seed is: drawn from the seed, so that each run has a mixture of its own.
package struct SimulationOptions: Sendable {
    package var nodes: Int
    package var shards = 2
    /// How long faults go on, in simulated seconds; healing and the last checks come on top.
    package var seconds: UInt64
    /// Whether the first violation ends it all.
    package var stopsAtViolation = false

    var network = SimulatedNetwork.Conditions()
    var delays = SimulatedPlatform.Delays()
    /// Of each machine.
    var processors = Int.max
    /// Between two faults, on average, in milliseconds.
    var faultIntervalMilliseconds: UInt64
    /// The kinds of fault that happen.
    var faults: [Fault]
    /// How one node loses its data; nil for not at all.
    var loss: Loss?
    /// How the same node loses its data again.
    var secondLoss: Loss?
    /// Whether nodes are added, removed and replaced, and leaders asked for, meanwhile.
    var membership: Bool
    /// Whether leaders go, and disks are slow, as members change.
    var hasDisturbedChanges: Bool
    /// Clocks run at most this much too fast or too slow, in millionths; within what leases rely on.
    var driftPartsPerMillionMax: Int64

    /// Whether one clock alone goes wrong for a while in which all else is well.
    var hasLoneWrongClock: Bool
    /// How many of a hundred jumps of a wall clock are by days.
    var wrongDaysPercent: Int
    /// Whether nodes begin with a program of a lower feature level, and get the present one with a restart, each by
    /// itself.
    var isUpgraded: Bool

    /// Whether databases are read for so long that checkpoints meet it.
    var hasLongReads: Bool
    /// Whether records have files of assets.
    package var hasAssets: Bool
    /// Whether a user is told of more than is kept.
    var hasFlood: Bool

    /// Whether a client fills a store of preferences.
    var hasFullStore: Bool
    /// Whether a client has as many keys as a store may have.
    var hasWideStore: Bool
    /// Whether all clocks are ahead by more than a day for a while, before nodes are upgraded.
    var hasLongDay: Bool
    /// How many commands each shard is given then, of which each moves its time by a minute.
    var longDayCommands = 0

    /// Has records have files, whatever the seed says.
    package mutating func requireAssets() {
        isUpgraded = false
        hasLongDay = false
        hasAssets = true
    }

    /// Small in some seeds, so that few records take every way to read a page, and pages end before they are full.
    var tuning = QueryTuning()
    var hasSmallPages = false

    /// What the clients' container may use.
    var limits = ContainerLimits()
    /// Whether it may make so few requests that clients who hurry are refused.
    var hasLowRate: Bool
    /// Whether clients come for all of its rate now and then, at nodes that their ledger cannot hear.
    var hasPressing: Bool

    var clients: Int
    /// Between a client's requests, at most, in milliseconds.
    var thinkMillisecondsMax: UInt64

    var electionTimeoutMilliseconds: UInt64
    var heartbeatIntervalMilliseconds: UInt64
    var tickMilliseconds: UInt64
    var rebalanceDelayMilliseconds: UInt64
    var scrubIntervalMilliseconds: UInt64
    /// Small ones in some seeds, so that each is met.
    var raft = RaftSettings()
    var apply: (backlogMax: UInt64, followerMax: UInt64, transactionMax: Int)?
    var logQueueBytes = RaftLogOptions().queueBytesMax
    var segmentBytes: Int
    var logBytesTarget: Int
    var keepEntries: Int
    var checkpointMilliseconds: UInt64
    var checkpointAgeMilliseconds: UInt64

    /// What goes wrong.
    enum Fault: String, Sendable, CaseIterable {
        /// Two halves that do not hear each other.
        case halves
        /// One node alone.
        case alone
        /// Two sides that meet in one node.
        case bridge
        /// One node hears nobody.
        case deaf
        /// Nobody hears one node.
        case mute
        /// Ways cut at random, each direction by itself.
        case holes
        /// What one node sends, or is sent, takes long.
        case slow
        /// Connections break and are made again.
        case broken
        /// A process ends, the system goes on.
        case kill
        /// The power fails.
        case power
        /// The power fails at a call of the disk, some calls from now.
        case powerAtCall
        /// The power fails everywhere at once.
        case blackout
        /// A node stops in order and starts again.
        case restart
        /// A process stands still.
        case pause
        /// A machine stands still, and its monotonic clock does too.
        case suspend
        /// A clock runs at another rate.
        case drift
        /// A wall clock jumps.
        case jump
        /// A disk fails now and then.
        case failingDisk
        /// A disk is full for a while.
        case fullDisk
        /// A log's disk takes long.
        case slowDisk
        /// A leader does not hear that another is being elected.
        case ambush
        /// What one node of two has not synced is lost, and the other cannot be asked.
        case amnesia
        /// A leader ends, or is cut off, while clients write without idempotency keys by way of others.
        case interruption
        /// A leader is cut off with a longer log than those have that elect the next but one.
        case rivals
        /// A leader goes, and no other has applied what it acknowledged.
        case lag
        /// A connection breaks as a leader reads from its log, slowly, what the other node lacks.
        case slowLoad
    }

    /// What happens to the data of a node.
    enum Loss: String, Sendable, CaseIterable {
        /// Everything is gone.
        case wiped
        /// The folder is put back as it was some time ago.
        case oldImage
        /// A bit of the log's older part is another one.
        case rotten
        /// The database of a shard is none any more.
        case unreadable
        /// The database of a shard has a value that nobody wrote.
        case altered
    }

    package init(using generator: inout SplitMix64) {
        func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }
        nodes = chance(85) ? 3 : 5
        seconds = UInt64.random(in: 360...480, using: &generator)
        network.delayMax = chance(60) ? 1_000 : UInt64.random(in: 1_000...120_000, using: &generator)
        network.looseRaftMessages = chance(30)
        network.bytesOnTheWayMax = 16_384 << Int.random(in: 0...6, using: &generator)
        // Room for an append and a part of a snapshot.
        if chance(50) { network.outboundBytesMax = 5 << 18 }
        network.tornPercent = Int.random(in: 0...5, using: &generator)
        network.lossPercent = chance(50) ? 0 : Int.random(in: 1...15, using: &generator)
        network.duplicatePercent = chance(50) ? 0 : Int.random(in: 1...15, using: &generator)
        delays.syncMax = chance(60) ? 2_000 : UInt64.random(in: 2_000...80_000, using: &generator)
        delays.workMax = chance(60) ? 500 : UInt64.random(in: 500...30_000, using: &generator)
        delays.applyMax = chance(60) ? 500 : UInt64.random(in: 500...50_000, using: &generator)
        // Applying may fall far behind committing.
        if chance(10) { delays.applyMax = 5_000_000 }
        // Faults and requests that come close together find other faults than pauses in which leases and shares run
        // out.
        let isDense = chance(15)
        faultIntervalMilliseconds = UInt64.random(in: isDense ? 6_000...20_000 : 15_000...45_000, using: &generator)
        faults = Fault.allCases.filter { _ in chance(60) }
        if faults.isEmpty { faults = [.kill] }
        // An old image needs most luck to show something.
        loss = chance(50) ? (Loss.allCases + [.oldImage]).randomElement(using: &generator) : nil
        if let loss, ![.altered, .oldImage].contains(loss), chance(50) {
            secondLoss = [.wiped, .rotten, .unreadable].randomElement(using: &generator)
        }
        membership = chance(75)
        hasDisturbedChanges = chance(50)
        driftPartsPerMillionMax = 9_000
        clients = Int.random(in: 3...6, using: &generator)
        thinkMillisecondsMax = UInt64.random(in: isDense ? 1_000...5_000 : 4_000...11_000, using: &generator)
        // Production's time scale has many more events in a second.
        let isFast = chance(15)
        electionTimeoutMilliseconds = isFast ? 600 : 2_000
        heartbeatIntervalMilliseconds = isFast ? 100 : 500
        tickMilliseconds = isFast ? 10 : 100
        if isFast {
            seconds = UInt64.random(in: 150...200, using: &generator)
            faultIntervalMilliseconds /= 2
            thinkMillisecondsMax /= 2
        }
        rebalanceDelayMilliseconds = [5_000, 20_000, 60_000].randomElement(using: &generator) ?? 5_000
        scrubIntervalMilliseconds = [120_000, 300_000].randomElement(using: &generator) ?? 120_000
        // Found by comparing two parts while a leader stays, which none does for long.
        if loss == .altered { scrubIntervalMilliseconds = 5_000 }
        // Snapshots are sent where the log was collected, so it is kept short.
        segmentBytes = [16, 32, 64].randomElement(using: &generator).map { $0 << 10 } ?? 65_536
        logBytesTarget = segmentBytes * Int.random(in: 2...3, using: &generator)
        keepEntries = [0, 10, 100].randomElement(using: &generator) ?? 10
        checkpointMilliseconds = UInt64.random(in: 500...5_000, using: &generator)
        checkpointAgeMilliseconds = UInt64.random(in: 2_000...30_000, using: &generator)
        wrongDaysPercent = chance(40) ? 50 : 0
        hasLoneWrongClock = chance(25)
        // Clients that hurry come to such a limit.
        hasLowRate = chance(25)
        hasPressing = hasLowRate || chance(35)
        if hasLowRate { limits[.requestsPerSecond] = Int64.random(in: 8...15, using: &generator) }
        hasLongReads = chance(40)
        isUpgraded = chance(30)
        hasAssets = !isUpgraded && chance(60)
        hasFlood = !isUpgraded && chance(8)
        hasFullStore = chance(8)
        hasWideStore = chance(35)
        hasLongDay = (isUpgraded || !hasAssets) && chance(40)
        if hasLongDay { longDayCommands = chance(20) ? 0 : isUpgraded || chance(50) ? 1_760 : 1_000 }
        // What a follower lacks is then read from the log, a little at a time.
        if chance(30) {
            (raft.cacheBytesMax, raft.probeBytesMax, raft.appendBytesMax) = (segmentBytes / 2, 1_024, 4_096)
        }
        if chance(40) { makeLimitsSmall(using: &generator) }
        // What a database lacks of its quota is collected from several others.
        if chance(20) { shards = 3 }
        if chance(50) { processors = Int.random(in: 1...2, using: &generator) }
        hasSmallPages = chance(60)
        if hasSmallPages { makePagesSmall(using: &generator) }
        if !isUpgraded && chance(50) {
            limits[.recordVersionDays] = 30
            limits[.recordVersionsMax] = Int64.random(in: 1...4, using: &generator)
        }
    }

    private mutating func makePagesSmall(using generator: inout SplitMix64) {
        func pick(_ values: [Int]) -> Int { values[Int.random(in: values.indices, using: &generator)] }
        tuning.walkedFirst = pick([1, 3, 64])
        tuning.triedEntries = pick([1, 4, 16])
        tuning.fewRows = pick([0, 2, 16])
        tuning.gatheredRows = pick([0, 3, 30])
        tuning.groupLooked = pick([1, 3])
        tuning.groupMax = tuning.groupLooked + pick([1, 5])
        (tuning.ringMin, tuning.ringMax) = (pick([1, 5]), pick([6, 12]))
        tuning.examinedMax = pick([3, 10, 10_000])
        tuning.pageBytesMax = pick([300, 1_000, 4 << 20])
        tuning.feedRowsMax = pick([2, 10_000, 10_000])
        tuning.feedBytesMax = pick([300, 4 << 20, 4 << 20])
        tuning.answerBytesMax = pick([700, 1_500, 6 << 20])
    }

    /// Limits that production's loads meet, and a simulation's only where they are small.
    private mutating func makeLimitsSmall(using generator: inout SplitMix64) {
        func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: values.indices, using: &generator)] }
        let commandBytes = segmentBytes / 2
        raft.appendBytesMax = pick([1 << 20, 4_096, 512])
        raft.probeBytesMax = pick([64 << 10, 1_024, 64])
        raft.inflightAppendsMax = pick([64, 2, 1])
        raft.inflightBytesMax = pick([8 << 20, 4_096])
        raft.cacheBytesMax = pick([4 << 20, commandBytes, commandBytes / 2])
        raft.pendingReadsMax = pick([65_536, 16])
        raft.uncommittedBytesMax = pick([16 << 20, 2 * commandBytes, commandBytes])
        logQueueBytes = pick([64 << 20, 2 * raft.uncommittedBytesMax, raft.uncommittedBytesMax])
        apply = (pick([10_000, 20, 4]), pick([2_000, 10]), pick([2_000, 3, 1]))
    }
}
