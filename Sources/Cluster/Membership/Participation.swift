import Logging
import NIOCore
package import RaftCore
import Synchronization
package import Wire

/// Why a node came to its end by itself.
package enum NodeEnding: Hashable, Sendable {
    /// Its data folder is out of date: after a restart, the node sets it aside and joins with a new one.
    case beginsAnew(String)
    /// It has no business in the cluster; starting it again changes nothing.
    case excluded(String)
}

/// Whether this node may take part in its cluster, and what keeps it from that.
final class Participation: Sendable {
    private struct State {
        var ending: NodeEnding?
        /// Why the folder must not be used, if that cannot be written to it: the disk may be full.
        var givesUp: String?
        /// What was last logged about waiting.
        var said = ""
    }

    private let folder: NodeFolder
    private let lane: Lane
    private let logger: Logger
    private let state = Mutex(State())

    init(_ parts: NodeParts) {
        folder = parts.keeper.folder
        lane = parts.lane
        logger = parts.logger
    }

    /// Why the node has ended by itself; nil while it has not. Set before the lane says that it ends.
    var ending: NodeEnding? { state.withLock(\.ending) }

    /// Why this folder is to be given up, where that could not be noted yet.
    var unnotedEnd: String? { state.withLock(\.givesUp) }

    /// Whether nothing is known that keeps this folder out of the cluster.
    var isAllowed: Bool { state.withLock { $0.ending == nil && $0.givesUp == nil } }

    /// Ends the node, and gives this folder up at the next start. Where that cannot be noted, the node takes no part
    /// until it can.
    func beginAnew(_ reason: String) {
        do {
            let target = Quarantine.freeName(in: folder.path)
            try folder.update { identity in
                guard identity.discard == nil else { return }
                identity.discard = NodeIdentity.Discard(reason: reason, folder: target)
            }
        } catch {
            state.withLock { $0.givesUp = reason }
            lane.eventLoop.execute { [lane] in lane.peers.trust.isHeld = true }
            return say("the data folder cannot be given up, though \(reason): \(error)")
        }
        end(.beginsAnew(reason))
    }

    func end(_ ending: NodeEnding) {
        let isFirst = state.withLock { state in
            defer { state.ending = state.ending ?? ending }
            return state.ending == nil
        }
        guard isFirst else { return }
        let reason =
            switch ending {
            case .beginsAnew(let reason), .excluded(let reason): reason
            }
        lane.eventLoop.execute { [lane] in lane.context.end(reason) }
    }

    /// Logs what the node waits for, unless that was the last thing said.
    func say(_ reason: String) {
        let isNew = state.withLock { state in
            defer { state.said = reason }
            return state.said != reason
        }
        if isNew { logger.notice("\(reason)") }
    }
}

/// The members of a group, as its leader has them in force.
package struct GroupMembers: Hashable, Sendable, WireMessage {
    /// The replica that answered, after it made sure that it still leads.
    package var leader: ReplicaID
    /// The latest configuration in the leader's log.
    package var configuration: Configuration
    /// Whether the configuration is known to be committed.
    package var isCommitted: Bool
    /// What each of the others has of the log, in entries that it lacks.
    package var lag: [Lag] = []
    /// The epoch of the leader's map.
    package var epoch: UInt64 = 0
    /// What a pending change waits for; empty without one, or if nothing is known to hold it up.
    package var waitsFor: String = ""

    /// How far a member is behind.
    package struct Lag: Hashable, Sendable, WireMessage {
        /// A voter or learner other than the leader.
        package var replica: ReplicaID
        /// How many entries at the end of the leader's log the member has not acknowledged as durable.
        package var missingEntries: UInt64

        package static var blank: Self { GroupMembers.Lag(replica: ReplicaID(0), missingEntries: 0) }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &replica)
            try wire.field(2, &missingEntries)
        }
    }

    /// Whether a replica is a former member, or never became one, so that it may be deleted: a committed configuration
    /// is without it, and no change is under way.
    package func isWithout(_ replica: ReplicaID) -> Bool {
        isCommitted && !configuration.isJoint && !configuration.contains(replica)
    }

    package static var blank: Self {
        GroupMembers(leader: ReplicaID(0), configuration: Configuration(voters: []), isCommitted: false)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &leader)
        try wire.field(2, nested: &configuration)
        try wire.field(3, &isCommitted)
        try wire.field(4, &lag)
        try wire.field(5, &epoch)
        try wire.field(6, &waitsFor)
    }
}

extension GroupMembers {
    /// Whether the group is as the map has it, its leader aside.
    package func isSettled(by desired: Configuration, epoch: UInt64) -> Bool {
        isCommitted && configuration == desired && self.epoch >= epoch
    }
}
