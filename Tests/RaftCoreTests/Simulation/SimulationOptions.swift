import RaftCore

/// How bad the world of one seed is: drawn from the seed, so that each run has a mixture of its own.
struct SimulationOptions {
    var voters: Int
    var settings = RaftSettings()
    var lossPercent: Int
    var duplicatePercent: Int
    var delayMicrosecondsMax: UInt64
    var persistMicrosecondsMax: UInt64
    var faultIntervalMilliseconds: UInt64
    var partitions: Bool
    var oneWayPartitions: Bool
    var crashes: Bool
    var pauses: Bool
    var membership: Bool
    var transfers: Bool
    var compaction: Bool
    /// Clocks run at most this much too fast or too slow.
    var driftPartsPerMillionMax: Int64
    /// Whether that is within what the leases rely on.
    var isDriftWithinBound: Bool
    /// Whether everything turns on one question: does a leader that was cut off still read when another one commits?
    var huntsLeases: Bool

    static let electionTimeoutMilliseconds: UInt64 = 400

    init(using generator: inout SplitMix64) {
        func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }
        voters = [1, 2, 3, 3, 3, 4, 5, 5].randomElement(using: &generator) ?? 3
        lossPercent = chance(50) ? 0 : Int.random(in: 1...25, using: &generator)
        duplicatePercent = chance(50) ? 0 : Int.random(in: 1...20, using: &generator)
        delayMicrosecondsMax = chance(50) ? 2_000 : UInt64.random(in: 2_000...150_000, using: &generator)
        persistMicrosecondsMax = chance(60) ? 3_000 : UInt64.random(in: 3_000...100_000, using: &generator)
        faultIntervalMilliseconds = UInt64.random(in: 150...1_500, using: &generator)
        partitions = chance(70)
        oneWayPartitions = chance(50)
        crashes = chance(70)
        pauses = chance(60)
        membership = chance(75)
        transfers = chance(60)
        compaction = chance(70)
        isDriftWithinBound = chance(80)
        driftPartsPerMillionMax = isDriftWithinBound ? 100_000 : 400_000
        huntsLeases = chance(25)
        settings.electionTimeoutMilliseconds = Self.electionTimeoutMilliseconds
        settings.heartbeatIntervalMilliseconds = 80
        settings.appendBytesMax = 400
        settings.probeBytesMax = 200
        settings.inflightAppendsMax = 4
        settings.inflightBytesMax = 1_000
        settings.cacheBytesMax = 600
        settings.uncommittedBytesMax = 3_000
        if chance(75) {
            settings.lease = LeaseSettings(
                promiseMilliseconds: Self.electionTimeoutMilliseconds, clockDriftPartsPerMillionMax: 100_000)
        }
        if huntsLeases { hunt() }
    }

    /// A quick network and quick disks, so that a next leader comes as early as it may, and a lease that must be over
    /// by then.
    private mutating func hunt() {
        voters = 3
        (lossPercent, duplicatePercent) = (0, 0)
        (delayMicrosecondsMax, persistMicrosecondsMax) = (1_000, 1_000)
        faultIntervalMilliseconds = 400
        (membership, crashes, pauses) = (false, false, false)
        settings.lease = LeaseSettings(
            promiseMilliseconds: Self.electionTimeoutMilliseconds, clockDriftPartsPerMillionMax: 100_000)
    }
}
