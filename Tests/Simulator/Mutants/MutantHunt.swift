import ArgumentParser
import Foundation
import Simulation

/// Runs seeds against planted faults until each is caught, and says how soon and by what.
///
/// Seeds without a fault come first: they say in which each fault would make a difference, and what happens without it.
/// A fault is tried with these seeds only, first with those in which it matters most often.
struct MutantHunt {
    let command: Simulate
    /// No sound seed takes nearly as long.
    private static let cpuSecondsMax: UInt64 = 300
    private var sound: [UInt64: Sound] = [:]
    private var findings: [String: Finding] = [:]
    /// Seeds that show a violation without a fault.
    private var failed: [UInt64] = []

    /// A seed without a fault.
    private struct Sound: Codable {
        var report: SimulationReport
        /// In which faults would make a difference, and about how often: 1 for once, 2 for twice, 3 for four times.
        var reached: [Int: Int]
    }

    /// What the hunt for one fault came to.
    private struct Finding: Codable {
        var name: String
        var outcome = Outcome.unreached
        /// The seed that caught it.
        var seed: UInt64?
        var reason = ""
        /// Seeds that were run with it, and of these those that went another way than without it.
        var seeds: [UInt64] = []
        var affected = 0
        var hours = 0.0
    }

    private enum Outcome: String, Codable, CaseIterable {
        case caught
        /// Something happened that does not happen without the fault, and no check failed.
        case missed
        /// It came into play, and all went as without it.
        case idle
        /// In no seed would it make a difference.
        case unreached
    }

    /// A line of the file that keeps what was found.
    private enum Line: Codable {
        case sound(Sound)
        case finding(Finding)
    }

    init(command: Simulate) { self.command = command }

    mutating func run() throws {
        try readResults()
        try runSound()
        for (place, mutant) in chosen() {
            let before = findings[mutant.name]
            guard before?.outcome != .caught else { continue }
            let finding = try hunt(place + 1, before ?? Finding(name: mutant.name))
            guard before?.seeds != finding.seeds else { continue }
            try keep(.finding(finding))
            findings[mutant.name] = finding
            say(row(place, mutant, finding))
        }
        try summarize()
    }

    /// The faults of this run, by their places.
    private func chosen() -> [(Int, Mutant)] {
        var all = Array(Mutant.all.enumerated().map { ($0.offset, $0.element) })
        if let planted = command.planted { all = all.filter { $0.0 + 1 == planted } }
        guard let sample = command.sample else { return all }
        // What was begun is gone on with.
        let begun = all.filter { findings[$0.1.name] != nil }
        let rest = all.filter { findings[$0.1.name] == nil }.shuffled()
        return (begun + rest.prefix(max(0, sample - begun.count))).sorted { $0.0 < $1.0 }
    }

    private mutating func runSound() throws {
        var next = command.first
        let end = command.first + command.seeds
        var running: [Batch] = []
        while true {
            while running.count < max(1, command.processes), next < end {
                if sound[next] == nil { running.append(try begin(next, with: 0)) }
                next += 1
            }
            if running.isEmpty { return }
            let result = running.removeFirst().wait()
            guard let report = result.reports.first, report.violations.isEmpty else {
                let seed = result.reports.first?.seed ?? result.unfinished ?? 0
                say("seed \(seed) fails without a fault, and is not used: \(reason(result))")
                failed.append(seed)
                continue
            }
            let seed = Sound(report: report, reached: result.reached)
            sound[report.seed] = seed
            try keep(.sound(seed))
        }
    }

    private func begin(_ seed: UInt64, with fault: Int) throws -> Batch {
        try Batch(
            seed..<seed + 1, command: command, cpuSecondsMax: Self.cpuSecondsMax, stopsAtViolation: fault != 0,
            environment: [Planter.variable: "\(fault)"])
    }

    /// Goes on with seeds that were not tried yet.
    private func hunt(_ number: Int, _ before: Finding) throws -> Finding {
        var finding = before
        var seeds = sound.values.filter { $0.reached[number] != nil && !before.seeds.contains($0.report.seed) }
            .sorted { ($1.reached[number] ?? 0, $0.report.seed) < ($0.reached[number] ?? 0, $1.report.seed) }
            .map(\.report.seed).prefix(max(0, command.tries - before.seeds.count))
        if !seeds.isEmpty, finding.outcome == .unreached { finding.outcome = .idle }
        var running: [Batch] = []
        while finding.outcome != .caught {
            while running.count < max(1, command.processes), let seed = seeds.popFirst() {
                running.append(try begin(seed, with: number))
            }
            if running.isEmpty { break }
            let batch = running.removeFirst()
            note(batch.wait(), of: batch.seeds.lowerBound, in: &finding)
        }
        for batch in running { _ = batch.wait() }
        return finding
    }

    private func note(_ result: Batch.Result, of seed: UInt64, in finding: inout Finding) {
        finding.seeds.append(seed)
        finding.hours += (result.reports.first?.seconds ?? 0) / 3_600
        if let report = result.reports.first, report.violations.isEmpty {
            guard report.trace != sound[seed]?.report.trace else { return }
            finding.affected += 1
            finding.outcome = .missed
        } else {
            finding.outcome = .caught
            finding.seed = seed
            finding.reason = reason(result)
        }
    }

    private func reason(_ result: Batch.Result) -> String {
        let text =
            result.reports.first?.violations.first
            ?? "the process ended: \(result.lastWords.first { $0.contains("rror") } ?? "without a word")"
        return String(text.prefix { $0 != "\n" })
    }

    // MARK: Results

    private mutating func readResults() throws {
        guard let path = command.results, let data = FileManager.default.contents(atPath: path) else { return }
        for line in data.split(separator: UInt8(ascii: "\n")) {
            switch try JSONDecoder().decode(Line.self, from: line) {
            case .sound(let seed): sound[seed.report.seed] = seed
            case .finding(let finding): findings[finding.name] = finding
            }
        }
    }

    private func keep(_ line: Line) throws {
        guard let path = command.results else { return }
        if !FileManager.default.fileExists(atPath: path) {
            _ = FileManager.default.createFile(atPath: path, contents: nil)
        }
        guard let file = FileHandle(forWritingAtPath: path) else { throw ValidationError("\(path) cannot be written") }
        defer { try? file.close() }
        try file.seekToEnd()
        try file.write(contentsOf: try JSONEncoder().encode(line) + Data("\n".utf8))
    }

    private func row(_ place: Int, _ mutant: Mutant, _ finding: Finding) -> String {
        let what =
            switch finding.outcome {
            case .caught:
                "seed \(finding.seed ?? 0), \(finding.seeds.count) run, \(Checker(of: finding.reason).rawValue): \(finding.reason)"
            case .missed: "\(finding.affected) of \(finding.seeds.count) seeds went another way"
            case .idle: "\(finding.seeds.count) seeds went as without it"
            case .unreached: "makes no difference in any of \(sound.count) seeds"
            }
        let hidden = finding.outcome == .caught ? "" : mutant.hiddenBy.map { "; hidden, as \($0)" } ?? ""
        return "\(place + 1)\t\(finding.outcome.rawValue)\t\(mutant.name)\t\(String((what + hidden).prefix(240)))"
    }

    private func summarize() throws {
        var counts: [Outcome: Int] = [:]
        var checkers: [Checker: Int] = [:]
        var (hidden, hours) = (0, 0.0)
        say("")
        for (place, mutant) in Mutant.all.enumerated() {
            guard let finding = findings[mutant.name] else { continue }
            say(row(place, mutant, finding))
            hours += finding.hours
            if finding.outcome == .caught {
                checkers[Checker(of: finding.reason), default: 0] += 1
            } else if mutant.hiddenBy != nil {
                hidden += 1
                continue
            }
            counts[finding.outcome, default: 0] += 1
        }
        let all = counts.values.reduce(0, +)
        say("")
        for outcome in Outcome.allCases { say("\(counts[outcome] ?? 0) of \(all) \(outcome.rawValue)") }
        say("\(hidden) more are hidden by another defence, as is known")
        say("\(String(format: "%.1f", hours)) simulated hours with a fault")
        for (checker, count) in checkers.sorted(by: { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }) {
            say("\(count) caught by: \(checker.rawValue)")
        }
        say("\nwithout a fault:\n\(Summary(of: sound.values.map(\.report), cpuSeconds: 0))")
        if !failed.isEmpty { say("\(failed) failed without a fault") }
        if !failed.isEmpty || counts[.caught] ?? 0 < all { throw ExitCode(1) }
    }
}

/// What finds violations, told by its words.
private enum Checker: String {
    case process = "a check in the production code"
    case history = "histories of zones and stores"
    case answers = "answers that no client may get"
    case tags = "one content a change tag"
    case raft = "Raft's promises"
    case hashes = "hashes of replicas"
    case alarms = "errors and ends without a cause"
    case liveness = "liveness once all is mended"
    case rates = "rates"
    case quotas = "quotas"
    case notebooks = "what one client alone wrote"
    case sessions = "sessions"
    case directory = "what a node may rely on"
    case clocks = "times of commands"
    case others = "others"

    private static let words: [(String, Checker)] = [
        ("the process ended", .process), ("zone ", .history), ("store ", .history), ("requests more than", .rates),
        ("in its zone", .notebooks),
        ("usage", .quotas), ("session", .sessions), ("relies on a directory", .directory),
        ("time of a wrong clock", .clocks), ("hold different states", .hashes), ("altered", .hashes),
        ("without a cause", .alarms), (" ends: ", .alarms), ("does not serve", .alarms), ("do not come", .liveness),
        ("does not come back", .liveness), ("no answer", .liveness), ("do not answer", .liveness),
        ("does not end", .liveness), ("both lead", .raft), ("voted for", .raft), ("without a pre-vote", .raft),
        ("another entry at", .raft), ("has spoken in term", .raft), ("which leads term", .raft),
        ("whose log ends at", .raft), ("after a restart", .raft), ("in a restart", .raft), ("was answered", .answers),
        ("was refused", .answers), (" and was ", .tags),
    ]

    init(of reason: String) {
        let found = Self.words.first { words, checker in
            checker == .history || checker == .process ? reason.hasPrefix(words) : reason.contains(words)
        }
        self = found?.1 ?? .others
    }
}
