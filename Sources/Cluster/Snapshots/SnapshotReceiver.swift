import Foundation
import GRDB
import Logging
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
import Storage

/// The follower's part: collects the chunks of one snapshot in a file, checks it, and lets the core decide whether to
/// install it. On the lane's event loop.
struct SnapshotReceiver: Sendable {
    let context: LaneContext
    let runner: GroupRunner

    /// Takes one chunk; `reply` says how much of the snapshot is here.
    func receive(_ chunk: SnapshotChunk, from node: NodeID, reply: @escaping @Sendable (NodeReply) -> Void) {
        guard context.peers.trust.accepts(node) else { return reply(.unavailable("this folder may be old")) }
        guard let replica = context.replicas[chunk.group], chunk.term >= replica.raft.term else {
            return reply(.failed("no snapshot of group \(chunk.group) is wanted"))
        }
        if replica.raft.snapshotPosition.index >= chunk.mark.position.index {
            return reply(.received(chunk.totalBytes))
        }
        if replica.receivedSnapshot != nil { return answerLater(chunk, at: replica, reply: reply) }
        let name = "\(chunk.group)-\(chunk.leader)-\(chunk.snapshotID)-in.sqlite"
        let path = "\(context.settings.dataPath)/snapshots/\(name)"
        if let other = replica.incomingSnapshotPath, other != path { discard(other) }
        replica.incomingSnapshotPath = path
        do throws(QueueFull) {
            try context.pools.snapshots.submit { [self] isActive in
                guard isActive else { return reply(.unavailable("the node is stopping")) }
                let kept = Result { try keep(chunk, at: path) }
                context.eventLoop.execute { self.kept(chunk, kept, at: path, reply: reply) }
            }
        } catch {
            reply(.overloaded)
        }
    }

    /// Adds a chunk to the file, where there is room for all that follows; called on the pool's thread.
    /// - Returns: how many bytes the file has then; with all of them it was checked. After a failure there is no file.
    private func keep(_ chunk: SnapshotChunk, at path: String) throws -> UInt64 {
        do {
            try context.settings.requireRoom(for: chunk.totalBytes - min(chunk.offset, chunk.totalBytes))
            let size = try IncomingSnapshot.write(chunk, to: path, on: context.settings.log.disk)
            if size == chunk.totalBytes {
                let pool = context.pools.snapshots
                try IncomingSnapshot.check(chunk, at: path, context.settings.featureLevels) { pool.isActive }
            }
            return size
        } catch {
            try? FileManager.default.removeItem(atPath: path)
            throw error
        }
    }

    private func kept(
        _ chunk: SnapshotChunk, _ result: Result<UInt64, any Error>, at path: String,
        reply: @escaping @Sendable (NodeReply) -> Void
    ) {
        let replica = context.replicas[chunk.group]
        switch result {
        case .success(let size):
            replica?.refusedSnapshot = nil
            if size < chunk.totalBytes { reply(.received(size)) } else { received(chunk, at: path, reply: reply) }
        case .failure(let error as NoRoom):
            if replica?.refusedSnapshot == nil { context.logger.error("group \(chunk.group): \(error)") }
            replica?.refusedSnapshot = error.description
            reply(.diskFull)
        case .failure(let error): reply(.failed("\(error)"))
        }
    }

    private func received(_ chunk: SnapshotChunk, at path: String, reply: @escaping @Sendable (NodeReply) -> Void) {
        guard let replica = context.replicas[chunk.group] else {
            discard(path)
            return reply(.failed("no snapshot of group \(chunk.group) is wanted"))
        }
        if replica.receivedSnapshot != nil { return answerLater(chunk, at: replica, reply: reply) }
        replica.incomingSnapshotPath = nil
        replica.receivedSnapshot = Replica.ReceivedSnapshot(
            mark: chunk.mark, path: path, snapshotID: chunk.snapshotID, totalBytes: chunk.totalBytes, reply: reply)
        let effects = replica.raft.snapshotReceived(chunk.mark, from: chunk.leader, term: chunk.term, now: context.now)
        if effects.install == nil {
            replica.receivedSnapshot = nil
            discard(path)
            reply(.failed("the snapshot is not wanted any more"))
        }
        runner.perform(effects, of: replica)
        runner.finishTurn()
    }

    /// A chunk while a snapshot is being installed: if it is of that one, the answer to the last chunk was lost, and
    /// this one gets it.
    private func answerLater(
        _ chunk: SnapshotChunk, at replica: Replica, reply: @escaping @Sendable (NodeReply) -> Void
    ) {
        guard replica.receivedSnapshot?.snapshotID == chunk.snapshotID else {
            return reply(.failed("another snapshot is being installed"))
        }
        replica.receivedSnapshot?.reply = reply
    }

    private func discard(_ path: String) {
        // Where there is no place for that, the file goes at the next start.
        try? context.pools.snapshots.submit { isActive in
            if isActive { try? FileManager.default.removeItem(atPath: path) }
        }
    }
}

enum IncomingSnapshot {
    /// Appends a chunk that follows what is in the file; any other changes nothing.
    /// - Returns: how many bytes the file has then. Once it has all of them it is durable.
    static func write(
        _ chunk: SnapshotChunk, to path: String, on disk: any LogDisk
    ) throws(DiskError) -> UInt64 {
        let isThere = FileManager.default.fileExists(atPath: path)
        // A missing file was deleted by a restart: it begins again.
        guard isThere || chunk.offset == 0 else { return 0 }
        let file = try disk.open(path, creating: !isThere)
        let size = try file.size()
        guard UInt64(size) == chunk.offset else { return UInt64(size) }
        try disk.writeAll(chunk.bytes, to: file, at: size)
        let newSize = UInt64(size + chunk.bytes.count)
        if newSize == chunk.totalBytes { try disk.sync(file) }
        return newSize
    }

    static func check(
        _ chunk: SnapshotChunk, at path: String, _ supported: ClosedRange<FeatureLevel>,
        while isWanted: () -> Bool = { true }
    ) throws {
        let (bytes, hash) = try FileHash.ofFile(at: path, while: isWanted)
        guard bytes == chunk.totalBytes, hash == chunk.fileHash else {
            throw StorageMismatch("the received snapshot does not have the hash its sender gave")
        }
        let mark = try SnapshotInstall.mark(ofFileAt: path)
        guard mark == chunk.mark else {
            throw StorageMismatch(
                "the received snapshot stands at \(mark.position), announced was \(chunk.mark.position)")
        }
        let level = try SnapshotInstall.level(ofFileAt: path)
        let place = "the snapshot of group \(chunk.group)"
        if let refusal = FeatureLevels.refusal(of: level, in: place, supported: supported) {
            throw StorageMismatch(refusal)
        }
    }
}

/// Puts a received database in the place of a group's own.
enum SnapshotInstall {
    /// Closes the old database, renames the new file over it and opens that. Once the rename is durable the old state
    /// is gone; the log's mark follows, and a crash between the two is made good at the next start, which trusts the
    /// database.
    ///
    /// Calling it again after a failure half-way is safe.
    static func replaceDatabase(
        at path: String, by newPath: String, mark: SnapshotMark, old: ShardDatabase, options: ShardDatabaseOptions,
        on disk: any LogDisk
    ) throws -> ShardDatabase {
        let files = FileManager.default
        let folder = URL(filePath: path).deletingLastPathComponent().path
        if files.fileExists(atPath: newPath) {
            // With its write-ahead log emptied the old file is whole by itself, should this end here.
            do {
                _ = try old.truncateWAL()
            } catch ShardDatabaseError.failedSync(let path) {
                // The WAL is needed by the next process.
                throw ShardDatabaseError.failedSync(path: path)
            } catch {
                // Held by readers, or damaged: it is replaced all the same.
            }
            try? old.close()
            for suffix in ["-wal", "-shm"] where files.fileExists(atPath: path + suffix) {
                try files.removeItem(atPath: path + suffix)
            }
            try disk.syncFolder(folder)
            try disk.rename(newPath, to: path)
        }
        // Also where a try before this one renamed it, and came no further.
        try disk.syncFolder(folder)
        let new = try ShardDatabase.open(path: path, options: options) { _ in
            throw StorageMismatch("the installed snapshot at \(path) is an empty database")
        }
        let found = try new.read { try AppliedRow.mark(of: $0) }
        guard found == mark else {
            throw StorageMismatch("the database at \(path) stands at \(found.position), installed was \(mark.position)")
        }
        return new
    }

    /// Reads where a database file stands that nobody has open.
    static func mark(ofFileAt path: String) throws -> SnapshotMark {
        try read(path) { try AppliedRow.mark(of: $0) }
    }

    /// Reads the feature level of a database file that nobody has open.
    static func level(ofFileAt path: String) throws -> FeatureLevel {
        try read(path) { try AppliedRow.level(of: $0) }
    }

    /// Reads a database file that nobody has open.
    static func read<Value>(_ path: String, _ body: (Database) throws -> Value) throws -> Value {
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        let hasLog = FileManager.default.fileExists(atPath: path + "-wal")
        // A connection that only reads makes these, and leaves them.
        defer { for suffix in hasLog ? ["-shm"] : ["-wal", "-shm"] { try? removeFile(at: path + suffix) } }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        defer { try? queue.close() }
        return try queue.read(body)
    }
}

/// A copy of a database would take the room that is kept for everything else.
struct NoRoom: Error, CustomStringConvertible {
    var description: String
}

extension NodeSettings {
    /// - Throws: `NoRoom` where the disk has no more free than what files of assets leave to everything else, beside
    ///   this many bytes; `DiskError` where it cannot be asked.
    func requireRoom(for bytes: UInt64) throws {
        let free = try log.disk.freeBytes(at: dataPath)
        guard free - assets.spareBytes < Int(clamping: bytes) else { return }
        var text = "there is no room for a snapshot, which needs \(bytes >> 20) MB more: the disk of \(dataPath) has "
        text += "\(free >> 20) MB free, and keeps \(assets.spareBytes >> 20) MB for everything else"
        let leftovers = try Quarantine.leftovers(in: dataPath)
        if !leftovers.isEmpty {
            text += "; delete \(leftovers.joined(separator: " and ")) there once the other nodes are ready"
        }
        throw NoRoom(description: text)
    }
}
