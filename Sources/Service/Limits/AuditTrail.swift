import Cluster
package import Directory
import Foundation
import RecordModel
import Synchronization
import Wire

/// Collects what the audit log shall tell and no command of the directory brings about: refusals by role. Alike ones of one moment
/// become one record, so that a flood of them neither fills the log nor loads the directory.
package final class AuditTrail: Sendable {
    /// What makes refusals alike.
    private struct Kind: Hashable {
        var actor: String
        var action: String
        var subject: String
    }

    private struct State {
        var events: [Kind: AuditEvent] = [:]
        /// In the order of their first occurrence.
        var order: [Kind] = []
        var dropped: UInt64 = 0
    }

    /// Kinds that wait at once; further ones are counted together.
    private static let kindsMax = 200
    private static let intervalMilliseconds: UInt64 = 1_000

    private let state = Mutex(State())
    private let work: RepeatedWork

    init(platform: any NodePlatform) { work = RepeatedWork(platform: platform) }

    /// Notes that somebody was refused something for lack of permission.
    package func refused(_ origin: AuditOrigin, action: String, subject: String, count: Int = 1) {
        let kind = Kind(actor: origin.actor, action: action, subject: subject)
        state.withLock { state in
            if state.events[kind] != nil {
                state.events[kind]?.count += UInt64(count)
            } else if state.order.count < Self.kindsMax {
                state.events[kind] = AuditEvent(
                    origin: origin, action: action, subject: subject, outcome: "refused: no permission",
                    count: UInt64(count))
                state.order.append(kind)
            } else {
                state.dropped += UInt64(count)
            }
        }
    }

    func start(_ service: RecordService) {
        work.start(everyMilliseconds: Self.intervalMilliseconds) { [weak self] in await self?.flush(service) }
    }

    /// Ends the work beside the requests, after writing what waits.
    func stop(_ service: RecordService) async {
        work.stop()
        await flush(service)
    }

    /// Writes what waits; what cannot be written now waits on, as far as there is room.
    private func flush(_ service: RecordService) async {
        let (taken, dropped) = state.withLock { state in
            defer { state = State() }
            return (state.order.compactMap { state.events[$0] }, state.dropped)
        }
        guard !taken.isEmpty else { return }
        var events = taken
        if dropped > 0 {
            let origin = AuditOrigin(
                actor: "node \(service.node.settings.nodeID)", requestID: "", address: "", time: service.now)
            events.append(
                AuditEvent(
                    origin: origin, action: "refusals", subject: "of other kinds in the same second",
                    outcome: "refused: no permission", count: dropped))
        }
        do {
            _ = try await service.node.router.submit(
                .machine(DirectoryEntry(nil, events: events).encoded()), to: .directory, by: service.node.deadline())
        } catch ClusterError.unavailable {
            for event in taken {
                refused(event.origin, action: event.action, subject: event.subject, count: Int(event.count))
            }
        } catch {
            // Written or not: told twice would be told wrong.
        }
    }
}
