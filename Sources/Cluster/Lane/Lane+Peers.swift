import Logging
import NIOCore
package import PeerTransport
import RaftCore
import RecordModel
import Storage
import Wire

// What comes in from other nodes. Everything here is called on the lane's event loop.
extension Lane: PeerTransportDelegate {
    /// Judges the peer's data folder. Then tells the membership (`.request`) or the cores of shared groups (`.raft`)
    /// that the peer can be reached.
    package func peerConnected(_ peer: PeerIdentity, channel: PeerChannel) {
        peers.judge(peer, isDialled: true)
        switch channel {
        case .request: host?.peerConnected(peer.node)
        case .raft:
            for (group, member) in replicas.members(on: peer.node) { replicas[group]?.raft.peerConnected(member) }
        case .bulk: break
        }
    }

    /// Judges the data folder of a peer that dialled this node; what a rejected peer sends is dropped.
    package func peerIntroduced(_ peer: PeerIdentity, channel: PeerChannel) { peers.judge(peer, isDialled: false) }

    /// Compares the peer's clock with this node's, unless the peer is rejected.
    /// - Parameter ahead: how far the peer's clock may be ahead of this node's, in milliseconds.
    package func peerClock(of node: NodeID, ahead: ClosedRange<Int64>) {
        if !peers.trust.rejects(node) { clockWatch.heard(node, ahead: ahead) }
    }

    /// Tells the cores of shared groups that the connection broke; only the Raft channel counts.
    package func peerDisconnected(_ node: NodeID, channel: PeerChannel) {
        guard channel == .raft else { return }
        for (group, member) in replicas.members(on: node) {
            guard let replica = replicas[group] else { continue }
            runner.perform(replica.raft.peerDisconnected(member, now: context.now), of: replica)
        }
        runner.finishTurn()
    }

    /// Gives messages to the cores in order, as one turn of the lane. A message is dropped if the peer does not count,
    /// if its group has no replica here, or if it has an entry larger than the log here takes.
    package func receiveRaft(_ messages: [PeerMessage], from node: NodeID) {
        guard !context.isStopping, peers.trust.accepts(node) else { return }
        let now = context.now
        for message in messages where message.message.from.node == node {
            guard let replica = replicas[message.group], canKeep(message, in: replica) else { continue }
            let effects = replica.raft.receive(message.message, now: now)
            if case .timeoutNow = message.message.body, replica.raft.role == .candidate,
                !transfers.isPreferredHere(message.group)
            {
                replica.leadershipSender = node
            }
            runner.perform(effects, of: replica)
        }
        runner.finishTurn()
    }

    /// Whether this node's log has room for each entry of a message. It has, unless the sender runs with other limits:
    /// then the group's status says so, and its other replicas go on.
    private func canKeep(_ message: PeerMessage, in replica: Replica) -> Bool {
        guard case .appendRequest(let request) = message.message.body, !request.entries.isEmpty else { return true }
        let bytesMax = settings.log.recordBytesMax - Entry.overheadBytesMax
        guard let entry = request.entries.first(where: { $0.sizeBytes > bytesMax }) else {
            replica.refusedAppend = nil
            return true
        }
        let refusal =
            "node \(message.message.from.node) sent an entry of \(entry.sizeBytes) bytes, and the log here takes \(bytesMax): "
            + "run all nodes with the same limits"
        if replica.refusedAppend != refusal {
            context.logger.error("group \(message.group): \(refusal)")
            replica.refusedAppend = refusal
        }
        return false
    }

    /// Answers a `NodeRequest` with a `NodeReply`; from a rejected peer only `introduce` and `claim` are accepted.
    /// - Parameter reply: called on any thread. A request that cannot be read is answered with `NodeReply.failed`.
    package func serve(
        _ request: [UInt8], from node: NodeID, channel: PeerChannel,
        reply: @escaping @Sendable (Result<[UInt8], PeerTransportError>) -> Void
    ) {
        do throws(WireError) {
            var request = try NodeRequest(decoding: request)
            let answer = hops.noting(&request, from: node, settings.tracer, now: context.clock) { reply(.success($0)) }
            guard !peers.trust.rejects(node) || request.isAllowedBeforeMembership else {
                return reply(.failure(.refused("this data folder of node \(node) is not the one that counts")))
            }
            switch request {
            case .propose(let group, let command, let origin):
                if let refusal = refusal(of: command, for: group, from: node) {
                    return answer(NodeReply(.failure(refusal)))
                }
                runner.propose(command, to: group, below: origin.place) { answer(NodeReply($0)) }
            case .read(let group, let request, let terms):
                reads.read(request, from: group, ticket(of: terms)) { answer(NodeReply($0)) }
            case .confer(let group, let request): reads.confer(request, of: group) { answer(NodeReply($0)) }
            case .tell(let message): services.tell(message, from: node, answer)
            case .inquire(let question): services.inquire(question, of: settings.nodeID, answer)
            case .catchUp: reads.catchUp { answer($0 ? .done([]) : .unavailable("the directory cannot be asked")) }
            case .snapshot(let chunk): snapshots.receive(chunk, from: node, reply: answer)
            case .members(let group): members.list(of: group) { answer(NodeReply($0)) }
            case .stateHash(let group, let index): scrubber.stateHash(of: group, at: index) { answer(NodeReply($0)) }
            case .distrust(let group, let replica, let index):
                health.distrust(group, replica, at: index)
                answer(.done([]))
            case .condition(let group):
                answer(health.condition(of: group).map { .done($0.encoded()) } ?? .notLeader(hint: nil))
            case .holdAsset, .readAsset, .followUpload, .readUpload:
                ask(assets, answer) { $0.serve(request, from: node, answer) { replicas[$0]?.applier.level } }
            case .introduce(let introduction): ask(host, answer) { $0.greet(introduction, from: node, reply: answer) }
            case .claim(let incarnation, let previous):
                ask(host, answer) { $0.claim(incarnation, previous: previous, for: node, reply: answer) }
            }
        } catch {
            reply(.success(NodeReply.failed("unreadable request: \(error)").encoded()))
        }
    }

    /// Why a peer's command must not come into the log: its build is newer, and the command says what this one does not
    /// know. Only builds of higher levels make such commands, so those of others are not looked into.
    private func refusal(of command: [UInt8], for group: GroupID, from node: NodeID) -> ReplicaError? {
        guard let most = peers.trust.levels(of: node)?.upperBound, most > settings.featureLevels.upperBound.rawValue,
            let error = replicas[group]?.applier.machine.unknownPart(ofEntry: command)
        else { return nil }
        return .unavailable(
            "node \(settings.nodeID) leads group \(group) and runs a build that does not know what node \(node) asks for "
                + "(\(error)): upgrade it, or wait until another node leads")
    }

    /// Has a part of the node answer that is there once the node has started.
    private func ask<Part>(_ part: Part?, _ answer: (NodeReply) -> Void, _ body: (Part) -> Void) {
        guard let part else { return answer(.unavailable("node \(settings.nodeID) is starting")) }
        body(part)
    }

    private func ticket(of terms: ReadTerms) -> ReadTicket {
        let milliseconds = terms.milliseconds > 0 ? terms.milliseconds : settings.requestDeadlineMilliseconds
        return ReadTicket(terms, until: context.now.adding(milliseconds: milliseconds)) {
            [clock = context.clock] in clock.now
        }
    }
}
