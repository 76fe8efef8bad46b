import Cluster
import Directory
import RecordModel
import Synchronization
import Wire

/// Tells the audit log what was refused for lack of permission, once a second, so that a flood of refusals neither fills the log nor
/// loads the directory (`RefusalTally`).
final class AuditTrail: Sendable {
    private static let intervalMilliseconds: Int64 = 1_000

    private let tally = Mutex(RefusalTally())
    private let work = RepeatedWork()

    /// Notes that somebody was refused something for lack of permission.
    func refused(_ origin: AuditOrigin, in container: String, action: String, subject: String, count: Int = 1) {
        tally.withLock {
            $0.add(origin, in: container, action: action, subject: subject, count: UInt64(count))
        }
    }

    func start(_ context: WebContext) {
        work.start(everyMilliseconds: Self.intervalMilliseconds) { [weak self] in await self?.flush(context) }
    }

    /// Ends the work beside the requests, after writing what waits.
    func stop(_ context: WebContext) async {
        work.stop()
        await flush(context, isLast: true)
    }

    /// Writes what waits; what cannot be written now waits on, as far as there is room.
    private func flush(_ context: WebContext, isLast: Bool = false) async {
        let node = AuditOrigin(
            actor: "node \(context.node.settings.nodeID)", requestID: "", address: "", time: context.now)
        let refusals = tally.withLock { $0.take(node, isLast: isLast) }
        guard !refusals.isEmpty else { return }
        do {
            _ = try await context.node.router.submit(
                .machine(DirectoryEntry(nil, refusals: refusals).encoded()), to: .directory,
                by: context.node.deadline())
        } catch ClusterError.unavailable {
            tally.withLock { $0.putBack(refusals) }
        } catch {
            // Written or not: told twice would be told wrong.
        }
    }
}
