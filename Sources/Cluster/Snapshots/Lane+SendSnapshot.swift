import Crypto
import Foundation
import Logging
import NIOCore
import PeerTransport
import RaftCore
import Storage
import Wire

// The leader's part: copy the database, send the copy in chunks, one after another.
extension Lane {
    private static var chunkBytes: Int { 256 << 10 }

    func sendSnapshot(of group: GroupID, to follower: ReplicaID) {
        guard let replica = replicas[group], !replica.snapshotsUnderway.contains(follower), let transport else {
            return
        }
        replicas[group]?.snapshotsUnderway.append(follower)
        let path = "\(settings.dataPath)/snapshots/\(group)-\(follower)-out.sqlite"
        let applier = replica.applier
        let term = replica.raft.term
        let leader = replica.raft.id
        logger.notice("group \(group): node \(follower.node) is too far behind for the log, sending a snapshot")
        Task { [self] in
            var succeeded = false
            do {
                let outgoing = try await snapshotPool.run { try OutgoingSnapshot(copying: applier.database, to: path) }
                try await send(outgoing, group: group, term: term, leader: leader, to: follower, over: transport)
                succeeded = true
            } catch {
                logger.warning("group \(group): the snapshot for node \(follower.node) was not delivered: \(error)")
            }
            try? FileManager.default.removeItem(atPath: path)
            let delivered = succeeded
            eventLoop.execute { [self] in
                replicas[group]?.snapshotsUnderway.removeAll { $0 == follower }
                guard let effects = replicas[group]?.raft.snapshotSent(to: follower, succeeded: delivered, now: now)
                else {
                    return
                }
                perform(effects, of: group)
                finishTurn()
            }
        }
    }

    private func send(
        _ snapshot: OutgoingSnapshot, group: GroupID, term: Term, leader: ReplicaID, to follower: ReplicaID,
        over transport: PeerTransport
    ) async throws {
        var offset: UInt64 = 0
        repeat {
            let position = offset
            let bytes = try await snapshotPool.run { try snapshot.bytes(at: position, count: Self.chunkBytes) }
            let chunk = SnapshotChunk(
                group: group, snapshotID: snapshot.id, term: term, leader: leader, mark: snapshot.mark, offset: offset,
                totalBytes: snapshot.totalBytes, fileHash: snapshot.fileHash, bytes: bytes)
            let request = NodeRequest.snapshot(chunk).encoded()
            let reply = try await eventLoop.flatSubmit {
                transport.request(request, to: follower.node, channel: .bulk, timeout: .seconds(120))
            }.get()
            guard case .done = try NodeReply(decoding: reply) else {
                throw StorageMismatch("the follower refused a chunk of the snapshot")
            }
            offset += UInt64(bytes.count)
        } while offset < snapshot.totalBytes
    }
}

/// A copy of a group's database that is being sent.
struct OutgoingSnapshot: Sendable {
    let path: String
    let id: UInt64
    let mark: SnapshotMark
    let totalBytes: UInt64
    let fileHash: [UInt8]

    init(copying database: ShardDatabase, to path: String) throws {
        try? FileManager.default.removeItem(atPath: path)
        try database.copy(to: path)
        self.path = path
        id = UInt64.random(in: 1 ... .max)
        mark = try SnapshotInstall.mark(ofFileAt: path)
        (totalBytes, fileHash) = try FileHash.ofFile(at: path)
    }

    func bytes(at offset: UInt64, count: Int) throws -> [UInt8] {
        let handle = try FileHandle(forReadingFrom: URL(filePath: path))
        defer { try? handle.close() }
        try handle.seek(toOffset: offset)
        let data = try handle.read(upToCount: count) ?? Data()
        guard !data.isEmpty else {
            throw StorageMismatch("the copy at \(path) ends at \(offset) of \(totalBytes) bytes")
        }
        return [UInt8](data)
    }
}

enum FileHash {
    /// A file's size and SHA-256, read in pieces.
    static func ofFile(at path: String) throws -> (bytes: UInt64, hash: [UInt8]) {
        let handle = try FileHandle(forReadingFrom: URL(filePath: path))
        defer { try? handle.close() }
        var hasher = SHA256()
        var total: UInt64 = 0
        while let data = try handle.read(upToCount: 1 << 20), !data.isEmpty {
            hasher.update(data: data)
            total += UInt64(data.count)
        }
        return (total, Array(hasher.finalize()))
    }
}
