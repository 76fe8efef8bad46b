import Admission
import Cluster
import Directory
import RecordModel
import Synchronization

/// Tells the directory which API tokens and server keys are used: once a day and node for each, so that it costs
/// requests a comparison, and the directory next to nothing.
package final class TokenUses: Sendable {
    /// What is used again within this time is not told again.
    private static let toldEveryMilliseconds: Int64 = 86_400_000
    private static let intervalMilliseconds: UInt64 = 30_000
    /// Ids that wait; further ones are noted when they are used again.
    private static let waitingMax = 10_000

    private let waiting = Mutex<Set<String>>([])
    private let work: PeriodicTask

    init(platform: any NodePlatform) { work = PeriodicTask(platform: platform) }

    func note(_ admitted: Admitted, in directory: DirectorySnapshot, now: Int64) {
        if let token = admitted.apiToken { note(token.id, token.lastUsed, now: now) }
        if let id = admitted.keyID, let key = directory.serverKey(id: id) { note(id, key.lastUsed, now: now) }
    }

    private func note(_ id: String, _ lastUsed: Int64?, now: Int64) {
        guard now - (lastUsed ?? 0) >= Self.toldEveryMilliseconds else { return }
        waiting.withLock { ids in
            if ids.count < Self.waitingMax { ids.insert(id) }
        }
    }

    func start(_ service: RecordService) {
        work.start(everyMilliseconds: Self.intervalMilliseconds) { [weak self] in await self?.flush(service) }
    }

    func stop() { work.stop() }

    /// Tells the directory what waits. What cannot be told now is noted again by its next use.
    package func flush(_ service: RecordService) async {
        let ids = waiting.withLock { ids in
            defer { ids = [] }
            return ids.sorted()
        }
        guard !ids.isEmpty, await service.node.levels.has(.administration, in: .directory) else { return }
        for start in stride(from: 0, to: ids.count, by: AdministrationCommand.usesMax) {
            let some = Array(ids[start..<min(start + AdministrationCommand.usesMax, ids.count)])
            let entry = DirectoryEntry(.administration(.noteUses(ids: some, time: service.now)))
            do throws(RequestFailure) { try await service.cluster.enter(entry, by: service.deadline()) } catch {
                return
            }
        }
    }
}
