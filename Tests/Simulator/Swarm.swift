import ArgumentParser
import Foundation
import Simulation
import Synchronization

/// Runs many seeds in processes of their own, so that one that ends its process is known by its number and takes
/// nothing along.
final class Swarm: Sendable {
    private let command: Simulate
    private let deadline: Date
    private let began = Date()
    private let state: Mutex<State>
    /// One process is begun at a time: it would keep open what is open for another one just then.
    private let beginning = Mutex(())

    /// What the threads, one for each process that runs, have in common.
    private struct State {
        var next: UInt64
        var summary = Summary(cpuSeconds: 0)
        var failures: [(seed: UInt64, reasons: [String])] = []
        /// What kept a process from being begun.
        var problem: (any Error)?
    }

    /// Seeds of one process.
    private static let batch: UInt64 = 25
    /// Failing seeds after which no more are run.
    private static let failuresMax = 20

    init(command: Simulate) {
        self.command = command
        state = Mutex(State(next: command.first))
        deadline = command.minutes.map { Date(timeIntervalSinceNow: $0 * 60) } ?? .distantFuture
    }

    func run() throws {
        let running = DispatchGroup()
        for _ in 0..<max(1, command.processes) {
            running.enter()
            Thread {
                while let seeds = self.takeSeeds() { self.run(seeds) }
                running.leave()
            }.start()
        }
        running.wait()
        let state = state.withLock(\.self)
        var summary = state.summary
        summary.cpuSeconds = Date().timeIntervalSince(began)
        say("\(summary)")
        for failure in state.failures {
            say("FAILED seed \(failure.seed): scripts/simulate --seed \(failure.seed) --trace")
            for reason in failure.reasons.prefix(3) { say("  \(reason)") }
        }
        if let problem = state.problem { throw problem }
        let shortfalls = summary.shortfalls
        for shortfall in shortfalls { say("TOO LITTLE \(shortfall)") }
        if !state.failures.isEmpty || !shortfalls.isEmpty { throw ExitCode(1) }
        say("0 violations")
    }

    private func takeSeeds() -> Range<UInt64>? {
        state.withLock { state in
            let end = command.first + command.seeds
            guard state.next < end, goesOn(state) else { return nil }
            let seeds = state.next..<min(end, state.next + Self.batch)
            state.next = seeds.upperBound
            return seeds
        }
    }

    private func goesOn(_ state: borrowing State) -> Bool {
        Date() < deadline && state.failures.count < Self.failuresMax && state.problem == nil
    }

    /// Runs seeds to their end, in a new process behind each one that ends its process.
    private func run(_ seeds: Range<UInt64>) {
        var rest = seeds
        while !rest.isEmpty {
            do {
                let batch = try beginning.withLock { _ in try Batch(rest, command: command) }
                let result = batch.wait()
                rest = state.withLock { state in
                    for report in result.reports {
                        state.summary.add(report)
                        if !report.violations.isEmpty { fail(report.seed, report.violations, in: &state) }
                    }
                    guard let seed = result.unfinished else { return rest.upperBound..<rest.upperBound }
                    fail(seed, ["the process ended in the middle of it:"] + result.lastWords, in: &state)
                    return goesOn(state) ? seed + 1..<rest.upperBound : rest.upperBound..<rest.upperBound
                }
            } catch {
                return state.withLock { $0.problem = error }
            }
        }
    }

    private func fail(_ seed: UInt64, _ reasons: [String], in state: inout State) {
        state.failures.append((seed, reasons))
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
        /// The planted faults that would have made a difference, where it says so, with how many lines it said of each.
        var reached: [Int: Int] = [:]
    }

    /// - Parameters:
    ///   - cpuSecondsMax: after which the process is ended.
    ///   - stopsAtViolation: whether a seed ends with the first violation.
    ///   - environment: what the process finds in its environment beside what this one has.
    init(
        _ seeds: Range<UInt64>, command: Simulate, cpuSecondsMax: UInt64? = nil, stopsAtViolation: Bool = false,
        environment: [String: String] = [:]
    ) throws {
        self.seeds = seeds
        errorPath = "\(command.folder)/simulate-errors-\(ProcessInfo.processInfo.processIdentifier)-\(seeds.lowerBound)"
        _ = FileManager.default.createFile(atPath: errorPath, contents: nil)
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments =
            ["--is-child", "--first", "\(seeds.lowerBound)", "--seeds", "\(seeds.count)", "--folder", command.folder]
            + (stopsAtViolation ? ["--stops-at-violation"] : [])
            + (command.seconds.map { ["--seconds", "\($0)"] } ?? [])
            + (cpuSecondsMax.map { ["--cpu-seconds-max", "\($0)"] } ?? [])
            + (command.assets ? ["--assets"] : [])
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
            if line.hasPrefix(Planter.reached), let fault = Int(line.dropFirst(Planter.reached.count)) {
                result.reached[fault, default: 0] += 1
            }
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
