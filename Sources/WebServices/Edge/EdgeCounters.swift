import Synchronization

/// Why the edge ended a connection or refused a request on it.
enum EdgeEnd: String, Hashable, Sendable, CaseIterable {
    case overLimit = "over_limit"
    case handshakeFailed = "handshake_failed"
    case handshakeTimeout = "handshake_timeout"
    case headersTimeout = "headers_timeout"
    case slowBody = "slow_body"
    case slowReader = "slow_reader"
    case idle
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
