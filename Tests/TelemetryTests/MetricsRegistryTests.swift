import CoreMetrics
import Testing

@testable import Telemetry

@Suite("Metrics of a node")
struct MetricsRegistryTests {
    private let registry = MetricsRegistry()

    @Test("Counters and gauges are shown by name and labels, with one line for their kind")
    func numbers() {
        let requests = Counter(label: "requests.total", dimensions: [("route", "a\"b")], factory: registry)
        requests.increment(by: 2)
        Counter(label: "requests.total", dimensions: [("route", "c")], factory: registry).increment()
        // The same series again.
        Counter(label: "requests.total", dimensions: [("route", "c")], factory: registry).increment()
        let depth = Meter(label: "depth", factory: registry)
        depth.set(2.5)
        depth.decrement(by: 1)
        #expect(
            registry.text == """
                # TYPE depth gauge
                depth 1.5
                # TYPE requests_total counter
                requests_total{route="a\\"b"} 2
                requests_total{route="c"} 2

                """)
        requests.destroy()
        #expect(!registry.text.contains("a\\\"b"))
    }

    @Test("A timer is a histogram in seconds whose buckets grow")
    func histogram() {
        let timer = Timer(label: "work_seconds", dimensions: [("kind", "x")], factory: registry)
        for milliseconds in [1, 3, 20_000] { timer.recordMilliseconds(milliseconds) }
        let lines = registry.text.split(separator: "\n")
        #expect(lines.first == "# TYPE work_seconds histogram")
        #expect(lines.contains(#"work_seconds_bucket{kind="x",le="0.0005"} 0"#))
        #expect(lines.contains(#"work_seconds_bucket{kind="x",le="0.001"} 1"#))
        #expect(lines.contains(#"work_seconds_bucket{kind="x",le="0.005"} 2"#))
        #expect(lines.contains(#"work_seconds_bucket{kind="x",le="10.0"} 2"#))
        #expect(lines.contains(#"work_seconds_bucket{kind="x",le="+Inf"} 3"#))
        #expect(lines.contains(#"work_seconds_sum{kind="x"} 20.004"#))
        #expect(lines.last == #"work_seconds_count{kind="x"} 3"#)
    }

    @Test("What came since an earlier look is told apart, and what one in a hundred takes")
    func since() {
        let timer = Timer(label: "work_seconds", factory: registry)
        #expect(registry.histogram(of: "work_seconds").milliseconds(ofHundredths: 99) == nil)
        for _ in 0..<1_000 { timer.recordMilliseconds(20_000) }
        let early = registry.histogram(of: "work_seconds")
        #expect(early.milliseconds(ofHundredths: 99) == 10_000)
        for _ in 0..<98 { timer.recordMicroseconds(50) }
        #expect(registry.histogram(of: "work_seconds").since(early).milliseconds(ofHundredths: 99) == nil, "too few")
        timer.recordMilliseconds(300)
        timer.recordMilliseconds(400)
        let late = registry.histogram(of: "work_seconds").since(early)
        #expect(late.milliseconds(ofHundredths: 99) == 250 && late.milliseconds(ofHundredths: 98) == 0)
        #expect(registry.histogram(of: "other") == HistogramCounts())
    }

    @Test("What was measured is noted also where it failed")
    func measured() throws {
        struct Failure: Error {}
        let timers = NodeTimers(registry)
        #expect(throws: Failure.self) { try timers.logSync.time { () throws(Failure) in throw Failure() } }
        #expect(timers.logSync.time { 1 } == 1)
        #expect(registry.text.contains("zonekeeper_log_sync_seconds_count 2\n"))
    }

    @Test("A name of two kinds is shown as the first, and series beyond the limit are not shown")
    func bounded() {
        Counter(label: "both", factory: registry).increment()
        Meter(label: "both", factory: registry).set(7)
        #expect(registry.text == "# TYPE both counter\nboth 1\n")
        for number in 0..<MetricsRegistry.seriesMax {
            Counter(label: "many", dimensions: [("n", "\(number)")], factory: registry).increment()
        }
        #expect(registry.text.split(separator: "\n").count == MetricsRegistry.seriesMax + 2)
    }
}
