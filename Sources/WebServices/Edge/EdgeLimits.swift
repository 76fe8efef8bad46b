import Glibc
package import NIOCore
import Synchronization

/// What clients of a node may hold and how long they may take; beyond it they are refused, so that nobody can keep the
/// others out by opening much or by being slow.
package struct EdgeLimits: Sendable {
    /// The most connections at once.
    package var connectionsMax = 4_096
    /// The most connections at once of one address. IPv6 counts by /56, what a household may have, and a /48, a site's,
    /// gets twice as many.
    package var connectionsPerAddressMax = 512
    /// The most connections beyond these limits that are still given a TLS handshake, to be told why their requests are
    /// refused, or to show that they are to be served all the same (`EdgePass`); what comes on top is closed at once.
    package var toldConnectionsMax = 64
    /// The most bytes of a request's header fields.
    package var headerBytesMax = 16 << 10
    /// The most header fields of a request.
    package var headerFieldsMax = 128
    /// The most bytes of a request's target: path and query.
    package var targetBytesMax = 8 << 10
    /// The most requests of a connection that wait for their answers.
    package var pipelinedRequestsMax = 32
    /// The most frames of an HTTP/2 connection, within `controlFramesWindow`, that are of no request: settings, pings
    /// and priorities, of which browsers send some with each request. With more of them it is closed. Each
    /// takes eight bytes of every connection.
    package var controlFramesMax = 1_000
    /// The most requests of an HTTP/2 connection that the client gives up within `controlFramesWindow`; with more it is
    /// closed. A page that is left gives up all it was waiting for.
    package var resetsMax = 1_000
    /// For how long control frames and resets are counted.
    package var controlFramesWindow: TimeAmount = .seconds(30)
    /// The most bytes of answers that wait for an address to take them: beyond it, its requests are refused, and at
    /// twice as many the answers end that come on top.
    package var unsentBytesPerAddressMax = 64 << 20
    /// The most such bytes of all addresses: beyond it, an address is refused at an eighth of its own.
    package var unsentBytesMax = 512 << 20
    /// How long a TLS handshake may take.
    package var handshakeTimeout: TimeAmount = .seconds(10)
    /// How long a request's head may take, from its first byte.
    package var headersTimeout: TimeAmount = .seconds(10)
    /// A body must bring `bytesPerSecondMin` on the average of each time so long, while the node reads it.
    package var bodyWindow: TimeAmount = .seconds(10)
    /// An answer must be taken with `bytesPerSecondMin` on the average of each time so long.
    package var writeWindow: TimeAmount = .seconds(30)
    /// The least that clients must send or take while it is their turn; the requests of one HTTP/2 connection share it.
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

/// How many files and sockets this process may have open.
package enum OpenFiles {
    /// What an ordinary node could use.
    static let wanted = 65_536

    /// Raises the process's limit as far as the system lets it, up to `wanted`: the limit that shells set is older than
    /// servers with thousands of connections, and too low for the databases of some hundred shards. To be called before
    /// a node is opened.
    /// - Returns: the limit in force.
    @discardableResult
    package static func raiseLimit() -> Int {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0 else { return 1_024 }
        let most = min(limit.rlim_max, rlim_t(wanted))
        if limit.rlim_cur < most {
            var raised = limit
            raised.rlim_cur = most
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(min(limit.rlim_cur, rlim_t(Int32.max)))
    }
}

/// Why the edge ended a connection or refused a request on it.
enum EdgeEnd: String, Hashable, Sendable, CaseIterable {
    case overLimit = "over_limit"
    case handshakeFailed = "handshake_failed"
    case handshakeTimeout = "handshake_timeout"
    case headersTimeout = "headers_timeout"
    case slowBody = "slow_body"
    case slowReader = "slow_reader"
    /// The address left too many answers untaken.
    case unsent
    case idle
    /// It had no request, and its place was given to another address.
    case crowdedOut = "crowded_out"
    case badRequest = "bad_request"
    case pipelined
}

/// What the edge of this node has done since its start.
package final class EdgeCounters: Sendable {
    private let ends = Mutex([EdgeEnd: Int]())
    private let reloads = Atomic<Int>(0)

    func count(_ end: EdgeEnd) { ends.withLock { $0[end, default: 0] += 1 } }

    func countReload() { reloads.wrappingAdd(1, ordering: .relaxed) }

    subscript(end: EdgeEnd) -> Int { ends.withLock { $0[end] ?? 0 } }

    /// Lines of the Prometheus text form.
    package var lines: [String] {
        let counts = ends.withLock { $0 }
        return ["# TYPE zonekeeper_connections_ended_total counter"]
            + EdgeEnd.allCases.map {
                "zonekeeper_connections_ended_total{reason=\"\($0.rawValue)\"} \(counts[$0] ?? 0)"
            } + [
                "# TYPE zonekeeper_certificate_reloads_total counter",
                "zonekeeper_certificate_reloads_total \(reloads.load(ordering: .relaxed))",
            ]
    }
}
