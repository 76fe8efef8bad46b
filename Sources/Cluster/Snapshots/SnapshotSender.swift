import Crypto
import DequeModule
import Foundation
import GRDB
import Logging
import NIOCore
import PeerTransport
import RaftCore
import Storage
import Wire

/// The leader's part: has databases copied and sent, to each node one after another.
final class SnapshotSender: @unchecked Sendable {
    // Touched on the lane's event loop only, which makes it safe to share.
    private let context: LaneContext
    private let health: ReplicaHealth
    private var lines = DeliveryLines<Order>()

    /// A snapshot that a follower is to have.
    private struct Order: Sendable {
        /// Tells copies apart.
        let id: UInt64
        let replica: Replica
        let follower: ReplicaID
        let completion: @Sendable (Replica, LogIndex?) -> Void
    }

    init(context: LaneContext, health: ReplicaHealth) { (self.context, self.health) = (context, health) }

    /// Sends a follower a snapshot, unless one is under way to it.
    /// - Parameter completion: called on the event loop, unless the replica is given up meanwhile, with where the
    ///   snapshot stands that the follower has now; nil if it was not delivered.
    func send(
        of replica: Replica, to follower: ReplicaID, completion: @escaping @Sendable (Replica, LogIndex?) -> Void
    ) {
        guard !replica.snapshotsUnderway.contains(follower), context.peers.transport != nil else { return }
        replica.snapshotsUnderway.append(follower)
        let order = Order(
            id: context.platform.random(), replica: replica, follower: follower, completion: completion)
        if lines.join(order, of: replica.group, to: follower.node) { begin(order) }
    }

    private func begin(_ order: Order) {
        let (replica, follower) = (order.replica, order.follower)
        let group = replica.group
        guard context.replica(of: group) === replica, let transport = context.peers.transport else {
            return ended(order, nil)
        }
        let delivery = SnapshotDelivery(
            id: order.id, group: group, leader: replica.raft.id, follower: follower, transport: transport,
            log: context.log, settings: context.settings, platform: context.platform, pool: context.pools.snapshots)
        let database = replica.applier.database
        context.logger.notice(
            "group \(group): node \(follower.node) is too far behind for the log, sending a snapshot")
        // A copy of damaged data would pass for a sound one.
        let isSound = replica.damage.map { $0.kind == .loading } ?? true
        context.platform.startTask { [self] in
            let delivered = isSound ? await deliver(delivery, of: database) : nil
            if !isSound { try? await delivery.wait() }
            context.eventLoop.execute { [self] in ended(order, delivered) }
        }
    }

    private func ended(_ order: Order, _ delivered: LogIndex?) {
        let (replica, follower) = (order.replica, order.follower)
        let next = lines.ended(of: replica.group, to: follower.node)
        if context.replica(of: replica.group) === replica {
            replica.snapshotsUnderway.removeAll { $0 == follower }
            // What comes after the copy is asked for at once.
            order.completion(replica, delivered)
        }
        context.log.keepEntries(past: nil, forCopy: order.id, of: replica.group)
        if let next { begin(next) }
    }

    private func deliver(_ delivery: SnapshotDelivery, of database: ShardDatabase) async -> LogIndex? {
        do {
            return try await delivery.send(copyOf: database) { [context] in
                try await context.eventLoop.submit {
                    context.replicas[delivery.group].flatMap { $0.raft.role == .leader ? $0.raft.term : nil }
                }.get()
            }
        } catch {
            context.logger.warning(
                "group \(delivery.group): the snapshot for node \(delivery.follower.node) was not delivered: \(error)")
            // Nobody makes room at once.
            if error is NoRoom { try? await delivery.wait(milliseconds: SnapshotDelivery.roomMilliseconds) }
            // What the follower says is no damage here.
            if let error = error as? DatabaseError, DataDamage.isDamage(error) {
                context.eventLoop.execute { [health] in health.damaged(delivery.group, error, .reading) }
            }
            return nil
        }
    }
}

/// Copies a group's database and sends the copy to a follower in chunks, one after another.
struct SnapshotDelivery: Sendable {
    /// How long a delivery rests for which a disk has no room, here or there.
    static let roomMilliseconds: UInt64 = 5_000
    private static let chunkBytes = 256 << 10
    /// How often in a row a chunk may fail to bring the follower further before the snapshot is given up.
    private static let failuresMax = 5

    let id: UInt64
    let group: GroupID
    let leader: ReplicaID
    let follower: ReplicaID
    let transport: any PeerNetwork
    let log: RaftLog
    let settings: NodeSettings
    let platform: any NodePlatform
    let pool: BlockingPool

    /// - Parameter term: the leader's; nil if it leads no more.
    /// - Returns: where the snapshot stands that the follower has now; nil if it was not delivered.
    func send(copyOf database: ShardDatabase, term: @Sendable () async throws -> Term?) async throws -> LogIndex? {
        guard let present = try await term() else { return nil }
        try await announce(database, present)
        let path = "\(settings.dataPath)/snapshots/\(group)-\(follower)-out.sqlite"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let snapshot = try await pool.run { [settings, pool] in
            try settings.requireRoom(for: try database.read { try ShardDatabase.fileBytes(of: $0) })
            return try OutgoingSnapshot(copying: database, to: path, id: id) { pool.isActive }
        }
        // The term after the copy, which may have entries of a later one than that in which it was asked for.
        guard let term = try await term() else { return nil }
        try await send(snapshot, term: term)
        return snapshot.mark.position.index
    }

    /// Waits before another attempt.
    func wait(milliseconds: UInt64 = 500) async throws { try await platform.clock.sleep(milliseconds: milliseconds) }

    /// Sends a first chunk without bytes before anything is copied: a follower that has no room refuses it.
    private func announce(_ database: ShardDatabase, _ term: Term) async throws {
        let (mark, totalBytes) = try await pool.run {
            try database.read { (try AppliedRow.mark(of: $0), try ShardDatabase.fileBytes(of: $0)) }
        }
        // The copy will stand here or later.
        log.keepEntries(past: mark.position.index, forCopy: id, of: group)
        do {
            _ = try await send(
                SnapshotChunk(
                    group: group, snapshotID: id, term: term, leader: leader, mark: mark, offset: 0,
                    totalBytes: totalBytes, fileHash: [], bytes: []))
        } catch let error as PeerTransportError {
            try await wait()
            throw error
        }
    }

    /// Each answer says how much the follower has, so that a lost connection costs a chunk, not all of it.
    private func send(_ snapshot: OutgoingSnapshot, term: Term) async throws {
        var offset: UInt64 = 0
        var failures = 0
        while offset < snapshot.totalBytes {
            let position = offset
            let bytes = try await pool.run { try snapshot.bytes(at: position, count: Self.chunkBytes) }
            let chunk = SnapshotChunk(
                group: group, snapshotID: snapshot.id, term: term, leader: leader, mark: snapshot.mark, offset: offset,
                totalBytes: snapshot.totalBytes, fileHash: snapshot.fileHash, bytes: bytes)
            let received: UInt64
            do {
                received = try await send(chunk)
            } catch let error as PeerTransportError {
                failures += 1
                if failures > Self.failuresMax { throw error }
                try await wait()
                continue
            }
            guard received <= snapshot.totalBytes else {
                throw StorageMismatch("the follower says it has \(received) of \(snapshot.totalBytes) bytes")
            }
            failures = received > offset ? 0 : failures + 1
            if failures > Self.failuresMax {
                throw StorageMismatch("the follower stays at \(received) of \(snapshot.totalBytes) bytes")
            }
            offset = received
        }
    }

    /// - Returns: how many bytes of the snapshot the follower has.
    private func send(_ chunk: SnapshotChunk) async throws -> UInt64 {
        let request = NodeRequest.snapshot(chunk).encoded()
        let reply = try await transport.request(request, to: follower.node, channel: .bulk, timeout: .seconds(120))
            .get()
        switch try NodeReply(decoding: reply) {
        case .done(let progress): return try SnapshotProgress(decoding: progress).receivedBytes
        case .diskFull: throw NoRoom(description: "the node has no room for it")
        case .failed(let reason): throw StorageMismatch("the follower refused a chunk: \(reason)")
        case .overloaded, .unavailable: throw PeerTransportError.refused("it has too much to do")
        default: throw StorageMismatch("the follower refused a chunk")
        }
    }
}

/// A copy of a group's database that is being sent.
struct OutgoingSnapshot: Sendable {
    let path: String
    let id: UInt64
    let mark: SnapshotMark
    let totalBytes: UInt64
    let fileHash: [UInt8]

    /// - Throws: `CancellationError` once it is not wanted any more, and what `ShardDatabase.copy` throws.
    init(
        copying database: ShardDatabase, to path: String, id: UInt64, while isWanted: () -> Bool = { true }
    ) throws {
        try? FileManager.default.removeItem(atPath: path)
        try database.copy(to: path, while: isWanted)
        self.path = path
        self.id = id
        mark = try SnapshotInstall.mark(ofFileAt: path)
        (totalBytes, fileHash) = try FileHash.ofFile(at: path, while: isWanted)
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
    /// - Throws: `CancellationError` once it is not wanted any more.
    static func ofFile(
        at path: String, while isWanted: () -> Bool = { true }
    ) throws -> (bytes: UInt64, hash: [UInt8]) {
        let handle = try FileHandle(forReadingFrom: URL(filePath: path))
        defer { try? handle.close() }
        var hasher = SHA256()
        var total: UInt64 = 0
        while let data = try handle.read(upToCount: 1 << 20), !data.isEmpty {
            guard isWanted() else { throw CancellationError() }
            hasher.update(data: data)
            total += UInt64(data.count)
        }
        return (total, Array(hasher.finalize()))
    }
}

/// A piece of a group's database on its way to a follower that the log cannot catch up.
struct SnapshotChunk: Sendable, WireMessage {
    var group: GroupID
    /// Random; chunks of different snapshots, or of different leaders, are never mixed.
    var snapshotID: UInt64
    /// The leader's term; a follower in a later one wants nothing of it.
    var term: Term
    var leader: ReplicaID
    var mark: SnapshotMark
    var offset: UInt64
    var totalBytes: UInt64
    /// SHA-256 of the whole file.
    var fileHash: [UInt8]
    var bytes: [UInt8]

    static var blank: Self {
        SnapshotChunk(
            group: GroupID(0), snapshotID: 0, term: .zero, leader: ReplicaID(0),
            mark: SnapshotMark(position: .zero, configuration: Configuration(voters: [])), offset: 0, totalBytes: 0,
            fileHash: [], bytes: [])
    }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &group)
        try wire.field(2, &snapshotID)
        try wire.field(3, &term)
        try wire.field(4, &leader)
        try wire.field(5, nested: &mark)
        try wire.field(6, &offset)
        try wire.field(7, &totalBytes)
        try wire.field(8, &fileHash)
        try wire.field(9, &bytes)
    }

    func check() throws(WireError) {
        guard offset <= 1 << 50, totalBytes <= 1 << 50 else { throw .invalidValue(field: 6) }
    }
}

/// A follower's answer to a chunk.
struct SnapshotProgress: Sendable, WireMessage {
    /// How much of the snapshot it has; all of it once it is installed.
    var receivedBytes: UInt64

    static var blank: Self { SnapshotProgress(receivedBytes: 0) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &receivedBytes)
    }
}

/// Has snapshots go to each node one after another, in the order in which they were asked for: however many groups a
/// node lacks, there is one copy for it here at a time, beside the directory's, which waits for no shard's.
///
/// Nodes do not wait for each other: one that is slow, or answers nothing until its deliveries are given up, holds up
/// itself.
struct DeliveryLines<Delivery> {
    private struct Line: Hashable {
        let node: NodeID
        let isDirectory: Bool
    }

    private var lines: [Line: Deque<Delivery>] = [:]

    /// - Returns: whether it is its turn at once.
    mutating func join(_ delivery: Delivery, of group: GroupID, to node: NodeID) -> Bool {
        let line = Line(node: node, isDirectory: group == .directory)
        lines[line, default: []].append(delivery)
        return lines[line]?.count == 1
    }

    /// Ends the delivery whose turn it was.
    /// - Returns: whose turn it is now.
    mutating func ended(of group: GroupID, to node: NodeID) -> Delivery? {
        let line = Line(node: node, isDirectory: group == .directory)
        _ = lines[line]?.popFirst()
        guard let next = lines[line]?.first else {
            lines[line] = nil
            return nil
        }
        return next
    }
}
