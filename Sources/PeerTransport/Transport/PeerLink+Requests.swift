import Logging
import NIOCore

/// A request that was sent and not answered yet.
struct WaitingRequest {
    var promise: EventLoopPromise<[UInt8]>
    var timeout: Scheduled<Void>
}

extension PeerLink {
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
