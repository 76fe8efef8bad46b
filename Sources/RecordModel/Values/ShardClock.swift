/// How the time of a shard follows the times of its commands.
///
/// A command carries the clock of the node that made it, and any node's clock may be wrong. So no command moves a
/// shard's time by more than `stepMax`, forward or back. The time of a shard serves only to forget what is old; what a
/// client sees is judged and stamped by the time of its own command.
package enum ShardClock {
    /// How far a command moves the time of a shard, in milliseconds. Clocks that differ by less are taken to agree.
    package static let stepMax: Int64 = 60_000
    /// How far a maintenance command moved it before `FeatureLevel.evenSteps`.
    package static let hourStepMax: Int64 = 3_600_000
    /// How far a shard without traffic may lag behind its leader's clock before maintenance brings it there.
    package static let lagMax: Int64 = 3_600_000

    /// The time of a shard after a command.
    /// - Parameter time: the time before it; 0 at the beginning.
    package static func time(_ time: Int64, after command: Int64, stepMax: Int64 = stepMax) -> Int64 {
        if time == 0 { return command }
        let (ahead, isFar) = command.subtractingReportingOverflow(time)
        if command > time { return isFar || ahead > stepMax ? time + stepMax : command }
        guard isFar || ahead < -Self.stepMax else { return time }
        return isFar || ahead < -stepMax ? time - stepMax : command
    }

    /// The time that a change is stamped with: its command's, or the last one's where the two differ by no more than
    /// clocks do.
    package static func stamp(of command: Int64, notBefore last: Int64) -> Int64 {
        let (behind, isFar) = last.subtractingReportingOverflow(command)
        return !isFar && (1...stepMax).contains(behind) ? last : command
    }
}
