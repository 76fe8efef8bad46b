import Directory
import Foundation
import Logging
import RaftCore
import RecordModel
import Storage
import Synchronization
import Wire

// The end of deleted containers whose time is over. The node that leads the directory has every shard remove its rows,
// and then the directory. Each step may be done again, by this node or the next leader: how far it came is in the
// tables.
extension ClusterNode {
    /// How often the leader looks for containers whose time is over.
    private static let purgeIntervalMilliseconds: UInt64 = 60_000
    /// Between two parts of a shard's rows, so that requests get their turn.
    private static let purgePauseMilliseconds: UInt64 = 200
    /// Tokens and keys that one command revokes.
    private static let revokedMax = 500

    /// Purges until the task is cancelled.
    func keepPurging() async {
        while !Task.isCancelled {
            try? await platform.clock.sleep(milliseconds: Self.purgeIntervalMilliseconds)
            await purgeContainers()
        }
    }

    /// Purges the containers whose time is over, where this node leads the directory.
    package func purgeContainers() async {
        for name in directory.snapshot.deletions.keys.sorted() {
            guard leads(.directory), clockProblem == nil else { continue }
            do {
                if let deletion = directory.snapshot.deletions[name] { try await purge(deletion) }
            } catch {
                logger.notice("container \(name): its purge waits: \(error)")
            }
        }
    }

    private func purge(_ deletion: ContainerDeletion) async throws {
        let name = deletion.name
        let now = platform.clock.wallMilliseconds
        guard deletion.isPurging || now >= deletion.restorableUntil else { return }
        if !deletion.isPurging {
            logger.notice("container \(name): deleted a week ago, its data are removed now")
            try await end(name, .purge(time: now), isAudited: true)
        }
        let command = GroupCommand(ShardCommand.removeContainer(name))
        for group in map.groups where group != .directory {
            while true {
                let answer = try await router.submit(command, to: group, by: deadline())
                if try ContainerRemoval(decoding: answer).isDone { break }
                try await platform.clock.sleep(milliseconds: Self.purgePauseMilliseconds)
            }
        }
        // No more are made since the container was deleted.
        var position: TokenPosition?
        repeat {
            let page = try await NodeAccounts(of: self).read { [position] accounts in
                try accounts.tokens(TokenFilter(container: name), after: position, limit: Self.revokedMax)
            }
            try await revoke(page.tokens.map(\.id), of: name)
            position = page.next
        } while position != nil
        try await revoke(directory.snapshot.serverKeys.filter { $0.container == name }.map(\.id), of: name)
        try await end(name, .remove, isAudited: true)
        logger.notice("container \(name): nothing is left of it")
    }

    private func revoke(_ ids: [String], of name: String) async throws {
        for first in stride(from: 0, to: ids.count, by: Self.revokedMax) {
            let part = ids[first..<min(first + Self.revokedMax, ids.count)]
            try await end(name, .revoke(ids: Array(part)), isAudited: false)
        }
    }

    private func end(_ name: String, _ step: ContainerEnd, isAudited: Bool) async throws {
        let origin = AuditOrigin(
            actor: "node \(settings.nodeID)", requestID: "", address: "", time: platform.clock.wallMilliseconds)
        let entry = DirectoryEntry(.endContainer(name, step), origin: isAudited ? origin : nil)
        let answer = try await changeDirectory(entry, by: deadline())
        if case .refused(let error) = try DirectoryOutcome(decoding: answer) { throw error }
    }
}

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

extension ClusterNode {
    /// Whether a restore waits for its new incarnations. Until then clients are not served: their tokens and tags may
    /// be of a future that was lost, and nothing would tell.
    package var isRestoring: Bool { restore.isPresent }

    /// Has every shard begin the restore's incarnation. Doing it twice, or on several nodes at once, changes nothing
    /// more.
    func finishRestore() async throws {
        guard let incarnation = try restore.incarnation() else { return }
        logger.notice("this cluster was restored: zones begin incarnation \(incarnation)")
        try await NewIncarnation(of: self).begin(incarnation)
        try restore.remove()
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
