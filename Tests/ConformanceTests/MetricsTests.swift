import Foundation
import TestSupport
import Testing

extension Conformance {
    @Suite("Metrics")
    struct MetricsTests {
        @Test("A node shows every metric that the documents, alert rules and the dashboard name")
        func named() async throws {
            let space = try await Space(.memory)
            try await space.save("a", ["count": ["value": 1]])
            let answer = try await space.home.adminCall("GET", "metrics")
            let text = String(decoding: answer.body, as: UTF8.self)
            let shown = Set(text.matches(of: #/\# TYPE (\w+) /#).map { String($0.output.1) })
            #expect(shown.contains("zonekeeper_commit_seconds") && shown.contains("zonekeeper_request_seconds"))
            for document in ["monitoring.md", "monitoring/alerts.yml", "monitoring/grafana-dashboard.json"] {
                let folder = URL(filePath: #filePath).deletingLastPathComponent()
                let file = folder.appending(path: "../../docs/\(document)")
                let names = try String(contentsOf: file, encoding: .utf8).matches(of: #/zonekeeper_[a-z_]*[a-z]/#)
                #expect(!names.isEmpty)
                for name in Set(names.map { String($0.output) }) where !name.hasSuffix("_asset") {
                    // Shown where traces are recorded; `SpanExportTests` has them.
                    if name.hasPrefix("zonekeeper_spans_") { continue }
                    let base = name.hasSuffix("_bucket") ? String(name.dropLast(7)) : name
                    #expect(shown.contains(base), "\(document) names \(name)")
                }
            }
        }
    }
}
