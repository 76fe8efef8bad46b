import ArgumentParser

/// Measurements of the record store against hand-written SQL, in one process and on one kind of file.
@main
struct StoreBenchmarks: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store-benchmarks", abstract: "Times of the record store beside hand-written tables.",
        subcommands: [QueryBenchmark.self, FeedCommand.self, NeighbourCommand.self, SubscriptionCommand.self])
}

/// `store-benchmarks feed`: a zone's change feed read in full.
struct FeedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "feed", abstract: "A change feed read in full.")

    @Option(help: "Records in the zone.") var records = 100_000

    func run() throws {
        var benchmark = FeedBenchmark()
        benchmark.records = records
        try benchmark.run()
    }
}
