import Cluster
import Directory
import Logging
import RaftCore
import RecordModel
import RecordStore
import Synchronization

/// Removes what deleted users and webhooks left at their homes: subscriptions and their copies, notifications, and the
/// tokens of devices.
///
/// The deletion of an account notes nothing of this, and a webhook goes with its own, but for what was under way.
/// Instead, each node looks from time to time through the subscribers of the shards that it leads, and forgets those
/// without an account. So nothing stays for ever, whatever is lost in between: not after a crash, and not of a request
/// that was under way when the account was deleted.
///
/// What is forgotten does not come back, so who has no account is asked for in two rounds, and where nobody has one,
/// the directory is doubted.
package final class DeletedSubscribers: Sendable {
    /// How often it is looked whether a round is due, and the time between two rounds.
    private static let lookMilliseconds: UInt64 = 60_000
    private static let roundNanoseconds: UInt64 = 3_600_000_000_000
    /// The time before a round that is to confirm what the last one found.
    private static let confirmingNanoseconds: UInt64 = 600_000_000_000
    /// Subscribers of one page that may all be unknown.
    private static let unknownMax = 20
    /// Subscribers that one read brings, and the pause before the next one, so that requests get their turn.
    private static let pageMax = 200
    private static let pauseMilliseconds: UInt64 = 20

    private let work: PeriodicTask
    private let logger: Logger
    /// When the next round begins, by the node's monotonic clock.
    private let due = Atomic<UInt64>(0)
    /// Who was unknown in the last round.
    private let suspects = Mutex<Set<DatabaseKey>>([])

    init(platform: any NodePlatform, logger: Logger) {
        work = PeriodicTask(platform: platform)
        self.logger = logger
    }

    func start(_ service: RecordService) {
        work.start(everyMilliseconds: Self.lookMilliseconds) { [weak self, weak service] in
            guard let self, let service, service.uptime >= due.load(ordering: .relaxed) else { return }
            // What could not be looked at is looked at again a minute later.
            guard await forgetAll(in: service) else { return }
            let isToConfirm = suspects.withLock { !$0.isEmpty }
            let pause = isToConfirm ? Self.confirmingNanoseconds : Self.roundNanoseconds
            due.store(service.uptime + pause, ordering: .relaxed)
        }
    }

    func stop() { work.stop() }

    /// Looks through all subscribers of the shards that this node leads, and forgets those whom the last round did not
    /// know, either.
    /// - Returns: whether none was left out.
    package func forgetAll(in service: RecordService) async -> Bool {
        let known = suspects.withLock(\.self)
        var found: Set<DatabaseKey> = []
        defer { suspects.withLock { $0 = found } }
        var isWhole = true
        // A container's shards one after another: looking up its users takes an index, which is made once then.
        for container in service.directory.containers.keys.sorted() {
            for environment in Environment.allCases {
                let key = SchemaKey(container: container, environment: environment)
                for group in service.node.map.groups.dropFirst() where service.node.leads(group) {
                    do throws(RequestFailure) {
                        try await forget(in: key, group, known, &found, service)
                    } catch {
                        logger.notice("subscribers of \(container) on \(group) wait: \(error.error.reason)")
                        isWhole = false
                    }
                }
            }
        }
        return isWhole
    }

    /// - Parameters:
    ///   - suspects: who had no account in the last round.
    ///   - found: who has none now, and is not forgotten yet; added to.
    private func forget(
        in key: SchemaKey, _ group: GroupID, _ suspects: Set<DatabaseKey>, _ found: inout Set<DatabaseKey>,
        _ service: RecordService
    ) async throws(RequestFailure) {
        guard await service.node.levels.has(.webhooks, in: group) else { return }
        var last = ""
        while service.node.leads(group), !service.isRestoring {
            let read = ShardRead.subscribers(.init(in: key, after: last, limit: Self.pageMax))
            let answer = try await service.cluster.answer(to: read, from: group, by: service.deadline())
            let page = try unpacked(answer.bytes, as: SubscriberPage.self)
            guard let end = page.users.last else { return }
            // After the page was read: who is on it had an account before, and without one now it was deleted.
            try await service.cluster.refreshDirectory()
            let subscribers = page.users.map { DatabaseKey(privateDataOf: $0, in: key) }
            guard var unknown = try await withoutAccount(subscribers.filter { !$0.isOfWebhook }, on: group, service)
            else { return }
            let webhooks = Set(service.directory.webhooks(of: key).map(\.subscriber))
            unknown += subscribers.filter { $0.isOfWebhook && !webhooks.contains($0) }
            found.formUnion(unknown.filter { !suspects.contains($0) })
            for subscriber in unknown where suspects.contains(subscriber) {
                try await Self.forget(subscriber, in: service, by: service.deadline())
                logger.info("\(key.container): forgot the subscriptions of \(subscriber.owner), which was deleted")
            }
            if page.users.count < Self.pageMax { return }
            last = end
            try? await service.node.platform.clock.sleep(milliseconds: Self.pauseMilliseconds)
        }
    }

    /// The users on a page who have no account; nil where that is doubted.
    private func withoutAccount(
        _ users: [DatabaseKey], on group: GroupID, _ service: RecordService
    ) async throws(RequestFailure) -> [DatabaseKey]? {
        let names = try await service.accounts.names(ofOwners: users)
        let unknown = users.filter { names[$0.owner] == nil }
        guard unknown.count > Self.unknownMax, unknown.count == users.count else { return unknown }
        logger.warning(
            """
            \(users[0].container): none of \(unknown.count) subscribers on \(group) has an account, so the directory \
            is doubted and nothing is forgotten; if they were all deleted, this can be left as it is
            """)
        return nil
    }

    /// Removes everything that a subscriber has at its home, part by part.
    /// - Throws: `TRY_AGAIN_LATER` where a part is left in the end, because a shard that has copies takes none of their
    ///   removals now.
    static func forget(
        _ subscriber: DatabaseKey, in service: RecordService, by deadline: Deadline
    ) async throws(RequestFailure) {
        let home = subscriber.home(in: service)
        while true {
            let command = LogReaderCommand.forget(subscriber: subscriber, time: try service.trustedNow())
            let outcome = try await service.cluster.submit(
                .reader(command), to: home, by: deadline, as: LogReaderOutcome.self)
            if outcome.isDone { return }
            try? await service.node.platform.clock.sleep(milliseconds: 10)
            guard !Task.isCancelled, !deadline.isOver(at: service.node.platform.clock.now) else {
                throw .tryAgain("a part of what was kept for the subscriber is left, and goes by itself later")
            }
        }
    }
}

extension RecordService {
    /// Between two looks whether copies have arrived: twice as long each time, as a shard may be away.
    private static let pauseMilliseconds: (first: UInt64, max: UInt64) = (5, 160)

    /// Waits until every group matches the subscriptions that it is to match.
    /// - Parameters:
    ///   - marks: up to where effects are to be delivered.
    ///   - home: the group that sends them.
    /// - Throws: `TRY_AGAIN_LATER` where it is not known, which is not to say that nothing was done.
    func awaitCopies(
        _ marks: [OutboxMark], from home: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) {
        if marks.isEmpty { return }
        do throws(RequestFailure) {
            try await lookUntilDelivered(marks, from: home, by: deadline)
        } catch {
            guard error.error.code == .tryAgainLater else { throw error }
            throw RequestFailure(
                ServiceError(
                    .tryAgainLater,
                    "the subscriptions are kept, and it is not known whether every shard knows of them: send the "
                        + "request again (\(error.error.reason))", retryAfterSeconds: 1), details: .outcomeUnknown)
        }
    }

    private func lookUntilDelivered(
        _ marks: [OutboxMark], from home: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) {
        let clock = node.platform.clock
        var pause = Self.pauseMilliseconds.first
        while true {
            let answer = try await cluster.read(.isDelivered(marks), from: home, by: deadline)
            if case .found(let found) = answer, found.bytes == [1] { return }
            do {
                try await clock.sleep(milliseconds: pause)
                pause = min(pause * 2, Self.pauseMilliseconds.max)
            } catch {
                throw .tryAgain("given up")
            }
            guard !deadline.isOver(at: clock.now) else {
                throw .tryAgain("not every shard knows of them in time")
            }
        }
    }
}
