package import CoreMetrics
import Synchronization

/// The metrics of one node: a backend of swift-metrics that keeps them in memory and writes Prometheus' text form.
///
/// Timers are histograms in seconds. Counters, gauges and timers of one name have the same kind; of another kind, and
/// beyond `seriesMax` series, what is counted is not shown. All of it may be used from any thread.
package final class MetricsRegistry: MetricsFactory, Sendable {
    /// How many series there may be: each has its own lines.
    package static let seriesMax = 10_000

    private struct Key: Hashable {
        var name: String
        var labels: String
    }

    private struct Content {
        var series: [Key: MetricSeries] = [:]
        var kinds: [String: MetricSeries.Kind] = [:]
    }

    private let content = Mutex(Content())

    /// Nothing is counted yet.
    package init() {}

    /// The series of a name and labels; the same one each time.
    private func series(_ label: String, _ dimensions: [(String, String)], _ kind: MetricSeries.Kind) -> MetricSeries {
        let key = Key(name: Self.name(label), labels: Self.labels(dimensions))
        return content.withLock { content in
            if let series = content.series[key], series.kind == kind { return series }
            let series = MetricSeries(kind)
            guard content.series.count < Self.seriesMax, content.kinds[key.name, default: kind] == kind else {
                return series
            }
            content.kinds[key.name] = kind
            content.series[key] = series
            return series
        }
    }

    /// Prometheus' text form, version 0.0.4: the series by name and labels.
    package var text: String {
        let (series, kinds) = content.withLock { ($0.series, $0.kinds) }
        var text = ""
        var last: String?
        for (key, series) in series.sorted(by: { ($0.key.name, $0.key.labels) < ($1.key.name, $1.key.labels) }) {
            if key.name != last { text += "# TYPE \(key.name) \(kinds[key.name]?.rawValue ?? "untyped")\n" }
            last = key.name
            series.write(key.name, key.labels, to: &text)
        }
        return text
    }

    /// Letters, digits and underscores; anything else becomes an underscore.
    private static func name(_ label: String) -> String {
        let bytes = label.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                byte
            default: UInt8(ascii: "_")
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func labels(_ dimensions: [(String, String)]) -> String {
        dimensions.map { key, value in
            let value = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
            return "\(name(key))=\"\(value)\""
        }.joined(separator: ",")
    }

    /// What a timer without labels recorded; nothing for a name that no timer has.
    package func histogram(of name: String) -> HistogramCounts {
        let series = content.withLock { $0.series[Key(name: name, labels: "")] }
        return series?.histogram ?? HistogramCounts()
    }

    private func remove(_ handler: AnyObject) {
        content.withLock { content in content.series = content.series.filter { $0.value !== handler } }
    }
}

// The backend's side of swift-metrics.
extension MetricsRegistry {
    /// A counter: it only grows.
    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(label, dimensions, .counter)
    }

    /// A counter of fractions: it only grows.
    package func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler { series(label, dimensions, .counter) }

    /// A gauge.
    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(label, dimensions, .gauge)
    }

    /// A gauge, or how many values there were and their sum.
    package func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler { series(label, dimensions, aggregate ? .summary : .gauge) }

    /// A histogram in seconds.
    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(label, dimensions, .histogram)
    }

    /// Shows it no longer.
    package func destroyCounter(_ handler: any CounterHandler) { remove(handler) }
    /// Shows it no longer.
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { remove(handler) }
    /// Shows it no longer.
    package func destroyMeter(_ handler: any MeterHandler) { remove(handler) }
    /// Shows it no longer.
    package func destroyRecorder(_ handler: any RecorderHandler) { remove(handler) }
    /// Shows it no longer.
    package func destroyTimer(_ handler: any TimerHandler) { remove(handler) }
}

/// How many durations a timer recorded, by their length.
package struct HistogramCounts: Hashable, Sendable {
    /// Those of each bucket of a histogram; what is longer than the last is in `count` only.
    private var buckets: [UInt64] = []
    private var count: UInt64 = 0

    /// Nothing is recorded.
    package init() {}

    fileprivate init(buckets: [UInt64], count: UInt64) { (self.buckets, self.count) = (buckets, count) }

    /// What was recorded since an earlier look at the same timer.
    package func since(_ earlier: Self) -> Self {
        var since = self
        since.count -= min(count, earlier.count)
        for (place, count) in earlier.buckets.enumerated() where place < buckets.count {
            since.buckets[place] -= min(buckets[place], count)
        }
        return since
    }

    /// What so many of a hundred take at most begins here, in milliseconds: the lower end of their bucket. Nil where
    /// fewer than a hundred were recorded.
    package func milliseconds(ofHundredths part: UInt64) -> Int64? {
        guard count >= 100 else { return nil }
        var sum: UInt64 = 0
        let place = buckets.firstIndex { bucket in
            sum += bucket
            return sum * 100 >= count * part
        }
        let below = (place ?? buckets.count) - 1
        return below < 0 ? 0 : MetricSeries.boundsNanoseconds[below] / 1_000_000
    }
}

/// One series: a number that grows or changes, or how values are spread.
final class MetricSeries: Sendable {
    /// In Prometheus' words.
    enum Kind: String {
        case counter, gauge, summary, histogram
    }

    private struct State {
        /// A counter's or gauge's value, or the sum of all that was recorded.
        var value = 0.0
        var count: UInt64 = 0
        /// How many values were at most each bound, and more than the one before.
        var buckets: [UInt64]
    }

    /// The upper ends of the buckets, in nanoseconds: from what a sync takes on a fast disk to a deadline.
    static let boundsNanoseconds: [Int64] = [
        100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000,
        250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000,
    ]

    let kind: Kind
    private let state: Mutex<State>

    init(_ kind: Kind) {
        self.kind = kind
        state = Mutex(State(buckets: kind == .histogram ? Self.boundsNanoseconds.map { _ in 0 } : []))
    }

    var histogram: HistogramCounts {
        state.withLock { HistogramCounts(buckets: $0.buckets, count: $0.count) }
    }

    func write(_ name: String, _ labels: String, to text: inout String) {
        let (value, count, buckets) = state.withLock { ($0.value, $0.count, $0.buckets) }
        let inBraces = labels.isEmpty ? "" : "{\(labels)}"
        guard kind == .summary || kind == .histogram else {
            let number = Int64(exactly: value).map(String.init) ?? String(value)
            return text += "\(name)\(inBraces) \(number)\n"
        }
        if kind == .histogram {
            let prefix = labels.isEmpty ? "" : labels + ","
            var sum: UInt64 = 0
            for (bound, bucket) in zip(Self.boundsNanoseconds, buckets) {
                sum += bucket
                text += "\(name)_bucket{\(prefix)le=\"\(Double(bound) / 1e9)\"} \(sum)\n"
            }
            text += "\(name)_bucket{\(prefix)le=\"+Inf\"} \(count)\n"
        }
        text += "\(name)_sum\(inBraces) \(value)\n\(name)_count\(inBraces) \(count)\n"
    }
}

extension MetricSeries: CounterHandler, FloatingPointCounterHandler, MeterHandler, RecorderHandler, TimerHandler {
    func increment(by amount: Int64) { increment(by: Double(amount)) }
    func increment(by amount: Double) { state.withLock { $0.value += amount } }
    func decrement(by amount: Double) { increment(by: -amount) }
    func reset() { state.withLock { $0.value = 0 } }
    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { state.withLock { $0.value = value } }
    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        if kind == .gauge { return set(value) }
        state.withLock { state in
            state.value += value
            state.count += 1
        }
    }

    func recordNanoseconds(_ duration: Int64) {
        let bucket = Self.boundsNanoseconds.firstIndex { duration <= $0 }
        state.withLock { state in
            state.value += Double(duration) / 1e9
            state.count += 1
            if let bucket { state.buckets[bucket] += 1 }
        }
    }
}

/// How long the parts of a node's work take, as histograms of its metrics.
package struct NodeTimers: Sendable {
    /// From a command's way to its leader, on this node or another, to its outcome.
    package let commit: Stopwatch
    /// A read on the leader, with its wait for the index and for a thread.
    package let read: Stopwatch
    /// A transaction in which committed entries are applied.
    package let apply: Stopwatch
    /// A sync of the log's file.
    package let logSync: Stopwatch
    /// A request to another node and its answer.
    package let peerRoundTrip: Stopwatch

    /// - Parameter metrics: where they are shown.
    package init(_ metrics: MetricsRegistry) {
        func stopwatch(_ name: String) -> Stopwatch { Stopwatch("zonekeeper_\(name)_seconds", in: metrics) }
        commit = stopwatch("commit")
        read = stopwatch("read")
        apply = stopwatch("apply")
        logSync = stopwatch("log_sync")
        peerRoundTrip = stopwatch("peer_round_trip")
    }
}

/// Records how long something took.
package struct Stopwatch: Sendable {
    private let timer: CoreMetrics.Timer

    fileprivate init(_ label: String, in metrics: MetricsRegistry) {
        timer = Timer(label: label, dimensions: [], factory: metrics)
    }

    /// Takes note of a duration; what lies before its beginning counts as no time.
    package func record(nanoseconds: UInt64) { timer.recordNanoseconds(Int64(clamping: nanoseconds)) }

    /// Does something that blocks its thread, and takes note of how long that was, also where it failed.
    package func time<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        let begin = ContinuousClock.now
        defer { timer.recordNanoseconds(Int64(begin.duration(to: .now) / .nanoseconds(1))) }
        return try body()
    }
}
