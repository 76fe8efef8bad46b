import Foundation
import Logging
import RaftCore
import Storage
import Synchronization
import Wire

/// The file `restored.json` that a restore leaves in a data folder, until every group has begun a new incarnation.
final class RestoreMarker: Sendable {
    private struct Content: Codable {
        var incarnation: UInt64
    }

    private let path: String
    private let isThere: Atomic<Bool>

    init(folder: String) {
        path = folder + "/restored.json"
        isThere = Atomic(FileManager.default.fileExists(atPath: path))
    }

    var isPresent: Bool { isThere.load(ordering: .acquiring) }

    /// The incarnation that the restore begins; nil if there is none to begin.
    func incarnation() throws -> UInt64? {
        guard isPresent else { return nil }
        do {
            return try JSONDecoder().decode(Content.self, from: Data(contentsOf: URL(filePath: path))).incarnation
        } catch {
            throw NodeStartError("\(path) cannot be read: \(error). Restore the backup again")
        }
    }

    func remove() throws {
        try removeFile(at: path)
        isThere.store(false, ordering: .releasing)
    }
}

extension ClusterNode {
    /// Whether a restore waits for its new incarnations. Until then clients are not served: their tokens and tags may
    /// be of a future that was lost, and nothing would tell.
    package var isRestoring: Bool { restore.isPresent }

    /// Has every shard begin the restore's incarnation. Doing it twice, or on several nodes at once, changes nothing
    /// more.
    func finishRestore() async throws {
        guard let incarnation = try restore.incarnation() else { return }
        logger.notice("this cluster was restored: zones begin incarnation \(incarnation)")
        let command = GroupCommand.machine(ShardCommand.startIncarnation(incarnation).encoded())
        for group in map.groups where group != .directory {
            while true {
                do {
                    _ = try await router.submit(command, to: group, by: deadline())
                    break
                } catch {
                    try await platform.clock.sleep(milliseconds: 100)
                }
            }
        }
        try restore.remove()
    }
}
