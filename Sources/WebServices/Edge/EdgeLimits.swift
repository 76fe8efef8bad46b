package import NIOCore

/// What clients of a node may hold and how long they may take; beyond it they are refused, so that nobody can keep the
/// others out by opening much or by being slow.
package struct EdgeLimits: Sendable {
    /// The most connections at once.
    package var connectionsMax = 4_096
    /// The most connections at once of one address; IPv6 counts by /64, the least that a household gets.
    package var connectionsPerAddressMax = 512
    /// The most connections beyond these limits that are still given a TLS handshake, to be told why their requests are
    /// refused; what comes on top is closed at once.
    package var toldConnectionsMax = 64
    /// The most bytes of a request's header fields.
    package var headerBytesMax = 16 << 10
    /// The most header fields of a request.
    package var headerFieldsMax = 128
    /// The most bytes of a request's target: path and query.
    package var targetBytesMax = 8 << 10
    /// The most requests of a connection that wait for their answers.
    package var pipelinedRequestsMax = 32
    /// How long a TLS handshake may take.
    package var handshakeTimeout: TimeAmount = .seconds(10)
    /// How long a request's head may take, from its first byte.
    package var headersTimeout: TimeAmount = .seconds(10)
    /// A body must bring `bytesPerSecondMin` on the average of each time so long, while the node reads it.
    package var bodyWindow: TimeAmount = .seconds(10)
    /// An answer must be taken with `bytesPerSecondMin` on the average of each time so long.
    package var writeWindow: TimeAmount = .seconds(30)
    /// The least that clients must send or take while it is their turn.
    package var bytesPerSecondMin = 1_024
    /// How long a connection may stay on which there is no request.
    package var idleTimeout: TimeAmount = .seconds(75)
    /// How long what a refused client still sends is taken and thrown away, so that it gets to read why.
    package var lingerTimeout: TimeAmount = .seconds(1)

    package init() {}

    /// How often a connection's clock is looked at: time-outs are kept to a quarter of the shortest, or 2.5 s.
    var tick: TimeAmount {
        let shortest = [handshakeTimeout, headersTimeout, bodyWindow, writeWindow, idleTimeout].map(\.nanoseconds).min()
        return .nanoseconds(max(1_000_000, min((shortest ?? 0) / 4, 2_500_000_000)))
    }

    /// The same, with no more connections than half of the files that the process may have open: databases, logs and
    /// peers need the others.
    func fitted(toDescriptors descriptors: Int) -> EdgeLimits {
        var fitted = self
        fitted.connectionsMax = min(connectionsMax, max(16, descriptors / 2 - toldConnectionsMax))
        fitted.connectionsPerAddressMax = min(connectionsPerAddressMax, fitted.connectionsMax)
        return fitted
    }
}
