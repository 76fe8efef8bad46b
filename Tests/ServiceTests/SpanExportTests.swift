import Cluster
import Foundation
import Logging
import PeerTransport
import RecordModel
import Testing
import Tracing

@testable import Service
@testable import Telemetry

@Suite("Traces as files")
struct SpanExportTests {
    private static let place = TraceContext(
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")!

    private static func span(_ name: String = "records/modify") -> FinishedSpan {
        FinishedSpan(
            context: place, parent: nil, name: name, kind: .server, begin: 1_544_712_660_000_000_000,
            end: 1_544_712_661_000_000_000, attributes: [:], events: [], links: [], status: nil)
    }

    private static func withFolder(_ body: (String) throws -> Void) throws {
        let path = FileManager.default.temporaryDirectory.path + "/zonekeeper-spans-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(path)
    }

    @Test("a line is OTLP's JSON: ids in hexadecimal digits, times and whole numbers as strings")
    func line() throws {
        var span = Self.span()
        span.parent = 0xABC
        span.attributes = ["n": 7, "f": 0.5, "flag": true, "list": .stringArray(["a\"", "b"])]
        span.events = [SpanEvent(name: "e", at: NodeTracer.Instant(nanosecondsSinceEpoch: 5), attributes: ["x": "y"])]
        var context = ServiceContext.topLevel
        context.trace = Self.place
        span.links = [SpanLink(context: context, attributes: [:]), SpanLink(context: .topLevel, attributes: [:])]
        span.status = SpanStatus(code: .error, message: "m")
        let line = SpanLine.line([span, Self.span("other")], resource: [("service.name", "zonekeeper")])
        #expect(
            String(decoding: line, as: UTF8.self)
                == #"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"zonekeeper"}}]},"scopeSpans":[{"scope":{"name":"zonekeeper"},"spans":[{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","parentSpanId":"0000000000000abc","name":"records/modify","kind":2,"startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"1544712661000000000","attributes":[{"key":"f","value":{"doubleValue":0.5}},{"key":"flag","value":{"boolValue":true}},{"key":"list","value":{"stringValue":"[\"a\\\"\", \"b\"]"}},{"key":"n","value":{"intValue":"7"}}],"events":[{"timeUnixNano":"5","name":"e","attributes":[{"key":"x","value":{"stringValue":"y"}}]}],"links":[{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7"}],"status":{"code":2,"message":"m"}},{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","name":"other","kind":2,"startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"1544712661000000000"}]}]}]}"#
                + "\n")
    }

    @Test("two files take so many bytes at most, whole lines each, and go on after a start")
    func rotation() throws {
        try Self.withFolder { folder in
            func text(_ name: String) throws -> String {
                try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
            }
            var file = SpanFile(folder: folder, bytesMax: 40)
            let lines = (10..<20).map { "line \($0)\n" }
            for line in lines.prefix(5) { try file.append(Array(line.utf8)) }
            #expect(try text(SpanFile.formerName) == lines[2...3].joined() && text(SpanFile.name) == lines[4])
            // Another process, which finds a part of a line.
            try FileManager.default.removeItem(atPath: "\(folder)/\(SpanFile.formerName)")
            try "half".write(toFile: "\(folder)/\(SpanFile.name)", atomically: false, encoding: .utf8)
            file = SpanFile(folder: folder, bytesMax: 40)
            try file.append(Array(lines[5].utf8))
            #expect(try text(SpanFile.name) == "half\n" + lines[5])
            #expect(throws: (any Error).self) { try file.append([UInt8](repeating: 1, count: 21)) }
            try file.append(Array(lines[6].utf8))
            #expect(try text(SpanFile.name) == lines[6] && text(SpanFile.formerName) == "half\n" + lines[5])
        }
    }

    @Test("what waits is written at the end, and what cannot be written is counted")
    func export() throws {
        try Self.withFolder { folder in
            let metrics = MetricsRegistry()
            let queue = SpanQueue(metrics)
            let tracer = NodeTracer(ratio: 1, queue: queue, random: { 7 }, clock: { 1 })
            let settings = NodeSettings(
                nodeID: NodeID(2), clusterID: "test", dataPath: folder, nodes: [], peerListenHost: "",
                tls: PeerTLS(authorityPath: "", certificatePath: "", keyPath: ""))
            func export(_ folder: String) -> SpanExport {
                SpanExport(queue, SpanExport.Settings(folder: folder), of: settings, logger: Logger(label: "test"))
            }
            for _ in 0..<501 { tracer.request("r", below: nil).span?.finish() }
            export(folder + "/traces").stop()
            let lines = try String(contentsOfFile: "\(folder)/traces/traces.jsonl", encoding: .utf8)
                .split(separator: "\n")
            #expect(lines.count == 2, "500 spans make a line")
            let json = try JSONParser.parse(Array(lines[1].utf8))
            let resource = json["resourceSpans"]?.array?.first?["resource"]?["attributes"]?.array ?? []
            #expect(
                resource.contains {
                    $0["key"] == .string("service.instance.id") && $0["value"]?["stringValue"] == .string("2")
                })
            tracer.request("r", below: nil).span?.finish()
            export(folder + "/traces/traces.jsonl/no-folder").stop()
            #expect(metrics.text.contains("zonekeeper_spans_exported_total 501\n"))
            #expect(metrics.text.contains(#"zonekeeper_spans_dropped_total{reason="file"} 1"#))
        }
    }
}
