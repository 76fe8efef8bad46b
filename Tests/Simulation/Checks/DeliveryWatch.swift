import Cluster
import PeerTransport
import RaftCore

/// Holds the Raft messages that reach a node against those that were sent to it: each comes as it was sent, and once.
/// Some never come.
struct DeliveryWatch {
    fileprivate struct Way: Hashable {
        var from: UInt64
        var to: UInt64
    }

    /// By how often it was sent and has not come.
    private var underway: [Way: [PeerMessage: Int]] = [:]
    private var full: Set<Way> = []
    private static let underwayMax = 20_000

    mutating func sent(_ message: PeerMessage) {
        let way = Way(message)
        // What was lost stays here, so no more is looked at once it is too much.
        if underway[way]?.count ?? 0 >= Self.underwayMax { full.insert(way) }
        underway[way, default: [:]][message, default: 0] += 1
    }

    /// - Returns: what is wrong with a message that arrives; nil if nothing is.
    mutating func arrives(_ message: PeerMessage) -> String? {
        let way = Way(message)
        if full.contains(way) { return nil }
        guard let count = underway[way]?[message] else {
            return "group \(message.group): \(message.message) reaches its receiver, and was not sent, or came before"
        }
        underway[way]?[message] = count > 1 ? count - 1 : nil
        return nil
    }
}

extension DeliveryWatch.Way {
    fileprivate init(_ message: PeerMessage) {
        self.init(from: message.message.from.node.rawValue, to: message.message.to.node.rawValue)
    }
}
