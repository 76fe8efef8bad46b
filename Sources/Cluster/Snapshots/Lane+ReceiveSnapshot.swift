import Foundation
import Logging
import NIOCore
import RaftCore
import Storage

// The follower's part: collect the chunks of one snapshot in a file, check it, and let the core decide whether to install it.
extension Lane {
    /// Takes one chunk; `reply` says whether the next is welcome.
    func receive(_ chunk: SnapshotChunk, reply: @escaping @Sendable (NodeReply) -> Void) {
        guard let replica = replicas[chunk.group], replica.receivedSnapshot == nil, chunk.term >= replica.raft.term
        else {
            return reply(.failed("no snapshot of group \(chunk.group) is wanted"))
        }
        let path = "\(settings.dataPath)/snapshots/\(chunk.group)-\(chunk.snapshotID)-in.sqlite"
        snapshotPool.run { [self] in
            do {
                try IncomingSnapshot.write(chunk, to: path)
                guard chunk.isLast else { return reply(.done([])) }
                try IncomingSnapshot.check(chunk, at: path)
            } catch {
                try? FileManager.default.removeItem(atPath: path)
                return reply(.failed("\(error)"))
            }
            eventLoop.execute { [self] in
                received(chunk, at: path, reply: reply)
            }
        }
    }

    private func received(_ chunk: SnapshotChunk, at path: String, reply: @escaping @Sendable (NodeReply) -> Void) {
        guard let replica = replicas[chunk.group], replica.receivedSnapshot == nil else {
            discard(path)
            return reply(.failed("another snapshot is being installed"))
        }
        replica.receivedSnapshot = Replica.ReceivedSnapshot(mark: chunk.mark, path: path, reply: reply)
        let effects = replica.raft.snapshotReceived(chunk.mark, from: chunk.leader, term: chunk.term, now: now)
        if effects.install == nil {
            replica.receivedSnapshot = nil
            discard(path)
            reply(.failed("the snapshot is not wanted any more"))
        }
        perform(effects, of: chunk.group)
        finishTurn()
    }

    private func discard(_ path: String) {
        snapshotPool.run { try? FileManager.default.removeItem(atPath: path) }
    }

    /// Hands the received file to the applier, behind what it has to do already.
    func install(_ mark: SnapshotMark, of group: GroupID) {
        guard let replica = replicas[group], let received = replica.receivedSnapshot, received.mark == mark else {
            preconditionFailure("group \(group): the core wants a snapshot at \(mark.position) that was not received")
        }
        logger.notice("group \(group): installing a snapshot at \(mark.position)")
        if replica.applier.enqueue(.install(path: received.path, mark)) { replica.worker.schedule(replica.applier) }
    }

    /// The database is in place: now the log may forget what came before.
    func logInstalled(_ mark: SnapshotMark, of group: GroupID) {
        guard var submitted = replicas[group]?.submitted else { return }
        submitted.position = mark.position
        replicas[group]?.submitted = submitted
        turn.writes.append(LogWrite(group: group, snapshotMark: mark))
        turn.waiting.append(Persist(group: group, state: submitted, messages: [], installed: mark))
        finishTurn()
    }
}

enum IncomingSnapshot {
    static func write(_ chunk: SnapshotChunk, to path: String) throws {
        if chunk.offset == 0 {
            guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
            else {
                throw StorageMismatch("cannot create \(path)")
            }
        }
        let handle = try FileHandle(forWritingTo: URL(filePath: path))
        defer { try? handle.close() }
        guard try handle.seekToEnd() == chunk.offset else {
            throw StorageMismatch("a chunk at \(chunk.offset) does not follow what was received; start again")
        }
        try handle.write(contentsOf: chunk.bytes)
        if chunk.isLast { try handle.synchronize() }
    }

    static func check(_ chunk: SnapshotChunk, at path: String) throws {
        let (bytes, hash) = try FileHash.ofFile(at: path)
        guard bytes == chunk.totalBytes, hash == chunk.fileHash else {
            throw StorageMismatch("the received snapshot does not have the hash its sender gave")
        }
        let mark = try SnapshotInstall.mark(ofFileAt: path)
        guard mark == chunk.mark else {
            throw StorageMismatch(
                "the received snapshot stands at \(mark.position), announced was \(chunk.mark.position)")
        }
    }
}
