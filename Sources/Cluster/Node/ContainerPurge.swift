import Directory
import Foundation
import Logging
import RaftCore
import RecordModel
import Storage
import Synchronization
import Wire

/// The end of deleted containers whose time is over. The node that leads the directory has every shard remove its rows,
/// and then the directory. Each step may be done again, by this node or the next leader: how far it came is in the
/// tables.
struct ContainerPurge: Sendable {
    let node: ClusterNode

    /// How often the leader looks for containers whose time is over.
    private static let intervalMilliseconds: UInt64 = 60_000
    /// Between two parts of a shard's rows, so that requests get their turn.
    private static let pauseMilliseconds: UInt64 = 200
    /// Tokens and keys that one command revokes.
    private static let revokedMax = 500

    /// Purges until the task is cancelled.
    func keep() async {
        while !Task.isCancelled {
            try? await node.platform.clock.sleep(milliseconds: Self.intervalMilliseconds)
            await purgeAll()
        }
    }

    /// Purges the containers whose time is over, where this node leads the directory.
    func purgeAll() async {
        for name in node.directory.snapshot.deletions.keys.sorted() {
            guard node.leads(.directory), node.clockProblem == nil else { continue }
            do {
                if let deletion = node.directory.snapshot.deletions[name] { try await purge(deletion) }
            } catch {
                node.logger.notice("container \(name): its purge waits: \(error)")
            }
        }
    }

    private func purge(_ deletion: ContainerDeletion) async throws {
        let name = deletion.name
        let now = node.platform.clock.wallMilliseconds
        guard deletion.isPurging || now >= deletion.restorableUntil else { return }
        if !deletion.isPurging {
            node.logger.notice("container \(name): deleted a week ago, its data are removed now")
            try await end(name, .purge(time: now), isAudited: true)
        }
        let command = GroupCommand(ShardCommand.removeContainer(name))
        for group in node.map.groups where group != .directory {
            while true {
                let answer = try await node.router.submit(command, to: group, by: node.deadline())
                if try ContainerRemoval(decoding: answer).isDone { break }
                try await node.platform.clock.sleep(milliseconds: Self.pauseMilliseconds)
            }
        }
        // No more are made since the container was deleted.
        var position: TokenPosition?
        repeat {
            let page = try await NodeAccounts(of: node).read { [position] accounts in
                try accounts.tokens(TokenFilter(container: name), after: position, limit: Self.revokedMax)
            }
            try await revoke(page.tokens.map(\.id), of: name)
            position = page.next
        } while position != nil
        try await revoke(node.directory.snapshot.serverKeys.filter { $0.container == name }.map(\.id), of: name)
        try await end(name, .remove, isAudited: true)
        node.logger.notice("container \(name): nothing is left of it")
    }

    private func revoke(_ ids: [String], of name: String) async throws {
        for first in stride(from: 0, to: ids.count, by: Self.revokedMax) {
            let part = ids[first..<min(first + Self.revokedMax, ids.count)]
            try await end(name, .revoke(ids: Array(part)), isAudited: false)
        }
    }

    private func end(_ name: String, _ step: ContainerEnd, isAudited: Bool) async throws {
        let origin = AuditOrigin.node(node.settings.nodeID, at: node.platform.clock.wallMilliseconds)
        let entry = DirectoryEntry(.endContainer(name, step), origin: isAudited ? origin : nil)
        let answer = try await node.changeDirectory(entry, by: node.deadline())
        if case .refused(let error) = try DirectoryOutcome(decoding: answer) { throw error }
    }
}
