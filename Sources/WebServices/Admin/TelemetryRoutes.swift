import Directory
import RecordModel
import Service

/// `GET telemetry`: what requests came to, over all nodes.
struct TelemetryRoutes {
    let request: AdminRequest

    func show() async throws(RequestFailure) -> Reply {
        let filter = try filter()
        let (sums, now, nodes) = try await request.administration.requests.telemetry(filter)
        let range = filter.range
        let last = range.begin(of: now)
        return Reply { writer in
            writer.member("range", range.rawValue)
            writer.member("stepSeconds", integer: range.stepMilliseconds / 1_000)
            writer.member("from", integer: last - Int64(range.steps - 1) * range.stepMilliseconds)
            writer.member("until", integer: last + range.stepMilliseconds)
            writer.list("points", sums.points) { point, writer in
                writer.member("time", integer: point.begin)
                writer.members(of: point.cell)
            }
            var total = TelemetryCell.blank
            for part in sums.keys { total.add(part.cell) }
            writer.object("total") { $0.members(of: total) }
            writer.list("operations", Self.sums(of: sums.keys, by: \.group.rawValue)) { sum, writer in
                writer.member("operation", sum.name)
                writer.members(of: sum.cell)
            }
            writer.list("containers", Self.sums(of: sums.keys) { "\($0.container)/\($0.environment?.rawValue ?? "")" })
            {
                sum, writer in
                let parts = sum.name.split(separator: "/", omittingEmptySubsequences: false)
                writer.member("container", String(parts[0]))
                if !parts[1].isEmpty { writer.member("environment", String(parts[1])) }
                writer.members(of: sum.cell)
            }
            writer.list("nodes", nodes) { $1.members(of: $0) }
        }
    }

    private func filter() throws(RequestFailure) -> TelemetryFilter {
        let url = request.url
        var filter = TelemetryFilter(try url.one(of: "range", TelemetryRange.init) ?? .hour)
        filter.container = url.text("container")
        filter.environment = try url.environment()
        filter.group = try url.one(of: "operation", OperationGroup.init)
        return filter
    }

    /// What the parts with one name come to, those with most requests first.
    private static func sums(
        of parts: [TelemetrySums.Part], by name: (TelemetryKey) -> String
    ) -> [(name: String, cell: TelemetryCell)] {
        var sums: [String: TelemetryCell] = [:]
        for part in parts { sums[name(part.key), default: .blank].add(part.cell) }
        return sums.map { ($0.key, $0.value) }.sorted { left, right in
            (right.cell.requests, left.name) < (left.cell.requests, right.name)
        }
    }
}

extension JSONWriter {
    /// What requests came to; percentiles are left out where there was none.
    fileprivate mutating func members(of cell: TelemetryCell) {
        member("requests", count: cell.requests)
        member("errors", count: cell.errorCount)
        if !cell.errors.isEmpty {
            object("errorsByCode") { writer in
                for error in cell.errors { writer.member(error.code.rawValue, count: error.count) }
            }
        }
        for (name, part) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            if let milliseconds = cell.latency.milliseconds(ofPart: part) {
                member(name, number: (milliseconds * 1_000).rounded() / 1_000)
            }
        }
        member("bytesIn", count: cell.bytesIn)
        member("bytesOut", count: cell.bytesOut)
        member("notifications", count: cell.notifications)
        member("activeUsers", count: cell.users.count)
    }
}
