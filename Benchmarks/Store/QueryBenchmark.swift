import ArgumentParser
import Authorization
import Foundation
import GRDB
import RecordModel
import RecordStore

/// `store-benchmarks query`: pages of queries over one zone.
struct QueryBenchmark: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "query", abstract: "Pages of 50 of filters with a sort, distances and words.")

    @Option(help: "Records in the zone.") var records = 100_000
    @Option(help: "Records of a page.") var page = 50
    @Option(help: "How often each query is asked; the median counts.") var rounds = 30
    @Option(help: "Ask only what has these words in its title.") var only = ""
    @Flag(help: "Print how each query was answered.") var explain = false

    func run() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "store-benchmarks-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var configuration = Configuration()
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA cache_size = -65536") }
        let queue = try DatabaseQueue(path: folder.appending(path: "shard.sqlite").path, configuration: configuration)
        try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF") }
        let world = BenchmarkWorld(queue: queue, count: records)
        let filled = ContinuousClock().now
        try world.fill()
        print("\(records) records twice in \(ContinuousClock().now - filled)\n")
        print(row("query", "store us", "hand us", "ratio", "records"))
        for question in BenchmarkQuestion.all(page: page) where only.isEmpty || question.title.contains(only) {
            try measure(question, world)
        }
    }

    private func measure(_ question: BenchmarkQuestion, _ world: BenchmarkWorld) throws {
        let (ours, handWritten, explanation) = try world.queue.read { db in
            let request = RecordQuery(
                zone: BenchmarkWorld.zone, schemaVersion: 1, caller: BenchmarkWorld.caller, query: question.query,
                limit: page, explains: explain)
            guard case .found(let found) = try RecordReads(world.tables, in: db).query(request) else {
                throw ValidationError("refused: \(question.title)")
            }
            let expected = try question.handWritten(db)
            guard found.records.count == expected.count, question.isUnordered || found.records.map(\.name) == expected
            else {
                throw ValidationError("\(question.title): \(found.records.count) records, by hand \(expected.count)")
            }
            let ours = try median { _ = try RecordReads(world.tables, in: db).query(request) }
            let handWritten = try median { _ = try question.handWritten(db) }
            return ((ours, found.records.count), handWritten, found.explanation)
        }
        print(
            row(
                question.title, String(format: "%.0f", ours.0), String(format: "%.0f", handWritten),
                String(format: "%.2f", ours.0 / handWritten), "\(ours.1)"))
        if let explanation {
            print("    \(explanation.driver); \(explanation.entriesExamined) entries, \(explanation.recordsRead) read")
        }
    }

    /// Microseconds of this thread's CPU, so that what else the machine does counts little.
    private func median(_ body: () throws -> Void) throws -> Double {
        var times: [Double] = []
        for _ in 0..<rounds {
            let start = Self.processorTime()
            try body()
            times.append(Self.processorTime() - start)
        }
        return times.sorted()[rounds / 2]
    }

    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }

    private func row(_ title: String, _ columns: String...) -> String {
        title.padding(toLength: 58, withPad: " ", startingAt: 0)
            + columns.map { String(repeating: " ", count: max(0, 10 - $0.count)) + $0 }.joined()
    }
}
