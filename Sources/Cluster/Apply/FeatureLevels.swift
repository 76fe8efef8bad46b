package import RaftCore
package import RecordModel
import Wire

/// What one node's replicas need to know of feature levels.
package struct FeatureLevels: Sendable {
    /// The levels that this build, as it was started, can follow.
    var supported: ClosedRange<FeatureLevel> = FeatureLevel.supported
    /// Makes durable that a replica here comes to a level, before its database says so: an older build must not open
    /// it.
    var record: @Sendable (FeatureLevel) throws -> Void = { _ in }

    /// Why a node cannot be started on what it holds; nil if it can.
    /// - Parameters:
    ///   - level: the level that is in force there.
    ///   - place: the folder or the file that says so.
    static func refusal(of level: FeatureLevel, in place: String, supported: ClosedRange<FeatureLevel>) -> String? {
        if level > supported.upperBound {
            return "\(place) is at feature level \(level), and this build follows levels up to \(supported.upperBound)"
                + (supported.upperBound < FeatureLevel.supported.upperBound ? " as it was started" : "")
                + ": start the build that was used before, or a later one. Nothing was changed"
        }
        guard level < supported.lowerBound else { return nil }
        return "\(place) is at feature level \(level), and this build follows levels from \(supported.lowerBound) on: "
            + "start the build that was used before, wait until `zonekeeper cluster status` has every group at level "
            + "\(supported.lowerBound), then start this one. Nothing was changed"
    }
}

/// An entry of the log asks for what this build does not know. The replica stops before it; a build that knows it goes
/// on from there. The entry is not damaged.
package struct BuildTooOld: Error, Hashable, Sendable, CustomStringConvertible {
    package var group: GroupID
    package var index: LogIndex
    /// The level that the entry asks for; nil where it does not say.
    package var needs: FeatureLevel?
    package var supported: FeatureLevel
    /// What was not understood.
    package var detail: String

    package var description: String {
        let need = needs.map { "feature level \($0)" } ?? "a feature level above \(supported) (\(detail))"
        return "this build is too old for what the log holds: entry \(index) of group \(group) needs \(need), and this "
            + "build follows levels up to \(supported); start a build that has it"
    }
}

/// Thrown by a state machine that was given a command of which it knows too little.
package struct UnknownCommand: Error, Hashable, Sendable {
    /// Its place among the commands that were given together.
    var offset: Int
    var error: WireError
}
