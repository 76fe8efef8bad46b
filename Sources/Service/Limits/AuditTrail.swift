import Cluster
package import Directory
import RecordModel
import Synchronization
import Wire

/// Tells the audit log what was refused for lack of permission, once a second, so that a flood of refusals neither
/// fills the log nor loads the directory (`RefusalTally`).
package final class AuditTrail: Sendable {
    private static let intervalMilliseconds: UInt64 = 1_000

    private let tally = Mutex(RefusalTally())
    private let work: PeriodicTask

    init(platform: any NodePlatform) { work = PeriodicTask(platform: platform) }

    /// Notes that somebody was refused something for lack of permission.
    package func refused(
        _ origin: AuditOrigin, in container: String, action: String, subject: String, count: Int = 1
    ) {
        tally.withLock {
            $0.add(origin, in: container, action: action, subject: subject, count: UInt64(count))
        }
    }

    func start(_ service: RecordService) {
        work.start(everyMilliseconds: Self.intervalMilliseconds) { [weak self] in await self?.flush(service) }
    }

    /// Ends the work beside the requests, after writing what waits.
    func stop(_ service: RecordService) async {
        work.stop()
        await flush(service, isLast: true)
    }

    /// Writes what waits; what cannot be written now waits on, as far as there is room.
    private func flush(_ service: RecordService, isLast: Bool = false) async {
        let node = AuditOrigin.node(service.node.settings.nodeID, at: service.now)
        let refusals = tally.withLock { $0.take(node, isLast: isLast) }
        guard !refusals.isEmpty else { return }
        do {
            _ = try await service.node.router.submit(
                .machine(DirectoryEntry(nil, refusals: refusals).encoded()), to: .directory,
                by: service.deadline())
        } catch ClusterError.unavailable {
            tally.withLock { $0.putBack(refusals) }
        } catch {
            // Written or not: told twice would be told wrong.
        }
    }
}

/// Puts refusals together for the audit log: alike ones of one moment are one record, and what one actor is refused in
/// one container takes `recordsPerHourMax` records an hour. Further ones are counted, and one record tells of them when
/// the hour is over.
///
/// Pure: times come with the events. Each node has one, so the log may get as many from each; the directory bounds the
/// sum.
struct RefusalTally: Sendable {
    /// What makes refusals alike.
    private struct Kind: Hashable {
        var asker: Asker
        var action: String
        var subject: String
    }

    private struct Asker: Hashable {
        @Bytewise var actor: String
        @Bytewise var container: String
    }

    /// Records of one actor in one container in an hour.
    static let recordsPerHourMax = 60
    /// Kinds that wait at once, and actors that are counted in an hour; further ones are counted together.
    static let kindsMax = 200
    static let askersMax = 500
    private static let hourMilliseconds: Int64 = 3_600_000
    private static let outcome = "refused: no permission"

    private var waiting: [Kind: AuditEvent] = [:]
    /// In the order of their first occurrence.
    private var order: [Kind] = []
    /// Hours since 1970.
    private var hour: Int64 = 0
    private var recordsByAsker: [Asker: Int] = [:]
    /// What was beyond the budget in the present hour, and in those that are over.
    private var untold: [Asker: UInt64] = [:]
    private var untoldOfEarlierHours: [Asker: UInt64] = [:]
    /// Refusals for which there was no room.
    private var others: UInt64 = 0
    /// Events that could not be written.
    private var returned: [AuditEvent] = []

    /// Notes a refusal.
    mutating func add(_ origin: AuditOrigin, in container: String, action: String, subject: String, count: UInt64) {
        beginHour(at: origin.time)
        let asker = Asker(actor: origin.actor, container: container)
        let kind = Kind(asker: asker, action: action, subject: subject)
        if waiting[kind] != nil {
            waiting[kind]?.count += count
        } else if recordsByAsker[asker, default: 0] >= Self.recordsPerHourMax {
            untold[asker, default: 0] += count
        } else if order.count < Self.kindsMax, recordsByAsker[asker] != nil || recordsByAsker.count < Self.askersMax {
            recordsByAsker[asker, default: 0] += 1
            waiting[kind] = AuditEvent(
                origin: origin, action: action, subject: subject, outcome: Self.outcome, count: count)
            order.append(kind)
        } else {
            others += count
        }
    }

    /// A clock that went back a little begins no new hour; one that was far ahead must not keep its own for long.
    private mutating func beginHour(at time: Int64) {
        let new = time / Self.hourMilliseconds
        guard new > hour || new < hour - 1 else { return }
        hour = new
        recordsByAsker = [:]
        endHour()
    }

    private mutating func endHour() {
        untoldOfEarlierHours.merge(untold) { $0 + $1 }
        untold = [:]
    }

    /// What the log shall tell now: what waited; and, of an hour that is over, how many more there were.
    /// - Parameter isLast: the node stops: what the present hour left untold is told, too.
    mutating func take(_ node: AuditOrigin, isLast: Bool = false) -> [AuditEvent] {
        beginHour(at: node.time)
        if isLast { endHour() }
        var events = returned + order.compactMap { waiting[$0] }
        (returned, waiting, order) = ([], [:], [])
        let more = untoldOfEarlierHours.sorted {
            ($0.key.$container, $0.key.$actor) < ($1.key.$container, $1.key.$actor)
        }
        untoldOfEarlierHours = [:]
        for (asker, count) in more {
            events.append(
                AuditEvent(
                    origin: AuditOrigin(actor: asker.actor, requestID: "", address: "", time: node.time),
                    action: "refusals", subject: "\(count) more in container \(asker.container) within an hour",
                    outcome: Self.outcome, count: count))
        }
        if others > 0 {
            events.append(
                AuditEvent(
                    origin: node, action: "refusals", subject: "of others in the same second", outcome: Self.outcome,
                    count: others))
            others = 0
        }
        return events
    }

    /// Has events that could not be written wait for the next time, as far as there is room.
    mutating func putBack(_ events: [AuditEvent]) {
        let all = returned + events
        returned = Array(all.prefix(Self.kindsMax))
        others += all.dropFirst(Self.kindsMax).reduce(0) { $0 + $1.count }
    }
}
