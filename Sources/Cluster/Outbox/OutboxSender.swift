import Logging
import PeerTransport
package import RaftCore
package import RecordModel
import RecordStore
import Storage
import Synchronization
import Wire

/// Delivers the effects that wait in the groups that this node leads: of each source and destination in order, one
/// command at a time.
///
/// It may be wrong about who leads, and read an older state: the receiver skips what it has. So nothing here has to be
/// remembered over a restart.
final class OutboxSender: Sendable {
    private struct Stream: Hashable {
        var source: GroupID
        var destination: GroupID
    }

    private struct State {
        /// Streams being delivered, and whether more came meanwhile.
        var running: [Stream: Bool] = [:]
        /// Groups whose streams are being looked for.
        var looking: [GroupID: Bool] = [:]
        var isStopped = false
    }

    /// How often waiting effects are tried again; what is new is delivered at once.
    private static let roundMilliseconds: UInt64 = 1_000

    private let platform: any NodePlatform
    /// Of the effects of one delivery, which must fit a command.
    private let bytesMax: Int
    private let router: Router
    private let leaders: LeaderTable
    private let holdings: HostedGroups
    private let upkeep: BlockingPool
    private let levels: KnownLevels
    private let logger: Logger
    private let state = Mutex(State())

    init(_ parts: NodeParts, router: Router, levels: KnownLevels) {
        platform = parts.platform
        bytesMax = min(OutboxDelivery.bytesMax, parts.settings.commandBytesMax / 2)
        self.router = router
        leaders = parts.lane.leaders
        holdings = parts.keeper.holdings
        upkeep = parts.pools.upkeep
        self.levels = levels
        logger = parts.logger
    }

    /// Tries again what waits, until the task is cancelled.
    func run() async {
        while !Task.isCancelled {
            for applier in holdings.all where applier.machine.waitingEffects > 0 { ring(applier.group) }
            do { try await platform.clock.sleep(milliseconds: Self.roundMilliseconds) } catch { break }
        }
        state.withLock { $0.isStopped = true }
    }

    /// Effects wait in a group. Any thread.
    func ring(_ group: GroupID) {
        work(\.looking, on: group) { [self] in await look(at: group) }
    }

    /// Has a key worked on, by one task at a time: once more where it is worked on already.
    private func work<Key: Hashable & Sendable>(
        _ work: any WritableKeyPath<State, [Key: Bool]> & Sendable, on key: Key,
        _ body: @escaping @Sendable () async -> Void
    ) {
        let isNew = state.withLock { state in
            if state.isStopped { return false }
            defer { state[keyPath: work][key] = state[keyPath: work][key] != nil }
            return state[keyPath: work][key] == nil
        }
        guard isNew else { return }
        platform.startTask { [self] in
            repeat { await body() } while again(work, key)
        }
    }

    /// Whether something came while a key was worked on; if not, the work on it has ended.
    private func again<Key: Hashable>(_ work: WritableKeyPath<State, [Key: Bool]>, _ key: Key) -> Bool {
        state.withLock { state in
            guard state[keyPath: work][key] == true, !state.isStopped else {
                state[keyPath: work][key] = nil
                return false
            }
            state[keyPath: work][key] = false
            return true
        }
    }

    private func look(at group: GroupID) async {
        guard leaders.leads(group), let applier = holdings[group] else { return }
        let found = try? await upkeep.run { try applier.database.read { try WaitingEffects.destinations(in: $0) } }
        for destination in found ?? [] { start(Stream(source: group, destination: GroupID(destination))) }
    }

    private func start(_ stream: Stream) {
        work(\.running, on: stream) { [self] in
            do {
                try await deliver(stream)
            } catch {
                logger.debug("group \(stream.source): effects on group \(stream.destination) wait: \(error)")
            }
        }
    }

    /// Delivers what waits; throws where that has to wait for the next round.
    private func deliver(_ stream: Stream) async throws {
        while leaders.leads(stream.source), let applier = holdings[stream.source] {
            let next = try await upkeep.run {
                try applier.database.read { db in
                    try WaitingEffects.nextDelivery(
                        from: stream.source.rawValue, to: stream.destination.rawValue, bytesMax: self.bytesMax,
                        in: db)
                }
            }
            guard let next, await levels.has(.notifications, in: stream.destination) else { return }
            let answer = try await router.submit(
                GroupCommand(ShardCommand.deliver(next)), to: stream.destination, by: deadline())
            // A stream of an earlier incarnation ends by itself, when its group begins the next one.
            guard try OutboxReceipt(decoding: answer).isTaken else { return }
            let acknowledgement = OutboxAcknowledgement(
                destination: stream.destination.rawValue, incarnation: next.incarnation, through: next.last)
            _ = try await router.submit(
                GroupCommand(ShardCommand.acknowledge(acknowledgement)), to: stream.source, by: deadline())
        }
    }

    private func deadline() -> Deadline { Deadline(milliseconds: 5_000, from: platform.clock.now) }
}

/// What is known of the feature levels of groups, which never fall.
package final class KnownLevels: Sendable {
    private let platform: any NodePlatform
    private let router: Router
    private let holdings: HostedGroups
    private let levels = Mutex<[GroupID: FeatureLevel]>([:])

    init(platform: any NodePlatform, router: Router, holdings: HostedGroups) {
        self.platform = platform
        self.router = router
        self.holdings = holdings
    }

    /// Whether a level is in force in a group; false where that cannot be found out now.
    package func has(_ level: FeatureLevel, in group: GroupID) async -> Bool {
        let deadline = Deadline(milliseconds: 1_000, from: platform.clock.now)
        return (try? await isInForce(level, in: group, by: deadline)) ?? false
    }

    /// Whether a level is in force in a group. It is not where the leader's build is too old to say.
    /// - Throws: where the group's leader does not answer by the deadline.
    package func isInForce(
        _ level: FeatureLevel, in group: GroupID, by deadline: Deadline
    ) async throws(ClusterError) -> Bool {
        if let here = holdings[group]?.level, here >= level { return true }
        if let known = levels.withLock({ $0[group] }), known >= level { return true }
        let answer: [UInt8]
        do {
            answer = try await router.read(ShardRead.level.encoded(), from: group, by: deadline)
        } catch .failed {
            return false
        }
        guard case .found(let found)? = try? ReadAnswer(decoding: answer), let number = found.bytes.first
        else { return false }
        levels.withLock { $0[group] = FeatureLevel(UInt64(number)) }
        return FeatureLevel(UInt64(number)) >= level
    }
}
