import ArgumentParser

/// Measurements of the SDK against a running cluster that `ZONEKEEPER_*` variables name.
@main
struct SDKBenchmarks: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sdk-benchmarks", abstract: "What the SDK costs its process, beside requests without it.",
        subcommands: [SavesBenchmark.self, FeedBenchmark.self])
}
