import NIOCore
import PeerTransport

/// One connection: dialled by one process, accepted by another, on one channel.
final class Connection: @unchecked Sendable {
    // Touched on the simulation's thread only.
    enum Direction: Int {
        /// From the dialler to the acceptor.
        case forth
        case back
    }

    let network: SimulatedNetwork
    let dialler: Endpoint
    let acceptor: Endpoint
    let channel: PeerChannel
    /// Nothing is carried any more, though the dialler may not know yet.
    private(set) var hasEnded = false
    /// When what was last sent arrives, for each direction: nothing overtakes.
    private var lastArrival: [UInt64] = [0, 0]
    /// What came to a cut, in order, for each direction.
    private var waiting: [[() -> Void]] = [[], []]
    private var isWatched = false

    init(network: SimulatedNetwork, dialler: Endpoint, acceptor: Endpoint, channel: PeerChannel) {
        self.network = network
        self.dialler = dialler
        self.acceptor = acceptor
        self.channel = channel
    }

    func joins(_ one: Int, _ other: Int) -> Bool {
        let nodes = (dialler.process.node, acceptor.process.node)
        return nodes == (one, other) || nodes == (other, one)
    }

    func belongs(to process: ProcessLife) -> Bool { dialler.process === process || acceptor.process === process }

    private func ends(_ direction: Direction) -> (sender: Endpoint, receiver: Endpoint) {
        direction == .forth ? (dialler, acceptor) : (acceptor, dialler)
    }

    /// Has the closure called at the other end, on its loop, behind everything sent before; or never.
    func carry(_ direction: Direction, _ body: @escaping () -> Void) {
        if hasEnded { return }
        let (sender, receiver) = ends(direction)
        let world = network.world
        let delay = network.delay(from: sender.process.node, to: receiver.process.node)
        let arrival = max(lastArrival[direction.rawValue], world.now + delay)
        lastArrival[direction.rawValue] = arrival
        world.schedule(after: arrival - world.now, .message, for: receiver.process, on: receiver.loop) { [self] in
            arrived(direction, body)
        }
    }

    private func arrived(_ direction: Direction, _ body: @escaping () -> Void) {
        guard !hasEnded else { return }
        let (sender, receiver) = ends(direction)
        let isCut = network.isCut(from: sender.process.node, to: receiver.process.node)
        guard !isCut, waiting[direction.rawValue].isEmpty else { return waiting[direction.rawValue].append(body) }
        body()
    }

    /// What waited at a cut goes on.
    func sendWaiting() {
        for direction in [Direction.forth, .back] {
            let bodies = waiting[direction.rawValue]
            waiting[direction.rawValue] = []
            for body in bodies { carry(direction, body) }
        }
    }

    /// Ends the connection in some seconds, if by then either end still does not hear the other.
    func breakUnlessHealed() {
        if isWatched { return }
        isWatched = true
        let world = network.world
        world.schedule(after: world.milliseconds(4_000...5_000), .dial, for: nil) { [self] in
            isWatched = false
            guard !hasEnded else { return }
            let isOpen = network.isOpenBothWays(dialler.process.node, acceptor.process.node)
            let isPaused = max(dialler.process.pausedUntil, acceptor.process.pausedUntil) > world.now
            if !isOpen || isPaused { end(after: 0) }
        }
    }

    /// Carries nothing more; the dialler hears of it after a while.
    func end(after nanoseconds: UInt64) {
        guard !hasEnded else { return }
        hasEnded = true
        waiting = [[], []]
        network.world.schedule(after: nanoseconds, .dial, for: dialler.process, on: dialler.loop) { [self] in
            dialler.lost(self)
        }
    }
}
