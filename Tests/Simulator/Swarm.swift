import ArgumentParser
import Foundation
import Simulation

/// Runs many seeds in processes of their own, so that one that ends its process is known by its number and takes nothing along.
final class Swarm {
    private let command: Simulate
    private var summary = Summary(cpuSeconds: 0)
    private var failures: [(seed: UInt64, reasons: [String])] = []
    private var next: UInt64
    private let deadline: Date
    private let began = Date()

    /// Seeds of one process.
    private static let batch: UInt64 = 25
    /// Failing seeds after which no more are run.
    private static let failuresMax = 20

    init(command: Simulate) {
        self.command = command
        next = command.first
        deadline = command.minutes.map { Date(timeIntervalSinceNow: $0 * 60) } ?? .distantFuture
    }

    func run() throws {
        var running: [Batch] = []
        while true {
            while running.count < max(1, command.processes), let seeds = takeSeeds() {
                running.append(try Batch(seeds, command: command))
            }
            if running.isEmpty { break }
            let batch = running.removeFirst()
            finish(batch)
        }
        summary.cpuSeconds = Date().timeIntervalSince(began)
        say("\(summary)")
        for failure in failures {
            say("FAILED seed \(failure.seed): scripts/simulate --seed \(failure.seed) --trace")
            for reason in failure.reasons.prefix(3) { say("  \(reason)") }
        }
        if !failures.isEmpty { throw ExitCode(1) }
        say("0 violations")
    }

    private func takeSeeds() -> Range<UInt64>? {
        let end = command.first + command.seeds
        guard next < end, Date() < deadline, failures.count < Self.failuresMax else { return nil }
        let seeds = next..<min(end, next + Self.batch)
        next = seeds.upperBound
        return seeds
    }

    private func finish(_ batch: Batch) {
        let result = batch.wait()
        for report in result.reports {
            summary.add(report)
            if !report.violations.isEmpty { fail(report.seed, report.violations) }
        }
        if let seed = result.unfinished {
            fail(seed, ["the process ended in the middle of it:"] + result.lastWords)
            // The seeds behind it have not run.
            let rest = seed + 1..<batch.seeds.upperBound
            if !rest.isEmpty, Date() < deadline, failures.count < Self.failuresMax,
                let again = try? Batch(rest, command: command)
            {
                finish(again)
            }
        }
    }

    private func fail(_ seed: UInt64, _ reasons: [String]) {
        failures.append((seed, reasons))
        say("seed \(seed) FAILED: \(reasons.first ?? "")")
    }
}

/// A process that runs some seeds.
final class Batch {
    let seeds: Range<UInt64>
    private let process = Process()
    private let output = Pipe()
    private let errorPath: String

    /// What a process said.
    struct Result {
        var reports: [SimulationReport] = []
        /// The seed that it was at when it ended by itself.
        var unfinished: UInt64?
        var lastWords: [String] = []
    }

    /// - Parameters:
    ///   - stopsAtFailure: whether the seeds behind one that failed are left out.
    ///   - environment: what the process finds in its environment beside what this one has.
    init(
        _ seeds: Range<UInt64>, command: Simulate, stopsAtFailure: Bool = false, environment: [String: String] = [:]
    ) throws {
        self.seeds = seeds
        errorPath = "\(command.folder)/simulate-errors-\(ProcessInfo.processInfo.processIdentifier)-\(seeds.lowerBound)"
        _ = FileManager.default.createFile(atPath: errorPath, contents: nil)
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments =
            ["--is-child", "--first", "\(seeds.lowerBound)", "--seeds", "\(seeds.count)", "--folder", command.folder]
            + (command.seconds.map { ["--seconds", "\($0)"] } ?? []) + (stopsAtFailure ? ["--stops-at-failure"] : [])
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardOutput = output
        process.standardError = FileHandle(forWritingAtPath: errorPath)
        try process.run()
    }

    func wait() -> Result {
        var result = Result()
        var begun: UInt64?
        let said = output.fileHandleForReading.readDataToEndOfFile()
        for line in String(decoding: said, as: UTF8.self).split(separator: "\n") {
            if line.hasPrefix("begin "), let seed = UInt64(line.dropFirst(6)) { begun = seed }
            if line.hasPrefix("report "),
                let report = try? JSONDecoder().decode(SimulationReport.self, from: Data(line.dropFirst(7).utf8))
            {
                result.reports.append(report)
                begun = nil
            }
        }
        process.waitUntilExit()
        if process.terminationStatus != 0 || process.terminationReason == .uncaughtSignal {
            result.unfinished = begun ?? seeds.lowerBound
            let words = (try? String(contentsOfFile: errorPath, encoding: .utf8)) ?? ""
            result.lastWords = words.split(separator: "\n").prefix(8).map(String.init)
        }
        try? FileManager.default.removeItem(atPath: errorPath)
        try? FileManager.default.removeItem(
            atPath: "\(URL(filePath: errorPath).deletingLastPathComponent().path)/simulate-\(process.processIdentifier)"
        )
        return result
    }
}
