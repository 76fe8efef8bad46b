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
        let node = AuditOrigin(
            actor: "node \(service.node.settings.nodeID)", requestID: "", address: "", time: service.now)
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
