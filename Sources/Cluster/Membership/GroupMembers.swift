package import RaftCore
package import Wire

/// The members of a group, as its leader has them in force.
package struct GroupMembers: Hashable, Sendable {
    package var leader: ReplicaID
    package var configuration: Configuration
    /// Whether the configuration is known to be committed.
    package var isCommitted: Bool
    /// What each of the others has of the log, in entries that it lacks.
    package var lag: [Lag]
    /// The epoch of the map that the leader goes by.
    package var epoch: UInt64
    /// What it waits for; empty where nothing is to be done, or is not known to be held up.
    package var waitsFor: String

    /// How far a member is behind.
    package struct Lag: Hashable, Sendable {
        package var replica: ReplicaID
        package var missingEntries: UInt64
    }

    package init(
        leader: ReplicaID, configuration: Configuration, isCommitted: Bool, lag: [Lag] = [], epoch: UInt64 = 0,
        waitsFor: String = ""
    ) {
        self.leader = leader
        self.configuration = configuration
        self.isCommitted = isCommitted
        self.lag = lag
        self.epoch = epoch
        self.waitsFor = waitsFor
    }

    /// Whether a replica was, or never will be, a member, so that it may give up what it holds: a committed
    /// configuration is without it, and none is under way.
    package func isWithout(_ replica: ReplicaID) -> Bool {
        isCommitted && !configuration.isJoint && !configuration.contains(replica)
    }
}

extension GroupMembers: WireCodable {
    /// 1 leader, 2 configuration, 3 committed, 4 lag (1 replica, 2 entries), 5 epoch, 6 what it waits for.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, leader.rawValue)
        writer.field(2) { configuration.encode(to: &$0) }
        writer.field(3, isCommitted)
        for entry in lag {
            writer.field(4) { nested in
                nested.field(1, entry.replica.rawValue)
                nested.field(2, entry.missingEntries)
            }
        }
        writer.field(5, epoch)
        writer.field(6, waitsFor)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(leader: ReplicaID(0), configuration: Configuration(voters: []), isCommitted: false)
        while let field = try reader.nextField() {
            switch field {
            case 1: leader = ReplicaID(try reader.unsigned())
            case 2: configuration = try reader.message()
            case 3: isCommitted = try reader.bool()
            case 4:
                var nested = try reader.nested()
                var entry = Lag(replica: ReplicaID(0), missingEntries: 0)
                while let field = try nested.nextField() {
                    switch field {
                    case 1: entry.replica = ReplicaID(try nested.unsigned())
                    case 2: entry.missingEntries = try nested.unsigned()
                    default: try nested.skip()
                    }
                }
                lag.append(entry)
            case 5: epoch = try reader.unsigned()
            case 6: waitsFor = try reader.string()
            default: try reader.skip()
            }
        }
    }
}
