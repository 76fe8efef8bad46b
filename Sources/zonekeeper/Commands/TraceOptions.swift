import ArgumentParser
import Cluster
import Foundation
import Service
import Telemetry

/// What `serve` records of requests as traces.
struct TraceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Record this part of the requests as traces, from 0 to 1 (default: no traces at all).",
            discussion: """
                With 0, those whose clients say so in `traceparent`. Spans are written as OTLP's JSON lines, for a \
                collector.
                """,
            valueName: "part"))
    var traceSample: Double?

    @Option(
        help: ArgumentHelp(
            "The folder of the traces' files (default: `traces` in the data folder).", valueName: "folder"))
    var traceFolder: String?

    @Option(
        help: ArgumentHelp(
            "What the traces' files may take in all (default: 64).", valueName: "mebibytes"))
    var traceMegabytes: Int?

    func validate() throws {
        if let traceSample, !(0...1).contains(traceSample) {
            throw ValidationError("--trace-sample: 0 to 1 is expected, such as 0.01 for one of 100 requests")
        }
        if let traceMegabytes, !(2...1_000_000).contains(traceMegabytes) {
            throw ValidationError("--trace-megabytes: 2 to 1000000 is expected")
        }
        if traceSample == nil, traceFolder != nil || traceMegabytes != nil {
            throw ValidationError("--trace-folder and --trace-megabytes go with --trace-sample")
        }
    }

    /// Gives the node a tracer, if traces are wanted.
    func apply(to settings: inout NodeSettings) -> SpanExport.Settings? {
        guard let traceSample else { return nil }
        settings.tracer = NodeTracer(
            ratio: traceSample, queue: SpanQueue(settings.metrics), random: { .random(in: 0 ... .max) },
            clock: { UInt64(Date().timeIntervalSince1970 * 1e6) * 1_000 })
        var export = SpanExport.Settings(
            folder: traceFolder.map { Paths.absolute($0) } ?? settings.dataPath + "/traces")
        if let traceMegabytes { export.bytesMax = traceMegabytes << 20 }
        return export
    }
}
