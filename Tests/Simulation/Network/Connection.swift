import DequeModule
import Glibc
import NIOCore

/// One connection, dialled by one process and accepted by another, as TCP has it: bytes arrive in order, in pieces of
/// any length, and a bounded number of them is on the way.
final class Connection: @unchecked Sendable {
    // Touched on the simulation's thread only.
    enum Side: Int {
        case dialler, acceptor

        var other: Side { self == .dialler ? .acceptor : .dialler }
    }

    /// What one side sends to the other.
    private struct Way {
        /// What waits until fewer bytes are on the way, oldest first.
        var unsent: [SimulatedChannel.Written] = []
        /// Bytes that were sent and not read yet.
        var bytesOnTheWay = 0
        /// When what was last sent arrives: nothing overtakes.
        var lastArrival: UInt64 = 0
        /// What was sent and has not arrived, in order.
        var onTheWay: Deque<() -> Void> = []
        /// How much of it has come to a cut.
        var atCut = 0
        /// When bytes last waited in the sender's socket, and when some last came to the receiver.
        var lastWaiting: UInt64 = 0
        var lastRead: UInt64 = 0
    }

    let network: SimulatedNetwork
    private var ends: [SimulatedChannel] = []
    private var ways = [Way(), Way()]
    /// Whose sockets are closed, and with them the processes that ended.
    private var isClosed = [false, false]

    init(network: SimulatedNetwork, dialler: SimulatedWire, acceptor: SimulatedWire) {
        self.network = network
        ends = [
            SimulatedChannel(self, of: dialler, side: .dialler, to: acceptor),
            SimulatedChannel(self, of: acceptor, side: .acceptor, to: dialler),
        ]
    }

    var hasEnded: Bool { isClosed == [true, true] }

    func end(_ side: Side) -> SimulatedChannel { ends[side.rawValue] }

    private func process(_ side: Side) -> ProcessLife { end(side).wire.process }

    func joins(_ one: Int, _ other: Int) -> Bool {
        let nodes = (process(.dialler).node, process(.acceptor).node)
        return nodes == (one, other) || nodes == (other, one)
    }

    /// Bytes that wait in the socket of a process for room on the way to a node; none where it did not dial.
    func unsentBytes(of dialler: ProcessLife, to node: Int) -> Int {
        guard process(.dialler) === dialler, process(.acceptor).node == node else { return 0 }
        return ways[Side.dialler.rawValue].unsent.reduce(0) { $0 + $1.bytes.readableBytes }
    }

    // MARK: On the way

    /// Has something happen at the other end, on its loop, behind everything sent before; or never.
    func carry(from side: Side, _ body: @escaping () -> Void) {
        ways[side.rawValue].onTheWay.append(body)
        scheduleArrival(from: side)
    }

    /// Has the first thing that is on the way arrive, which may be another than what is sent now.
    private func scheduleArrival(from side: Side) {
        let (sender, receiver) = (process(side), process(side.other))
        let world = network.world
        let delay = network.delay(from: sender.node, to: receiver.node)
        let arrival = max(ways[side.rawValue].lastArrival, world.now + delay)
        ways[side.rawValue].lastArrival = arrival
        world.schedule(after: arrival - world.now, .message, for: receiver, on: end(side.other).wire.loop) { [self] in
            guard !network.isCut(from: sender.node, to: receiver.node) else {
                ways[side.rawValue].atCut += 1
                return
            }
            let arrived = ways[side.rawValue].onTheWay.removeFirst()
            arrived()
        }
    }

    func send(_ writes: [SimulatedChannel.Written], from side: Side) {
        if isClosed[side.rawValue] {
            for write in writes { write.promise?.fail(ChannelError.ioOnClosedChannel) }
            return
        }
        ways[side.rawValue].unsent += writes
        fill(side)
    }

    /// Sends as much as there is room for on the way.
    private func fill(_ side: Side) {
        let (index, most) = (side.rawValue, network.conditions.bytesOnTheWayMax)
        while !ways[index].unsent.isEmpty, ways[index].bytesOnTheWay < most {
            let room = min(most - ways[index].bytesOnTheWay, ways[index].unsent[0].bytes.readableBytes)
            let length = network.pieceLength(upTo: room)
            guard let piece = ways[index].unsent[0].bytes.readSlice(length: length) else { return }
            ways[index].bytesOnTheWay += length
            carry(from: side) { [self] in arrived(piece, from: side) }
            if ways[index].unsent[0].bytes.readableBytes == 0 {
                ways[index].unsent.removeFirst().promise?.succeed()
            }
        }
    }

    private func arrived(_ piece: ByteBuffer, from side: Side) {
        ways[side.rawValue].bytesOnTheWay -= piece.readableBytes
        guard !isClosed[side.other.rawValue] else { return resetIfAnswered(side) }
        if !ways[side.rawValue].unsent.isEmpty {
            network.world.met(.fullConnection)
            let delay = network.delay(from: process(side.other).node, to: process(side).node)
            network.world.schedule(after: delay, .message, for: process(side), on: end(side).wire.loop) { [self] in
                ways[side.rawValue].lastWaiting = network.world.now
                fill(side)
            }
        }
        ways[side.rawValue].lastRead = network.world.now
        end(side.other).read(piece)
    }

    /// One side's socket is open: what was to reach it may have waited at a cut until now.
    func opened(_ side: Side) { ways[side.other.rawValue].lastRead = network.world.now }

    /// After so long without a byte, and with none that waits in the socket, a node gives a connection up.
    private static let silenceMax = 7 * World.second

    /// What is said of each end at which nothing has come for longer.
    func silences(at now: UInt64) -> [String] {
        [Side.dialler, .acceptor].compactMap { side in
            let (process, way) = (process(side), ways[side.rawValue])
            guard !isClosed[side.rawValue], !process.isDead, way.unsent.isEmpty, end(side).isActive else { return nil }
            let since = max(ways[side.other.rawValue].lastRead, way.lastWaiting, process.pausedUntil)
            guard since + Self.silenceMax < now else { return nil }
            return
                "node \(process.node) keeps a connection to node \(self.process(side.other).node) on which nothing has "
                + "come for \((now - since) / World.millisecond) ms"
        }
    }

    /// What waited at a cut goes on.
    func sendWaiting() {
        for side in [Side.dialler, .acceptor] {
            let count = ways[side.rawValue].atCut
            ways[side.rawValue].atCut = 0
            for _ in 0..<count { scheduleArrival(from: side) }
        }
    }

    // MARK: Ends

    /// Closes one side's socket: the other one hears of it behind all that was sent.
    /// - Returns: what was not sent.
    func close(_ side: Side) -> [SimulatedChannel.Written] {
        let unsent = ways[side.rawValue].unsent
        ways[side.rawValue].unsent = []
        guard !isClosed[side.rawValue] else { return unsent }
        isClosed[side.rawValue] = true
        if !isClosed[side.other.rawValue] { carry(from: side) { [self] in end(side.other).close(promise: nil) } }
        return unsent
    }

    /// The process of one side has ended, or its machine has, which tells nobody.
    func lose(_ process: ProcessLife, isSilent: Bool) {
        for side in [Side.dialler, .acceptor] where self.process(side) === process && !isClosed[side.rawValue] {
            isClosed[side.rawValue] = true
            ways[side.rawValue].unsent = []
            if !isSilent { carry(from: side) { [self] in reset(side.other) } }
        }
    }

    /// Breaks the connection for both sides.
    func breakOff() {
        for side in [Side.dialler, .acceptor] {
            let delay = network.world.milliseconds(0...20)
            network.world.schedule(after: delay, .message, for: process(side), on: end(side).wire.loop) { [self] in
                reset(side)
            }
        }
    }

    /// What was sent to a closed socket is answered by a reset, if there is a machine.
    private func resetIfAnswered(_ side: Side) {
        let receiver = process(side.other)
        guard !receiver.isDead || network.endpoint(of: receiver.node) != nil else { return }
        carry(from: side.other) { [self] in reset(side) }
    }

    private func reset(_ side: Side) { end(side).fail(IOError(errnoCode: ECONNRESET, reason: "simulated")) }

    /// As the kernel does where bytes stay unacknowledged for long.
    func giveUpUnlessHealed() {
        let world = network.world
        world.schedule(after: 5 * World.second, .dial, for: nil) { [self] in
            for side in [Side.dialler, .acceptor] where ways[side.rawValue].atCut > 0 {
                world.schedule(after: 0, .dial, for: process(side), on: end(side).wire.loop) { [self] in
                    end(side).fail(IOError(errnoCode: ETIMEDOUT, reason: "simulated"))
                }
            }
        }
    }
}
