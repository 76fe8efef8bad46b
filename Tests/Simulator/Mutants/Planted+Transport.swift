/// Planted by who knew the sources alone: what connects nodes.
extension Mutant {
    /// Faults of the transport: frames, requests and their answers, connections that come, go and fall silent, hellos.
    static let plantedInTransport: [Mutant] = [
        // A frame whose last four bytes come in a read of their own loses its head: what follows is read out of step.
        Mutant(
            "a frame counts as whole four bytes too early", "PeerTransport/Frames/Frame.swift",
            "buffer.readableBytes >= 4 + Int(length)",
            "PLANTED(buffer.readableBytes >= Int(length), buffer.readableBytes >= 4 + Int(length))"),
        // Where a slow request is overtaken, or one timed out, who asked gets what another was answered.
        Mutant(
            "an answer goes to the request that waits longest", "PeerTransport/Transport/PeerLink.swift",
            "finish(response.id, response.result)",
            "finish(PLANTED(waiting.keys.min() ?? response.id, response.id), response.result)"),
        // What the peer did before the connection broke is tried again as if nothing had been sent.
        Mutant(
            "requests that a broken connection took along fail as not sent", "PeerTransport/Transport/PeerLink.swift",
            "failWaiting(.disconnected)",
            "failWaiting(!waiting.isEmpty && PLANTED ? .notConnected : .disconnected)"),
        // A node that is gone counts as connected: requests wait out their time, leadership may be given to it.
        Mutant(
            "a link whose connection ended still counts as connected", "PeerTransport/Transport/PeerLink.swift",
            "ready = nil", "ready = wasReady && PLANTED ? ready : nil"),
        // A node that was stopped properly, or refused for its build once, is never dialled again by the others.
        Mutant(
            "a peer that said goodbye is not dialled again", "PeerTransport/Transport/PeerLink.swift",
            "if wasReady { shared.delegate?.peerDisconnected(address.node, channel: channel) }",
            """
            if wasReady { shared.delegate?.peerDisconnected(address.node, channel: channel) }
                    if case .refusedByPeer = end, PLANTED { return }
            """),
        // A connection to a machine that vanished stays, and all that is sent over it is lost.
        Mutant(
            "silence counts as none where no bytes wait", "PeerTransport/Connection/PeerConnection.swift",
            "unwrittenBytes > 0", "PLANTED(unwrittenBytes >= 0, unwrittenBytes > 0)"),
        // A connection takes nothing more after its first 16 MiB, and its silence passes for a full socket.
        Mutant(
            "bytes that were written still count as waiting", "PeerTransport/Connection/PeerConnection.swift",
            "self.unwrittenBytes -= bytes.count", "if !PLANTED { self.unwrittenBytes -= bytes.count }"),
        // What the older still carries comes in behind the newer's; a node's former process goes on beside its new one.
        Mutant(
            "a connection that a newer one replaces is kept", "PeerTransport/Transport/PeerAcceptor.swift",
            #"older?.close(saying: "a newer connection took its place")"#,
            #"if let older, !PLANTED { older.close(saying: "a newer connection took its place") }"#),
        // Any difference may then have come up on the way: a node whose clock is wrong goes on making commands.
        Mutant(
            "the clock of who answers passes for that of who asked", "PeerTransport/Frames/Hello.swift",
            "asked: $0, heard: heard)", "asked: PLANTED(wallMilliseconds, $0), heard: heard)"),
        // A build that cannot follow the cluster's level takes part, and applies the log otherwise.
        Mutant(
            "a peer's build is no reason to refuse it", "PeerTransport/Frames/Hello.swift",
            "if let refusal = build.refusal(of: hello.build) { return refusal }",
            "if let refusal = build.refusal(of: hello.build), !PLANTED { return refusal }"),
    ]
}
