import Cluster
package import Directory
import RecordModel
import Synchronization
import Wire

/// Tells the audit log what was refused for lack of permission, once a second, so that a flood of refusals neither
/// fills the log nor loads the directory (`RefusalTally`); and how often somebody signed in and out beyond what a log
/// has of one user.
package final class AuditTrail: Sendable {
    private static let intervalMilliseconds: UInt64 = 1_000

    private let tally = Mutex(RefusalTally())
    /// Beyond so many users of an hour, what more do is told one by one.
    private let signIns = Mutex(HourlyBudget(askersMax: 10_000))
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

    /// Whether the log tells of a sign-in or sign-out by a record of its own, which its command writes; of others it
    /// tells by their number when the hour is over.
    func tells(_ origin: AuditOrigin, in container: String) -> Bool {
        signIns.withLock {
            $0.begin(at: origin.time)
            return $0.take(1, of: HourlyBudget.Asker(actor: origin.actor, container: container)) != .counted
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
        let signIns = signIns.withLock {
            $0.begin(at: node.time, isLast: isLast)
            return $0.takeUntold()
        }
        guard !refusals.isEmpty || !signIns.isEmpty else { return }
        let events = signIns.map {
            $0.event("sessions", "sign-ins and sign-outs ", outcome: AuditEvent.done, at: node.time)
        }
        do {
            _ = try await service.node.router.submit(
                .machine(DirectoryEntry(nil, events: events, refusals: refusals).encoded()), to: .directory,
                by: service.deadline())
        } catch ClusterError.unavailable {
            tally.withLock { $0.putBack(refusals) }
            self.signIns.withLock { $0.putBack(signIns) }
        } catch {
            // Written or not: told twice would be told wrong.
        }
    }
}

/// What each actor may have told in one container within an hour: `recordsMax` records. What is beyond is counted until
/// the hour is over. Pure: times come with the events.
struct HourlyBudget: Sendable {
    struct Asker: Hashable {
        @Bytewise var actor: String
        @Bytewise var container: String
    }

    /// What becomes of an event.
    enum Share {
        /// It is told by a record.
        case told
        /// It is beyond the budget.
        case counted
        /// There are too many actors in this hour.
        case noRoom
    }

    /// How much of an actor was beyond the budget.
    struct Untold {
        let asker: Asker
        let count: UInt64

        /// - Parameter what: of what there is more, with a space behind it.
        func event(_ action: String, _ what: String = "", outcome: String, at time: Int64) -> AuditEvent {
            AuditEvent(
                origin: AuditOrigin(actor: asker.actor, requestID: "", address: "", time: time), action: action,
                subject: "\(count) more \(what)in container \(asker.container) within an hour", outcome: outcome,
                count: count)
        }
    }

    /// Records of one actor in one container in an hour.
    static let recordsMax = 60
    /// Actors that are counted in an hour.
    let askersMax: Int
    /// Hours since 1970.
    private var hour: Int64 = 0
    private var records: [Asker: Int] = [:]
    /// What was beyond the budget in the present hour, and in those that are over.
    private var untold: [Asker: UInt64] = [:]
    private var untoldOfEarlierHours: [Asker: UInt64] = [:]

    init(askersMax: Int) { self.askersMax = askersMax }

    /// Ends the present hour where the time is another one's.
    /// - Parameter isLast: the node stops: what the present hour left untold is to be told, too.
    mutating func begin(at time: Int64, isLast: Bool = false) {
        let new = AuditHour.begun(at: time, after: hour)
        if let new { (hour, records) = (new, [:]) }
        guard new != nil || isLast else { return }
        untoldOfEarlierHours.merge(untold) { $0 + $1 }
        untold = [:]
    }

    /// Takes a record for some alike events.
    /// - Parameter isFull: no more can be told now.
    mutating func take(_ count: UInt64, of asker: Asker, unless isFull: Bool = false) -> Share {
        if records[asker, default: 0] >= Self.recordsMax {
            untold[asker, default: 0] += count
            return .counted
        }
        guard !isFull, records[asker] != nil || records.count < askersMax else { return .noRoom }
        records[asker, default: 0] += 1
        return .told
    }

    /// What was beyond the budget in hours that are over, in a fixed order.
    mutating func takeUntold() -> [Untold] {
        defer { untoldOfEarlierHours = [:] }
        return untoldOfEarlierHours.map { Untold(asker: $0.key, count: $0.value) }.sorted {
            ($0.asker.$container, $0.asker.$actor) < ($1.asker.$container, $1.asker.$actor)
        }
    }

    /// Has what could not be told wait for the next time.
    mutating func putBack(_ counts: [Untold]) {
        for each in counts { untoldOfEarlierHours[each.asker, default: 0] += each.count }
    }
}

/// Puts refusals together for the audit log: alike ones of one moment are one record, and what one actor is refused in
/// one container has an `HourlyBudget`.
///
/// Pure: times come with the events. Each node has one, so the log may get as many from each; the directory bounds the
/// sum.
struct RefusalTally: Sendable {
    /// What makes refusals alike.
    private struct Kind: Hashable {
        var asker: HourlyBudget.Asker
        var action: String
        var subject: String
    }

    /// Kinds that wait at once, and actors that are counted in an hour; further ones are counted together.
    static let kindsMax = 200
    static let askersMax = 500
    private static let outcome = "refused: no permission"

    private var waiting: [Kind: AuditEvent] = [:]
    /// In the order of their first occurrence.
    private var order: [Kind] = []
    private var budget = HourlyBudget(askersMax: askersMax)
    /// Refusals for which there was no room.
    private var others: UInt64 = 0
    /// Events that could not be written.
    private var returned: [AuditEvent] = []

    mutating func add(_ origin: AuditOrigin, in container: String, action: String, subject: String, count: UInt64) {
        budget.begin(at: origin.time)
        let asker = HourlyBudget.Asker(actor: origin.actor, container: container)
        let kind = Kind(asker: asker, action: action, subject: subject)
        if waiting[kind] != nil {
            waiting[kind]?.count += count
            return
        }
        switch budget.take(count, of: asker, unless: order.count >= Self.kindsMax) {
        case .told:
            waiting[kind] = AuditEvent(
                origin: origin, action: action, subject: subject, outcome: Self.outcome, count: count)
            order.append(kind)
        case .counted: break
        case .noRoom: others += count
        }
    }

    /// What the log shall tell now: what waited; and, of an hour that is over, how many more there were.
    /// - Parameter isLast: the node stops: what the present hour left untold is told, too.
    mutating func take(_ node: AuditOrigin, isLast: Bool = false) -> [AuditEvent] {
        budget.begin(at: node.time, isLast: isLast)
        var events = returned + order.compactMap { waiting[$0] }
        (returned, waiting, order) = ([], [:], [])
        events += budget.takeUntold().map { $0.event("refusals", outcome: Self.outcome, at: node.time) }
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
