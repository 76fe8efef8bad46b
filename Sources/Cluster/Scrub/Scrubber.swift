import Logging
import NIOCore
import PeerTransport
package import RaftCore
import Storage
import Wire

/// Finds damage that neither the disk nor SQLite reports, by comparison: the leader has every replica hash a bounded
/// part of its state at the same index, part after part, and collects the hashes. A replica that differs from a
/// majority is rebuilt. On the lane's event loop.
struct Scrubber: Sendable {
    /// Where the scrub of a group stands, on its leader.
    struct Progress {
        fileprivate var next = MonotonicTime.zero
        /// Where the next part begins.
        fileprivate var cursor: [UInt8] = []
        /// The last part, which the others have applied by now.
        fileprivate var last: ScrubOutcome?
    }

    let context: LaneContext
    let health: ReplicaHealth
    let runner: GroupRunner

    /// Goes on where it is time: compares the last part, and begins the next.
    func scrub(now: MonotonicTime) {
        let interval = context.settings.scrubIntervalMilliseconds
        for group in context.replicas.groups {
            guard let replica = context.replicas[group], replica.raft.role == .leader, replica.scrub.next <= now,
                replica.leadingSince.adding(milliseconds: interval) <= now,
                replica.raft.configuration.voters.count > 1, replica.applyFailure == nil, !context.disk.isShort,
                replica.transferUntil <= now
            else { continue }
            replica.scrub.next = now.adding(milliseconds: interval)
            if let last = replica.scrub.last { compare(last, of: group, replica) }
            replica.scrub.last = nil
            runner.propose(GroupCommand.scrub(after: replica.scrub.cursor).encoded(), to: group) { [context] result in
                guard case .success(let bytes) = result, let outcome = try? ScrubOutcome(decoding: bytes) else {
                    return
                }
                context.eventLoop.execute {
                    context.replicas[group]?.scrub.last = outcome
                    context.replicas[group]?.scrub.cursor = outcome.cursor
                }
            }
        }
    }

    /// Asks the others for their hashes. Members without one at the index do not count: they were behind, or had a
    /// snapshot since.
    private func compare(_ own: ScrubOutcome, of group: GroupID, _ replica: Replica) {
        guard let transport = context.peers.transport else { return }
        let members = replica.raft.configuration
        let me = replica.raft.id
        let request = NodeRequest.stateHash(group, at: own.index).encoded()
        let answers = members.all.filter { $0 != me }.map { member in
            transport.request(request, to: member.node, channel: .request, timeout: .seconds(5))
                .map { Optional((member, $0)) }.recover { _ in nil }
        }
        EventLoopFuture.whenAllSucceed(answers, on: context.eventLoop).whenSuccess { [self] answers in
            var hashes = [me: own.hash]
            for (member, reply) in answers.compactMap(\.self) {
                guard case .done(let hash)? = try? NodeReply(decoding: reply), !hash.isEmpty else { continue }
                hashes[member] = hash
            }
            act(on: ScrubVerdict(hashes, voters: members.voters), at: own.index, of: group, me: me)
        }
    }

    private func act(on verdict: ScrubVerdict, at index: LogIndex, of group: GroupID, me: ReplicaID) {
        switch verdict {
        case .equal: break
        case .undecided:
            context.logger.error(
                "group \(group): the copies of its data differ at \(index), and too few nodes answered to say which is right"
            )
        case .damaged(let replicas):
            for replica in replicas {
                if replica == me {
                    health.distrust(group, replica, at: index)
                } else {
                    let request = NodeRequest.distrust(group, replica, at: index).encoded()
                    _ = context.peers.transport?.request(
                        request, to: replica.node, channel: .request, timeout: .seconds(5))
                }
            }
        }
    }

    /// The hash that this node's replica recorded at an index, or empty.
    func stateHash(of group: GroupID, at index: LogIndex, completion: @escaping Completion) {
        guard let applier = context.replicas[group]?.applier else { return completion(.failure(.notLeader(hint: nil))) }
        do throws(QueueFull) {
            try context.pools.upkeep.submit { isActive in
                guard isActive else { return completion(.failure(.unavailable("the node is stopping"))) }
                let hashes = try? applier.database.read { try AppliedRow.hashes(in: $0) }
                completion(.success(hashes?.first { $0.index == index }?.hash ?? []))
            }
        } catch {
            completion(.failure(.overloaded))
        }
    }
}

/// Whose copy of a group's state is damaged, judged by hashes of the same part at the same index. Pure.
package enum ScrubVerdict: Hashable, Sendable {
    /// All that answered have the same.
    case equal
    /// These differ from a majority of the group's voters, who have the same.
    case damaged([ReplicaID])
    /// Copies differ, and no majority says which is right: too few have answered, or all differ.
    case undecided

    /// - Parameters:
    ///   - hashes: of the replicas that had one at the index.
    ///   - voters: of the group.
    package init(_ hashes: [ReplicaID: [UInt8]], voters: [ReplicaID]) {
        var counts: [[UInt8]: Int] = [:]
        for (replica, hash) in hashes where voters.contains(replica) { counts[hash, default: 0] += 1 }
        if Set(hashes.values).count <= 1 {
            self = .equal
        } else if let right = counts.first(where: { 2 * $0.value > voters.count })?.key {
            self = .damaged(hashes.filter { $0.value != right }.keys.sorted())
        } else {
            self = .undecided
        }
    }
}

/// What a part of a scrub came to on the leader.
struct ScrubOutcome: Hashable, Sendable, WireMessage {
    /// The index of the command: the hash is of the state as it was there.
    var index: LogIndex
    var hash: [UInt8]
    /// Where the next part begins; empty when all was looked at.
    var cursor: [UInt8]

    static var blank: Self { ScrubOutcome(index: .zero, hash: [], cursor: []) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &index)
        try wire.field(2, &hash)
        try wire.field(3, &cursor)
    }
}
