import Logging
import NIOCore
package import PeerTransport
import RaftCore
import Wire

// What comes in from other nodes. Everything here is called on the lane's event loop.
extension Lane: PeerTransportDelegate {
    package func peerConnected(_ peer: PeerIdentity, channel: PeerChannel) {
        judge(peer)
    }

    package func peerIntroduced(_ peer: PeerIdentity, channel: PeerChannel) {
        judge(peer)
    }

    /// Takes the peer for the one this node knows, or not. Writes a small file when the peer was started anew, which is rare
    /// enough to be done here: nothing of the peer may count before it is durable.
    private func judge(_ peer: PeerIdentity) {
        let objection = knownPeers?.objection(
            to: peer.node, incarnation: peer.incarnation, bootCounter: peer.bootCounter)
        if let objection {
            if rejectedPeers.insert(peer.node).inserted {
                logger.error("node \(peer.node) may not take part: \(objection)")
            }
        } else {
            rejectedPeers.remove(peer.node)
        }
    }

    package func peerDisconnected(_ node: NodeID, channel: PeerChannel) {
        guard channel == .raft else { return }
        for group in groups {
            guard let member = replicas[group]?.raft.configuration.all.first(where: { $0.node == node }),
                let effects = replicas[group]?.raft.peerDisconnected(member, now: now)
            else { continue }
            perform(effects, of: group)
        }
        finishTurn()
    }

    package func receiveRaft(_ messages: [PeerMessage], from node: NodeID) {
        guard !isStopping, !rejectedPeers.contains(node) else { return }
        let now = now
        for message in messages where message.message.from.node == node {
            guard let effects = replicas[message.group]?.raft.receive(message.message, now: now) else { continue }
            perform(effects, of: message.group)
        }
        finishTurn()
    }

    package func serve(
        _ request: [UInt8], from node: NodeID, channel: PeerChannel,
        reply: @escaping @Sendable (Result<[UInt8], PeerTransportError>) -> Void
    ) {
        guard !rejectedPeers.contains(node) else {
            return reply(.failure(.refused("this data folder of node \(node) is not the one that is known")))
        }
        let answer: @Sendable (NodeReply) -> Void = { reply(.success($0.encoded())) }
        do throws(WireError) {
            switch try NodeRequest(decoding: request) {
            case .propose(let group, let command):
                propose(command, to: group) { answer(NodeReply($0)) }
            case .read(let group, let request):
                read(request, from: group) { answer(NodeReply($0)) }
            case .confer(let group, let request):
                confer(request, of: group) { answer(NodeReply($0)) }
            case .tell(let message):
                services.current?.hear(message, from: node)
                answer(.done([]))
            case .catchUp:
                catchUp { answer($0 ? .done([]) : .unavailable("the directory's leader cannot be asked")) }
            case .snapshot(let chunk):
                receive(chunk, reply: answer)
            }
        } catch {
            answer(.failed("unreadable request: \(error)"))
        }
    }
}
