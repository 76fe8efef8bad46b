import Cluster
import KeyValueStore
import PeerTransport
import RaftCore
import RecordStore
import Wire

// A node whose clock alone is wrong makes no commands, once it can know that.
extension Simulation {
    /// How far the time of a command may be from the true one: as far as clocks that agree, and as long as a request
    /// may take.
    private static let differenceMax: Int64 = 120_000
    /// How long nothing else must have gone wrong before a command counts against its maker.
    private static let calmNanoseconds = 40 * World.second

    /// Says that something goes wrong until then by which nodes may not hear each other.
    func disturbed(for nanoseconds: UInt64) {
        calmSince = max(calmSince, world.now + nanoseconds)
    }

    /// Whether a wall clock is wrong, or was within the last minute.
    var isClockWrong: Bool {
        wrongSince > 0 && wrongSince + 60 * World.second > world.now || nodes.contains { $0.wallError != 0 }
    }

    /// Whether half of the clocks or more are wrong, or were within the last minute. Only running nodes count: a node
    /// that has just started knows no clock of one that is down.
    var areMostClocksWrong: Bool {
        if isLongDay { return true }
        let present = nodes.filter { $0.isEnlisted && !$0.isRetired && !$0.isDown }
        let wrong = present.count { node in
            node.wallError != 0 || node.rightSince.map { $0 + 60 * World.second > world.now } ?? false
        }
        return wrong * 2 >= present.count
    }

    /// Looks at what a leader sends for the first time.
    func judgeTimes(of message: PeerMessage) {
        guard case .appendRequest(let request) = message.message.body, let last = request.entries.last else { return }
        let seen = lastSeen[message.group] ?? .zero
        lastSeen[message.group] = max(seen, last.index)
        guard isOneClockWrong else { return }
        for entry in request.entries where entry.index > seen {
            guard let time = Self.time(of: entry) else { continue }
            world.met(.judgedTime)
            let truth = world.wallMilliseconds + commonOffset
            guard (time - truth).magnitude > UInt64(Self.differenceMax) else { continue }
            violated(
                "group \(message.group): entry \(entry.index) has the time of a wrong clock, \(time - truth) ms off")
        }
    }

    /// Whether exactly one clock is wrong, and has been for a while in which its node heard all others.
    private var isOneClockWrong: Bool {
        let present = nodes.filter { $0.isEnlisted && !$0.isRetired }
        let end = world.now < Self.calmNanoseconds ? 0 : world.now - Self.calmNanoseconds
        guard present.count > 2, calmSince <= end, wrongSince + 15 * World.second <= world.now,
            present.count(where: { $0.wallError != 0 }) == 1
        else { return false }
        return present.allSatisfy { $0.running != nil && $0.upSince <= end }
    }

    private static func time(of entry: Entry) -> Int64? {
        guard case .command(let bytes) = entry.payload, let command = try? GroupCommand(decoding: bytes) else {
            return nil
        }
        switch command {
        case .machine(let bytes), .freeing(let bytes):
            switch try? ShardCommand(decoding: bytes) {
            case .record(.modifyRecords(let command)): return command.time
            case .record(.modifyZone(let command)): return command.time
            case .record(.maintain(let command)): return command.time
            case .keyValue(let command): return command.time
            case .subscriptions(let command): return command.time
            case .reader(.move(_, _, let time, _, _, _)), .reader(.forget(_, let time)): return time
            case .record, .startIncarnation, .removeContainer, .deliver, .acknowledge, nil: return nil
            }
        case .hashState, .scrub, .raise: return nil
        }
    }
}
