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

    /// The incarnation that a restore begins.
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

/// What a restore makes every shard begin.
package struct NewIncarnation {
    private let node: ClusterNode

    /// Of the cluster that a node is of.
    package init(of node: ClusterNode) { self.node = node }

    /// How long clients wait until all shards have the copies of subscriptions again.
    private static let copiesMillisecondsMax: UInt64 = 60_000

    /// Has every shard begin an incarnation, and waits until homes have sent the copies of subscriptions again: a
    /// client that follows notifications from the start must not miss what is committed before the copies are there.
    package func begin(_ incarnation: UInt64) async throws {
        let shards = node.map.groups.filter { $0 != .directory }
        let command = GroupCommand.machine(ShardCommand.startIncarnation(incarnation).encoded())
        for group in shards {
            while true {
                do {
                    _ = try await node.router.submit(command, to: group, by: node.deadline())
                    break
                } catch {
                    try await node.platform.clock.sleep(milliseconds: 100)
                }
            }
        }
        let end = Deadline(milliseconds: Self.copiesMillisecondsMax, from: node.platform.clock.now)
        for group in shards {
            while await !hasSentCopies(group) {
                guard !end.isOver(at: node.platform.clock.now) else {
                    node.logger.warning(
                        "group \(group): clients are served while copies of subscriptions are still to be sent")
                    break
                }
                try await node.platform.clock.sleep(milliseconds: 50)
            }
        }
    }

    /// Whether nothing that a group has to send to others waits; false where that cannot be found out now.
    private func hasSentCopies(_ group: GroupID) async -> Bool {
        let answer = try? await node.router.read(ShardRead.hasSentCopies.encoded(), from: group, by: node.deadline())
        guard let answer, case .found(let found)? = try? ReadAnswer(decoding: answer) else { return false }
        return found.bytes == [1]
    }
}
