package import RaftCore
package import RecordModel
package import Wire

/// What the payload of a log entry asks of a group.
package enum GroupCommand: Sendable, WireUnion {
    /// A command of the group's state machine.
    case machine([UInt8])
    /// The same, of a command that frees more than it takes: it is taken on a full disk, too.
    case freeing([UInt8])
    /// Every replica hashes its state at this index and keeps the result.
    case hashState
    /// The same of a bounded part of the state, which begins after the cursor.
    case scrub(after: [UInt8])
    /// From here on the group's commands are applied at this feature level; a lower one than is in force changes
    /// nothing.
    case raise(FeatureLevel)

    /// What has a shard's group do a command.
    package init(_ command: ShardCommand) {
        let bytes = command.encoded()
        self = command.isFreeing ? .freeing(bytes) : .machine(bytes)
    }

    /// Whether an encoded command is taken on a full disk.
    static func isFreeing(_ encoded: [UInt8]) -> Bool {
        if case .freeing? = try? GroupCommand(decoding: encoded) { true } else { false }
    }

    package func encode(to writer: inout WireWriter) {
        switch self {
        case .machine(let command): writer.field(1, command)
        case .freeing(let command): writer.field(3, command)
        case .hashState: writer.field(2, true)
        case .scrub(let cursor): writer.field(4, cursor)
        case .raise(let level): writer.field(5, level.rawValue)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .machine(try reader.array())
        case 2: self = try reader.flag(.hashState)
        case 3: self = .freeing(try reader.array())
        case 4: self = .scrub(after: try reader.array())
        case 5: self = .raise(FeatureLevel(try reader.unsigned()))
        default: return nil
        }
    }
}

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
    /// The group whose replica stops.
    package var group: GroupID
    /// The first entry that is not applied; everything before it is.
    package var index: LogIndex
    /// The level that the entry asks for; nil where it does not say.
    package var needs: FeatureLevel?
    /// The highest level that this build follows, as it was started.
    package var supported: FeatureLevel
    /// What was not understood.
    package var detail: String

    /// What the entry needs and what this build follows, in words for operators.
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
