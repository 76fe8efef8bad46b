import NIOCore
import RaftCore
import Wire

extension PeerConnection {
    /// What may still wait for this connection, counting what the buffer holds already.
    private var roomBytes: Int { configuration.outboundBytesMax - unwrittenBytes }

    /// Queues a frame that limits do not apply to: small, and bounded in number by what the peer does.
    func write(_ kind: FrameKind, _ body: (inout WireWriter) -> Void = { _ in }) {
        _ = outbound.append(kind, body)
        scheduleFlush()
    }

    /// Queues a frame unless that would exceed a limit.
    func writeWithinLimits(_ kind: FrameKind, _ body: (inout WireWriter) -> Void) -> OutboundBuffer.Outcome {
        let outcome = outbound.append(kind, roomBytes: roomBytes, body)
        if outcome == .appended { scheduleFlush() }
        return outcome
    }

    /// Queues a Raft message, in one frame with those queued just before.
    func write(_ message: PeerMessage) -> OutboundBuffer.Outcome {
        let outcome = outbound.append(message, roomBytes: roomBytes)
        if outcome == .appended { scheduleFlush() }
        return outcome
    }

    /// Everything that is queued in one tick of the loop goes out in one write.
    private func scheduleFlush() {
        guard !isFlushScheduled, let context else { return }
        isFlushScheduled = true
        context.eventLoop.assumeIsolated().execute { self.flush() }
    }

    private func flush() {
        isFlushScheduled = false
        guard let context, outbound.count > 0 else { return }
        let frameCount = outbound.frameCount
        let bytes = outbound.take()
        unwrittenBytes += bytes.count
        counters.update {
            $0.framesSent += UInt64(frameCount)
            $0.bytesSent += UInt64(bytes.count)
        }
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in self.unwrittenBytes -= bytes.count }
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: promise)
    }

    // MARK: Ending

    /// Refuses the peer: tells it why, then closes.
    func refuse(_ reason: String) {
        if end == nil { end = .refused(reason) }
        goodbye(reason)
    }

    /// Closes for a reason of this node's own, which the peer is told.
    func close(saying reason: String) {
        if end == nil { end = .wanted(reason) }
        goodbye(reason)
    }

    /// Closes without a word.
    func close(_ end: ConnectionEnd) {
        if self.end == nil { self.end = end }
        if isEnded { return }
        phase = .closing
        context?.close(promise: nil)
    }

    /// Drops a connection on which nothing comes back.
    func giveUp(_ reason: String) { close(.broken(reason)) }

    private func goodbye(_ reason: String) {
        switch phase {
        case .closing, .closed: return
        case .greeting, .ready: break
        }
        phase = .closing
        _ = outbound.append(.goodbye) { Goodbye(reason).encode(to: &$0) }
        flush()
        context?.close(promise: nil)
    }

    // MARK: Silence

    /// Looks every interval whether the peer is still there. The dialling side asks, the other answers, so bytes flow
    /// both ways on a healthy connection.
    func watch() {
        guard let context else { return }
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: configuration.pingInterval) { [weak self] in
            self?.tick()
        }
    }

    private func tick() {
        guard case .ready = phase else { return }
        // While bytes wait in the socket the answer to a ping may be behind a long frame; the kernel watches that case
        // (TCP user timeout: see `PeerSocket`).
        silentIntervals = hasHeard || unwrittenBytes > 0 ? 0 : silentIntervals + 1
        hasHeard = false
        guard silentIntervals < configuration.silentIntervalsMax else {
            return giveUp("nothing came for \(silentIntervals) intervals of \(configuration.pingInterval)")
        }
        if dialled != nil { write(.ping) { self.reading().encode(to: &$0) } }
        watch()
    }

    // MARK: Clocks

    private func reading(asked: Int64? = nil) -> ClockReading {
        ClockReading(wallMilliseconds: configuration.presence().wallMilliseconds, asked: asked)
    }

    func answerPing(_ payload: [UInt8]) {
        let asked = (try? ClockReading(decoding: payload))?.wallMilliseconds
        write(.pong) { self.reading(asked: asked).encode(to: &$0) }
    }

    func compareClocks(_ payload: [UInt8]) {
        guard case .ready(let peer, _) = phase, let clock = try? ClockReading(decoding: payload) else { return }
        compare(clock, of: peer.node)
    }

    /// Only who dialled compares: nothing tells the other how long a hello was on its way. Each node dials all others.
    func compare(_ clock: ClockReading, of node: NodeID) {
        guard dialled != nil, let ahead = clock.ahead(heard: configuration.presence().wallMilliseconds) else { return }
        owner?.connection(self, heardClockOf: node, ahead: ahead)
    }
}
