extension WatchHub {
    /// Watches that look at their stores at once, and that wait to.
    static let looksMax = 64
    static let queuedLooksMax = 16_384

    /// Lines of the Prometheus text form.
    package var lines: [String] {
        let (watches, counts) = counts
        return [
            "# TYPE zonekeeper_watches gauge", "zonekeeper_watches \(watches)",
            "# TYPE zonekeeper_watches_begun_total counter", "zonekeeper_watches_begun_total \(counts.begun)",
            "# TYPE zonekeeper_watches_refused_total counter",
            "zonekeeper_watches_refused_total{limit=\"watches\"} \(counts.refusedOnNode)",
            "zonekeeper_watches_refused_total{limit=\"watchesPerUser\"} \(counts.refusedOfUser)",
            "zonekeeper_watches_refused_total{limit=\"watchesPerContainer\"} \(counts.refusedOfContainer)",
            "# TYPE zonekeeper_watch_looks_total counter", "zonekeeper_watch_looks_total \(counts.looks)",
            "# TYPE zonekeeper_watch_pages_total counter", "zonekeeper_watch_pages_total \(counts.pages)",
        ]
    }
}
