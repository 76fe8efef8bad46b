import CoreMetrics
import Service
import Synchronization
import Telemetry

/// What this node counted since its start, as Prometheus reads it.
package final class Metrics: Sendable {
    private let registry: MetricsRegistry
    private let requests = Mutex<[Key: Request]>([:])
    private let edge = Mutex<EdgeCounters?>(nil)

    private struct Key: Hashable {
        var route: String
        var status: Int
    }

    private struct Request {
        let count: Counter
        let duration: CoreMetrics.Timer
    }

    /// - Parameter registry: the node's.
    init(_ registry: MetricsRegistry) { self.registry = registry }

    /// Shows what a server's edge counts, too.
    func follow(_ counters: EdgeCounters) { edge.withLock { $0 = counters } }

    /// Counts a request and how long its answer took; that of a stream begins to be sent then.
    func count(route: String, status: Int, nanoseconds: UInt64) {
        let request = requests.withLock { requests in
            let key = Key(route: route, status: status)
            if let request = requests[key] { return request }
            let request = Request(
                count: Counter(
                    label: "zonekeeper_requests_total", dimensions: [("route", route), ("status", "\(status)")],
                    factory: registry),
                duration: Timer(
                    label: "zonekeeper_request_seconds", dimensions: [("route", route)], factory: registry))
            requests[key] = request
            return request
        }
        request.count.increment()
        request.duration.recordNanoseconds(Int64(clamping: nanoseconds))
    }

    /// The Prometheus text form.
    func text(of service: RecordService) async -> String {
        let lines = await service.metricLines() + (edge.withLock(\.self)?.lines ?? [])
        return lines.joined(separator: "\n") + "\n" + registry.text
    }
}

extension RequestURL {
    /// A small, fixed set of names: what a client sends must not make new ones.
    var metricName: String {
        switch segments.first {
        case "database" where segments.count >= 7:
            Self.known.contains(segments[5]) ? "\(segments[5])" : "database"
        case "kv": segments.last == "watch" ? "kv-watch" : "kv"
        case "push", "device", "aps": ["watch", "aps"].contains(segments.last) ? "push-watch" : "push"
        case "admin": "admin"
        case "assets": "assets"
        case "console": "console"
        case "health": "health"
        default: SignInRequest.isPath(segments) ? "sign-in" : "other"
        }
    }
    private static let known: Set<String> = ["changes", "records", "users", "zones"]
}
