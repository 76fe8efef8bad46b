import Logging
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOTLS

/// How long a client's connection has been in what it does, and when that is too long. Pure: events and the time go in,
/// and a verdict comes out when the clock is looked at.
///
/// A connection is held against one rule for what comes in (handshake, head, body or nothing) and one for what goes
/// out. Nothing is held against a client while it is the node's turn.
struct ConnectionTimeouts: Sendable {
    /// What comes in.
    enum Input: Sendable, Equatable {
        case handshake
        /// Between requests.
        case idle
        case head
        /// The bytes that came in the window at hand, which began at `since`.
        case body(bytes: Int)
        /// Requests side by side, each of which is watched by itself (HTTP/2).
        case streams
        /// Nothing that comes in matters any more.
        case over
    }

    enum Verdict: Sendable, Equatable {
        /// The connection ends without a word.
        case drop(EdgeEnd)
        /// The client is told why the connection ends.
        case refuse(EdgeEnd)
    }

    /// What is seen when the clock is looked at.
    struct Sight: Sendable {
        var now: NIODeadline
        /// Whether the node takes what comes; otherwise a body cannot come.
        var isReading: Bool
        /// Bytes that wait for the socket to take them.
        var unsentBytes: Int
        /// Bytes that the socket has taken since the connection began.
        var sentBytes: Int
        /// The requests that share the connection, itself included: what it carries is shared out among them, so each
        /// owes a part of the least speed only.
        var requestsSharing = 1
    }

    private let limits: EdgeLimits
    private(set) var input = Input.handshake
    /// When the input began to be what it is.
    private var since: NIODeadline
    /// Requests whose heads came and whose answers have not ended.
    private(set) var requestsOpen = 0
    /// When the window of the output began and what had been sent then; nil while nothing waits.
    private var output: (began: NIODeadline, sentBytes: Int)?

    init(limits: EdgeLimits, now: NIODeadline) {
        self.limits = limits
        since = now
    }

    // MARK: Events

    mutating func handshakeCompleted(now: NIODeadline) {
        guard input == .handshake else { return }
        enter(.idle, now)
    }

    mutating func bytesArrived(_ count: Int, now: NIODeadline) {
        switch input {
        case .idle: enter(.head, now)
        case .body(let bytes): input = .body(bytes: bytes + count)
        case .handshake, .head, .streams, .over: break
        }
    }

    /// Both sides speak HTTP/2 from here on.
    mutating func multiplexed(now: NIODeadline) {
        if input != .over { enter(.streams, now) }
    }

    mutating func streamBegan() { requestsOpen += 1 }

    mutating func streamEnded(now: NIODeadline) {
        requestsOpen -= 1
        if input == .streams { since = now }
    }

    mutating func headEnded(now: NIODeadline) {
        requestsOpen += 1
        if input != .over { enter(.body(bytes: 0), now) }
    }

    mutating func requestEnded(now: NIODeadline) {
        if input != .over { enter(.idle, now) }
    }

    mutating func responseEnded(now: NIODeadline) {
        requestsOpen -= 1
        if input == .idle { since = now }
    }

    mutating func inputEnded() { input = .over }

    /// Since when there has been no request whose answer has not ended; nil while there is one.
    var idleSince: NIODeadline? { requestsOpen == 0 ? since : nil }

    // MARK: The clock

    mutating func looked(_ sight: Sight) -> Verdict? {
        if isTakenTooSlowly(sight) { return .drop(.slowReader) }
        let elapsed = sight.now - since
        switch input {
        case .handshake: return elapsed >= limits.handshakeTimeout ? .drop(.handshakeTimeout) : nil
        case .head: return elapsed >= limits.headersTimeout ? .refuse(.headersTimeout) : nil
        case .idle, .streams:
            let isQuiet = requestsOpen == 0 && sight.unsentBytes == 0
            return isQuiet && elapsed >= limits.idleTimeout ? .drop(.idle) : nil
        case .body(let bytes):
            guard sight.isReading else {
                enter(.body(bytes: 0), sight.now)
                return nil
            }
            guard elapsed >= limits.bodyWindow else { return nil }
            if bytes < bytesMin(in: elapsed, sight) { return .refuse(.slowBody) }
            enter(.body(bytes: 0), sight.now)
            return nil
        case .over: return nil
        }
    }

    private mutating func isTakenTooSlowly(_ sight: Sight) -> Bool {
        guard sight.unsentBytes > 0 else {
            output = nil
            return false
        }
        guard let window = output else {
            output = (sight.now, sight.sentBytes)
            return false
        }
        let elapsed = sight.now - window.began
        guard elapsed >= limits.writeWindow else { return false }
        if sight.sentBytes - window.sentBytes < bytesMin(in: elapsed, sight) { return true }
        output = (sight.now, sight.sentBytes)
        return false
    }

    private func bytesMin(in time: TimeAmount, _ sight: Sight) -> Int {
        let bytes = Double(limits.bytesPerSecondMin) * Double(time.nanoseconds) / 1e9
        return max(1, Int(bytes) / max(1, sight.requestsSharing))
    }

    private mutating func enter(_ input: Input, _ now: NIODeadline) {
        self.input = input
        since = now
    }
}

/// Stands between TLS and HTTP: takes the connection's place, tells `ConnectionTimeouts` what comes and goes, and looks
/// at the clock.
final class ConnectionTimeoutHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = ByteBuffer

    /// Answers what is refused; nil while nothing can be answered, and in HTTP/2, whose streams answer by themselves.
    weak var requests: HTTP1RequestGuard?
    var watch: ConnectionTimeouts { didSet { connection?.note(idleSince: watch.idleSince) } }
    private let edge: Edge
    private let tls: NIOSSLServerHandler
    /// The connection's place; nil where it has none.
    private var connection: EdgeConnection?
    private var hasBegun = false
    private var timer: Scheduled<Void>?
    private var isReading = false
    /// This side has said goodbye, or is about to.
    private var isClosing = false
    private var writtenBytes = 0

    init(edge: Edge, tls: NIOSSLServerHandler) {
        self.edge = edge
        self.tls = tls
        watch = ConnectionTimeouts(limits: edge.limits, now: .now())
    }

    // MARK: Beginning and end

    func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { begin(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        begin(context)
        context.fireChannelActive()
    }

    /// The other side's connection is to end, so that another address finds a place.
    private struct CrowdedOut: Sendable {}

    private func begin(_ context: ChannelHandlerContext) {
        guard !hasBegun else { return }
        hasBegun = true
        let address = ClientAddress(context.channel.remoteAddress)
        connection = edge.book.enter(address, now: .now()) { [pipeline = context.pipeline] in
            pipeline.fireUserInboundEventTriggered(CrowdedOut())
        }
        guard let connection else {
            edge.counters.count(.overLimit)
            return drop(context)
        }
        if let refusal = connection.refusal { edge.overLimit(refusal) }
        // TCP_NOTSENT_LOWAT, which NIO has no name for: what the kernel holds back of an answer stays small, so that
        // the progress of a slow reader shows here, and slow readers cost little memory.
        try? context.channel.syncOptions?.setOption(
            .tcpOption(NIOBSDSocket.Option(rawValue: 25)), value: SocketOptionValue(64 << 10))
        scheduleLook(context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    private func end() {
        timer?.cancel()
        timer = nil
        guard let connection else { return }
        edge.book.leave(connection)
        // It must not be given back twice.
        self.connection = nil
    }

    /// The address's; nil where the connection has no place.
    var load: AddressLoad? { connection?.load }

    /// Why a request is refused because of its connection; nil where it is not.
    func refusal(ofTarget target: String, authorization: String?) -> EdgeRefusal? {
        guard let refusal = connection?.refusal else { return nil }
        return edge.pass(target, authorization) ? nil : refusal
    }

    /// Closes below TLS: who does not take or send bytes would not take part in a goodbye either.
    private func drop(_ context: ChannelHandlerContext) {
        watch.inputEnded()
        guard let below = try? context.pipeline.syncOperations.context(handler: tls) else {
            return context.close(promise: nil)
        }
        below.close(promise: nil)
    }

    // MARK: What comes and goes

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted = event as? TLSUserEvent { watch.handshakeCompleted(now: .now()) }
        if event is CrowdedOut { return crowdedOut(context) }
        // Nobody else is there yet to hear that the node stops.
        if event is ChannelShouldQuiesceEvent, watch.input == .handshake { return drop(context) }
        context.fireUserInboundEventTriggered(event)
        // Where half-closed connections are allowed, TLS that was told to close waits out its time even though the
        // other side's goodbye has come; nothing is left to wait for.
        if isClosing, case .inputClosed = event as? ChannelEvent, unsentBytes(context) == 0 { drop(context) }
    }

    private func crowdedOut(_ context: ChannelHandlerContext) {
        guard let connection else { return }
        if watch.idleSince == nil { return edge.book.stay(connection) }
        edge.counters.count(.crowdedOut)
        drop(context)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode == .all {
            isClosing = true
            // HTTP/2's second goodbye is written and not flushed where it closes the connection. After TLS's goodbye it
            // could not be sent.
            context.flush()
        }
        context.close(mode: mode, promise: promise)
    }

    private func unsentBytes(_ context: ChannelHandlerContext) -> Int {
        Int((try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        watch.bytesArrived(unwrapInboundIn(data).readableBytes, now: .now())
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isReading = false
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        isReading = true
        context.read()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .byteBuffer(let buffer) = unwrapOutboundIn(data) else {
            return context.write(data, promise: promise)
        }
        writtenBytes += buffer.readableBytes
        context.write(wrapOutboundOut(buffer), promise: promise)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard watch.input == .handshake else { return context.fireErrorCaught(error) }
        edge.counters.count(.handshakeFailed)
        edge.logger.debug(
            "the TLS handshake with \(EdgeContext.text(of: context.channel.remoteAddress) ?? "a client") failed: \(error)"
        )
        watch.inputEnded()
        // TLS has sent its alert.
        context.close(promise: nil)
    }

    // MARK: The clock

    private func scheduleLook(_ context: ChannelHandlerContext) {
        timer = edge.afterTick(of: context) { [weak self] in self?.look($0) }
    }

    private func look(_ context: ChannelHandlerContext) {
        let unsent = unsentBytes(context)
        let sight = ConnectionTimeouts.Sight(
            now: .now(), isReading: isReading, unsentBytes: unsent, sentBytes: max(0, writtenBytes - unsent))
        switch watch.looked(sight) {
        case nil: break
        case .drop(let end):
            edge.counters.count(end)
            edge.logger.debug(
                "closed a connection of \(EdgeContext.text(of: context.channel.remoteAddress) ?? "a client"): \(end.rawValue)"
            )
            guard end == .idle else { return drop(context) }
            watch.inputEnded()
            context.close(promise: nil)
            context.read()
        case .refuse(let end):
            edge.counters.count(end)
            if let requests { requests.isTooSlow(end) } else { drop(context) }
        }
        scheduleLook(context)
    }
}
