import NIOCore

extension PeerAcceptor {
    /// Hands a request to the delegate and sends what it answers.
    func serve(
        _ request: RequestFrame, on connection: PeerConnection, _ node: NodeID, _ channel: PeerChannel
    ) throws(PeerProtocolError) {
        let id = request.id
        guard let delegate = shared.delegate else {
            return connection.respond(id, .failure(.refused("node \(shared.configuration.nodeID) is stopping")))
        }
        guard connection.serving.count < shared.configuration.servedRequestsMax else {
            return connection.respond(
                id,
                .failure(.refused("node \(shared.configuration.nodeID) serves too many requests of this node already")))
        }
        guard connection.serving.insert(id).inserted else { throw .unexpected("two requests with the number \(id)") }
        shared.counters.update { $0.requestsServed += 1 }
        let eventLoop = shared.eventLoop
        let bound = NIOLoopBound(connection, eventLoop: eventLoop)
        delegate.serve(request.payload, from: node, channel: channel) { result in
            if eventLoop.inEventLoop {
                bound.value.answer(id, result)
            } else {
                eventLoop.execute { bound.value.answer(id, result) }
            }
        }
    }
}

extension PeerConnection {
    /// Sends the answer to a request that is being served; the second answer, or one after the end, is dropped.
    func answer(_ id: UInt64, _ result: Result<[UInt8], PeerTransportError>) {
        guard serving.remove(id) != nil else { return }
        respond(id, result)
    }

    /// Sends a response. One that does not fit is replaced by the reason, so that the peer need not wait for its
    /// timeout.
    func respond(_ id: UInt64, _ result: Result<[UInt8], PeerTransportError>) {
        let frame = ResponseFrame(id: id, result: result)
        switch writeWithinLimits(.response, { frame.encode(to: &$0) }) {
        case .appended: return
        case .full:
            let reason = "\(configuration.outboundBytesMax) bytes wait for this node already"
            write(.response) { ResponseFrame(id: id, result: .failure(.responseLost(reason))).encode(to: &$0) }
        case .tooLarge(let bytes):
            let error = PeerTransportError.responseTooLarge(bytes: bytes, bytesMax: configuration.frameBytesMax)
            write(.response) { ResponseFrame(id: id, result: .failure(error)).encode(to: &$0) }
        }
    }
}
