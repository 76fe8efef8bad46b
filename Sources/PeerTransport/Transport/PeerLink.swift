import Logging
import NIOCore
import NIOSSL
import Wire

/// The outgoing side of one (peer, channel): dials for ever, sends, and keeps the requests that wait for answers.
///
/// Bound to the event loop.
final class PeerLink: PeerConnectionOwner {
    let address: PeerAddress
    let channel: PeerChannel
    let shared: TransportShared
    var logger: Logger
    private var backoff = Backoff()
    private var redial: Scheduled<Void>?
    private var isDialling = false
    private var isStopped = false
    /// The connection, ready or not.
    private var connection: PeerConnection?
    /// The connection once the peer has proved who it is.
    private(set) var ready: PeerConnection?
    var nextRequestID: UInt64 = 1
    var waiting: [UInt64: WaitingRequest] = [:]
    private var quietLog = QuietLog()

    init(address: PeerAddress, channel: PeerChannel, shared: TransportShared) {
        self.address = address
        self.channel = channel
        self.shared = shared
        logger = shared.logger
        logger[metadataKey: "peer"] = "\(address.node)"
        logger[metadataKey: "channel"] = "\(channel)"
    }

    // MARK: Dialling

    /// Dials now, unless a connection is there or on its way.
    func dial() {
        guard !isStopped, !isDialling, connection == nil else { return }
        redial?.cancel()
        redial = nil
        isDialling = true
        shared.counters.update { $0.dials += 1 }
        let bound = NIOLoopBound(self, eventLoop: shared.eventLoop)
        shared.wire.dial(address) { try bound.value.prepare($0) }
            .assumeIsolated().whenComplete { self.dialled($0) }
    }

    private func prepare(_ end: PeerWireEnd) throws {
        let connection = PeerConnection(
            dialled: (address.node, channel), configuration: shared.configuration, end: end, counters: shared.counters,
            owner: self)
        try end.channel.pipeline.syncOperations.addHandler(connection)
    }

    private func dialled(_ result: Result<any Channel, any Error>) {
        isDialling = false
        do {
            let channel = try result.get()
            let connection = try channel.pipeline.syncOperations.handler(type: PeerConnection.self)
            guard !isStopped else { return connection.close(saying: "the node stops") }
            // A name may resolve to several addresses, each tried with a connection of its own; this one has won.
            self.connection = connection
            if connection.isEnded { connectionEnded(connection, end: connection.end ?? .broken("it closed at once")) }
        } catch {
            log(.broken("it cannot be reached (\(error))"))
            dialLater()
        }
    }

    private func dialLater() {
        guard !isStopped, redial == nil else { return }
        let delay = backoff.next(random: shared.random())
        redial = shared.eventLoop.assumeIsolated().scheduleTask(in: delay) { [weak self] in
            self?.redial = nil
            self?.dial()
        }
    }

    // MARK: Connection events

    func connectionBegan(_ connection: PeerConnection) {}

    func connectionReady(_ connection: PeerConnection, peer: PeerIdentity, channel: PeerChannel) {
        guard connection === self.connection else { return }
        backoff.reset()
        quietLog.forget()
        ready = connection
        logger.info("connected to node \(peer.node) at \(address.host):\(address.port)")
        shared.delegate?.peerConnected(peer, channel: channel)
    }

    func connection(_ connection: PeerConnection, received frame: Frame) throws(PeerProtocolError) {
        guard frame.kind == .response, channel != .raft else {
            throw .unexpected("a \(frame.kind) frame on a \(channel) connection that it did not dial")
        }
        let response: ResponseFrame
        do { response = try ResponseFrame(decoding: frame.payload) } catch { throw .malformed("response (\(error))") }
        finish(response.id, response.result)
    }

    func connection(_ connection: PeerConnection, heardClockOf node: NodeID, ahead: ClosedRange<Int64>) {
        if connection === self.connection { shared.delegate?.peerClock(of: node, ahead: ahead) }
    }

    func connectionEnded(_ connection: PeerConnection, end: ConnectionEnd) {
        // One of several attempts that lost, or ended before it was known to have won.
        guard connection === self.connection else { return }
        self.connection = nil
        let wasReady = ready != nil
        ready = nil
        log(end)
        failWaiting(.disconnected)
        if wasReady { shared.delegate?.peerDisconnected(address.node, channel: channel) }
        dialLater()
    }

    // MARK: Stopping

    /// Stops dialling and closes the connection.
    func stop(saying reason: String) {
        isStopped = true
        redial?.cancel()
        connection?.close(saying: reason)
    }

    /// Where the connection's end can be waited for.
    var openChannel: (any Channel)? { connection?.context?.channel }

    private func log(_ end: ConnectionEnd) {
        let name = "node \(address.node) at \(address.host):\(address.port)"
        switch end {
        case .wanted(let reason): logger.debug("closed the connection to \(name): \(reason)")
        case .refused(let reason):
            quietLog.log(logger, .warning, "refused \(name): \(reason)")
        case .refusedByPeer(let reason):
            quietLog.log(logger, .warning, "\(name) closed the connection, saying: \(reason)")
        case .broken(let reason): quietLog.log(logger, .info, "no connection to \(name): \(reason); trying again")
        }
    }

    /// Queues a Raft message, or counts it as dropped.
    func send(_ message: PeerMessage) {
        guard let ready else { return shared.counters.update { $0.messagesDroppedNotConnected += 1 } }
        switch ready.write(message) {
        case .appended: shared.counters.update { $0.messagesSent += 1 }
        case .full: shared.counters.update { $0.messagesDroppedFull += 1 }
        case .tooLarge(let bytes):
            shared.counters.update { $0.messagesDroppedTooLarge += 1 }
            logger.error(
                "dropped a raft message of \(bytes) bytes: the frame limit is \(shared.configuration.frameBytesMax)",
                metadata: ["group": "\(message.group)"])
        }
    }

    /// Sends a request and waits for its answer.
    func request(_ payload: [UInt8], timeout: TimeAmount) -> EventLoopFuture<[UInt8]> {
        let eventLoop = shared.eventLoop
        guard let ready else { return eventLoop.makeFailedFuture(PeerTransportError.notConnected) }
        let id = nextRequestID
        nextRequestID += 1
        let outcome = ready.writeWithinLimits(.request) { RequestFrame(id: id, payload: payload).encode(to: &$0) }
        switch outcome {
        case .appended: break
        case .full: return eventLoop.makeFailedFuture(PeerTransportError.outboundFull)
        case .tooLarge(let bytes):
            return eventLoop.makeFailedFuture(
                PeerTransportError.tooLarge(bytes: bytes, bytesMax: shared.configuration.frameBytesMax))
        }
        shared.counters.update { $0.requestsSent += 1 }
        let promise = eventLoop.makePromise(of: [UInt8].self)
        let deadline = eventLoop.assumeIsolated().scheduleTask(in: timeout) { [weak self] in
            guard let self, waiting[id] != nil else { return }
            shared.counters.update { $0.requestsTimedOut += 1 }
            finish(id, .failure(.timedOut))
        }
        waiting[id] = WaitingRequest(promise: promise, timeout: deadline)
        return promise.futureResult
    }

    /// Answers a waiting request; an answer that comes after its time finds nothing.
    func finish(_ id: UInt64, _ result: Result<[UInt8], PeerTransportError>) {
        guard let request = waiting.removeValue(forKey: id) else { return }
        request.timeout.cancel()
        request.promise.completeWith(result.mapError { $0 })
    }

    /// Fails every waiting request, oldest first.
    func failWaiting(_ error: PeerTransportError) {
        for id in waiting.keys.sorted() { finish(id, .failure(error)) }
    }
}

/// A request that was sent and not answered yet.
struct WaitingRequest {
    var promise: EventLoopPromise<[UInt8]>
    var timeout: Scheduled<Void>
}

/// How a connection ended, which decides whether and how loudly it is logged.
enum ConnectionEnd: Hashable {
    /// This node wanted it.
    case wanted(String)
    /// This node refused the peer; "it" is the peer.
    case refused(String)
    /// The peer said goodbye, or its TLS refused this node.
    case refusedByPeer(String)
    /// The network or the peer went away.
    case broken(String)

    /// Translates what the channel reported. BoringSSL's errors are only told apart by their text.
    init(_ error: any Error) {
        let text = String(describing: error)
        func has(_ parts: String...) -> Bool { parts.contains { text.contains($0) } }
        if has("PEER_DID_NOT_RETURN_A_CERTIFICATE") {
            self = .refused("it presented no certificate")
        } else if has("CERTIFICATE_VERIFY_FAILED", "unableToValidateCertificate") {
            self = .refused("its certificate is not one of this cluster's peer CA, or has expired")
        } else if has(
            "ALERT_UNKNOWN_CA", "ALERT_BAD_CERTIFICATE", "ALERT_CERTIFICATE", "CERTIFICATE_REQUIRED", "DECRYPT_ERROR")
        {
            self = .refusedByPeer("its TLS rejected this node's certificate (\(text))")
        } else if has("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST") {
            self = .refused("it does not speak TLS")
        } else if has("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION") {
            self = .refused("it does not speak TLS 1.3")
        } else if error is PeerProtocolError {
            self = .refused(text)
        } else if let error = error as? NIOSSLError, error == .uncleanShutdown {
            self = .broken("the connection was cut")
        } else if has("EOF during handshake") {
            self = .broken("it closed the connection during the TLS handshake")
        } else if case .handshakeFailed = error as? NIOSSLError {
            self = .refused("the TLS handshake failed (\(text))")
        } else {
            self = .broken(text)
        }
    }
}

/// How long to wait before the next attempt to connect: 100 ms, doubled each time up to 2 s, less up to half of it at
/// random so that nodes that lost the same peer do not come back in step.
struct Backoff {
    static let firstMilliseconds: Int64 = 100
    static let lastMilliseconds: Int64 = 2_000

    private var attempts = 0

    mutating func next(random: UInt64) -> TimeAmount {
        let full = min(Self.firstMilliseconds << Int64(min(attempts, 10)), Self.lastMilliseconds)
        attempts += 1
        return .milliseconds(full - Int64(random % UInt64(full / 2 + 1)))
    }

    /// The connection stood: the next failure starts from the beginning.
    mutating func reset() { attempts = 0 }
}
