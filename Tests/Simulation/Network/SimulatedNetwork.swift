import Logging
import PeerTransport
import RaftCore

/// The network between the nodes: which way is open, and how long things take on it.
///
/// On it runs the production's `PeerTransport`, without TLS: frames, greetings, pings and bounds are its own. Bytes of
/// a connection arrive in order and in pieces, and a bounded number of them is on the way. Where a way is cut, what is
/// on it waits. Raft messages may instead travel beside the connections (`Conditions.looseRaftMessages`): lost, doubled
/// and out of order, which Raft bears.
final class SimulatedNetwork {
    /// How good the network is.
    struct Conditions: Sendable {
        /// One way, in microseconds.
        var delayMax: UInt64 = 1_000
        /// Bytes of a connection that were sent one way and not read yet: beyond it senders wait, as with TCP's window.
        var bytesOnTheWayMax = 1 << 20
        /// How many of the parts in which bytes arrive end somewhere, and not where those end that were written.
        var tornPercent = 2
        /// Bytes that wait for a connection of a node, as `PeerTransportConfiguration` has it.
        var outboundBytesMax = 16 << 20
        var looseRaftMessages = false
        /// Of Raft messages, where they are loose.
        var lossPercent = 0
        var duplicatePercent = 0
    }

    let world: World
    var conditions = Conditions()
    /// The running process's end of each node, by number less one.
    private var endpoints: [Endpoint?]
    /// Ways that are cut, by sender and receiver.
    private var cuts: [[Bool]]
    /// Ways on which everything takes up to this much longer, in microseconds.
    private var slowness: [[UInt64]]
    /// Since when a way between two nodes is cut, or both are.
    private var apartSince: [[Int]: UInt64] = [:]
    /// Connections that are or were open, oldest first; those that have ended are swept out now and then.
    private var connections: [Connection] = []
    /// Whether no way is cut or slowed down any more, also by faults that were planned before.
    private var isMended = false
    /// Sees every Raft message that is sent.
    var observer: ((PeerMessage, _ sender: ProcessLife) -> Void)?
    /// Told what a node does wrong with its connections.
    var onViolation: ((String) -> Void)?
    /// Told whom a process takes for whom, and which program the process says that it runs.
    var greetings: ((_ peer: PeerIdentity, ProcessLife, PeerBuild) -> Void)?
    /// Sees every Raft message that reaches a process, before that does.
    var arrivals: ((PeerMessage, _ receiver: ProcessLife) -> Void)?
    private(set) var messages: UInt64 = 0
    /// Refused connections of nodes that have ended.
    private var refusedBefore: UInt64 = 0

    init(world: World, nodes: Int) {
        self.world = world
        endpoints = Array(repeating: nil, count: nodes)
        cuts = Array(repeating: Array(repeating: false, count: nodes), count: nodes)
        slowness = Array(repeating: Array(repeating: 0, count: nodes), count: nodes)
    }

    var nodeCount: Int { endpoints.count }

    func makeEndpoint(
        _ configuration: PeerTransportConfiguration, process: ProcessLife, loop: SimulatedLoop,
        delegate: any PeerTransportDelegate, logger: Logger
    ) -> Endpoint {
        Endpoint(
            network: self, configuration: configuration, process: process, loop: loop, delegate: delegate,
            logger: logger)
    }

    /// Makes room for a node that joins.
    func addNode() {
        endpoints.append(nil)
        for index in cuts.indices {
            cuts[index].append(false)
            slowness[index].append(0)
        }
        cuts.append(Array(repeating: false, count: endpoints.count))
        slowness.append(Array(repeating: 0, count: endpoints.count))
    }

    // MARK: Ends

    /// The end that answers for a node now; nil while nothing listens.
    func endpoint(of node: Int) -> Endpoint? { endpoints.indices.contains(node - 1) ? endpoints[node - 1] : nil }

    func listens(_ endpoint: Endpoint) { endpoints[endpoint.process.node - 1] = endpoint }

    func left(_ endpoint: Endpoint) { forget(endpoint.process) }

    private func forget(_ process: ProcessLife) {
        guard let endpoint = endpoints[process.node - 1], endpoint.process === process else { return }
        refusedBefore += endpoint.counters.connectionsRefused
        endpoints[process.node - 1] = nil
    }

    /// How many connections nodes have refused for what another one sent.
    var refusals: UInt64 {
        endpoints.compactMap(\.self).reduce(refusedBefore) { $0 + $1.counters.connectionsRefused }
    }

    /// What is said of connections on which nothing has come for too long.
    func silences(at now: UInt64) -> [String] {
        connections.flatMap { connection in connection.hasEnded ? [] : connection.silences(at: now) }
    }

    /// Bytes that wait for room on the way from a process to a node that it dialled.
    func unsentBytes(of process: ProcessLife, to node: Int) -> Int {
        connections.reduce(0) { $0 + $1.unsentBytes(of: process, to: node) }
    }

    func opened(_ connection: Connection) {
        connections.append(connection)
        if connections.count > 256 { connections.removeAll { $0.hasEnded } }
    }

    // MARK: Ways

    func isCut(from sender: Int, to receiver: Int) -> Bool { cuts[sender - 1][receiver - 1] }

    func isOpenBothWays(_ one: Int, _ other: Int) -> Bool {
        !isCut(from: one, to: other) && !isCut(from: other, to: one)
    }

    func delay(from sender: Int, to receiver: Int) -> UInt64 {
        let slow = slowness[sender - 1][receiver - 1]
        let most = max(50, conditions.delayMax)
        return world.microseconds(30...most) + (slow > 0 ? world.microseconds(0...slow) : 0)
    }

    /// How many bytes arrive together, of those that could.
    func pieceLength(upTo length: Int) -> Int {
        guard length > 1, world.chance(conditions.tornPercent) else { return length }
        world.met(.tornFrame)
        return world.random(1...length - 1)
    }

    /// Cuts a way. What is sent on it waits; connections that use it either way break if it stays cut.
    func cut(from sender: Int, to receiver: Int) {
        guard !isMended, sender != receiver, !cuts[sender - 1][receiver - 1] else { return }
        cuts[sender - 1][receiver - 1] = true
        let pair = [sender, receiver].sorted()
        if apartSince[pair] == nil { apartSince[pair] = world.now }
        for connection in connections where !connection.hasEnded && connection.joins(sender, receiver) {
            connection.giveUpUnlessHealed()
        }
    }

    /// Cuts every way to a node.
    func deafen(_ node: Int) {
        for other in 1...nodeCount { cut(from: other, to: node) }
    }

    /// Cuts every way from and to a node.
    func isolate(_ node: Int) {
        for other in 1...nodeCount {
            cut(from: node, to: other)
            cut(from: other, to: node)
        }
    }

    func slowDown(from sender: Int, to receiver: Int, byMicroseconds most: UInt64) {
        if !isMended { slowness[sender - 1][receiver - 1] = most }
    }

    /// Opens every way again, for good.
    func mend() {
        isMended = true
        heal()
    }

    /// Opens both ways between two nodes again.
    func heal(_ one: Int, _ other: Int) {
        for (sender, receiver) in [(one, other), (other, one)] { open(from: sender, to: receiver) }
        for connection in connections where !connection.hasEnded && connection.joins(one, other) {
            connection.sendWaiting()
        }
    }

    private func open(from sender: Int, to receiver: Int) {
        cuts[sender - 1][receiver - 1] = false
        slowness[sender - 1][receiver - 1] = 0
        if isOpenBothWays(sender, receiver) { apartSince[[sender, receiver].sorted()] = nil }
    }

    /// Since when two nodes cannot ask each other anything; nil where they can.
    func areApart(_ one: Int, _ other: Int) -> UInt64? { apartSince[[one, other].sorted()] }

    /// Opens every way again.
    func heal() {
        for sender in cuts.indices {
            for receiver in cuts.indices {
                open(from: sender + 1, to: receiver + 1)
            }
        }
        for connection in connections where !connection.hasEnded { connection.sendWaiting() }
    }

    /// Breaks some connections at once.
    func breakConnections(percent: Int) {
        for connection in connections where !connection.hasEnded && world.chance(percent) {
            connection.breakOff()
        }
    }

    /// Breaks all connections between two nodes at once.
    func breakConnections(between one: Int, _ other: Int) {
        for connection in connections where !connection.hasEnded && connection.joins(one, other) {
            connection.breakOff()
        }
    }

    /// Breaks all connections of a node at once.
    func breakConnections(of node: Int) {
        for connection in connections
        where !connection.hasEnded && (1...nodeCount).contains(where: { connection.joins(node, $0) }) {
            connection.breakOff()
        }
    }

    /// The process is gone: nobody hears of it again.
    /// - Parameter isSilent: whether the machine went with it, so that nobody is told that its connections ended.
    func crashed(_ process: ProcessLife, isSilent: Bool) {
        forget(process)
        for connection in connections where !connection.hasEnded { connection.lose(process, isSilent: isSilent) }
    }

    func countMessage() { messages += 1 }
}
