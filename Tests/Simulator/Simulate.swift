import ArgumentParser
import Foundation
import Simulation

/// Runs whole clusters in virtual time, one from each seed, and looks for what should never be.
@main
struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Runs simulated clusters under faults and checks what their clients saw.",
        discussion: """
            Each seed is a cluster of its own: production's nodes on simulated clocks, disks and network. A seed that fails is \
            named with the command that replays it. Exits with 1 if one did.
            """)

    @Option(help: "How many seeds to run.")
    var seeds: UInt64 = 20

    @Option(help: "The first seed.")
    var first: UInt64 = 1

    @Option(help: "Stop after this many minutes, however many seeds were run.")
    var minutes: Double?

    @Option(help: "How many processes run seeds at a time.")
    var processes: Int = 2

    @Option(help: "Run this one seed, in this process.")
    var seed: UInt64?

    @Flag(help: "With --seed: tell what happens, line by line.")
    var trace = false

    @Option(help: "Where simulated nodes keep their files; best in memory.")
    var folder: String = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()

    @Option(help: "Simulated seconds of faults in each seed; otherwise the seed decides.")
    var seconds: UInt64?

    @Flag(help: "Have records have files in every seed, not in some; which makes another run of each seed.")
    var assets = false

    @Flag(help: "In a build with planted faults: run seeds against each until it is caught.")
    var mutants = false

    @Option(help: "With --mutants: only this fault, by its number.")
    var planted: Int?

    @Option(help: "With --mutants: of the seeds, how many to run at most against each fault.")
    var tries: Int = 8

    @Option(help: "With --mutants: only so many faults, chosen at random.")
    var sample: Int?

    @Option(help: "With --mutants: a file that keeps what is found. A run goes on where another ended.")
    var results: String?

    @Option(help: ArgumentHelp("Plant the faults into a copy of the package.", valueName: "package"))
    var plantInto: String?

    @Flag(help: .hidden)
    var isChild = false

    @Flag(help: .hidden)
    var stopsAtViolation = false

    @Option(help: .hidden)
    var cpuSecondsMax: UInt64?

    func run() throws {
        hashDeterministically()
        if let plantInto {
            let planter = try Planter { try String(contentsOfFile: "\(plantInto)/Sources/\($0)", encoding: .utf8) }
            say("planted \(Mutant.all.count) faults in \(try planter.write(to: plantInto).joined(separator: ", "))")
        } else if let seed {
            try replay(seed)
        } else if mutants, !isChild {
            var hunt = MutantHunt(command: self)
            try hunt.run()
        } else if isChild {
            runChild()
        } else {
            try Swarm(command: self).run()
        }
    }

    /// Begins anew with sets and dictionaries in the same order in every process. What runs must not depend on that
    /// order; where it does all the same, a seed still replays.
    private func hashDeterministically() {
        let name = "SWIFT_DETERMINISTIC_HASHING"
        guard ProcessInfo.processInfo.environment[name] == nil else { return }
        setenv(name, "1", 1)
        let arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        execv("/proc/self/exe", arguments)
        // Where that fails the seeds run nevertheless.
    }

    private func simulation(_ seed: UInt64) -> Simulation {
        let place = "\(folder)/simulate-\(ProcessInfo.processInfo.processIdentifier)"
        return Simulation(seed: seed, folder: place) { options in
            if let seconds { options.seconds = seconds }
            if assets { options.requireAssets() }
            options.stopsAtViolation = stopsAtViolation
        }
    }

    private func replay(_ seed: UInt64) throws {
        let simulation = simulation(seed)
        if trace { simulation.narrate { say($0) } }
        let began = Date()
        let report = simulation.run()
        say("\(Summary(of: [report], cpuSeconds: Date().timeIntervalSince(began)))")
        for violation in report.violations { say("VIOLATION \(violation)") }
        say("trace \(String(report.trace, radix: 16))")
        cleanUp()
        if !report.violations.isEmpty { throw ExitCode(1) }
    }

    /// Says of each seed that it begins and what came of it, so that the parent knows which one ended the process.
    private func runChild() {
        let encoder = JSONEncoder()
        // A process that never ends is ended.
        if let cpuSecondsMax {
            var limit = rlimit(rlim_cur: rlim_t(cpuSecondsMax), rlim_max: rlim_t(cpuSecondsMax))
            setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit)
        }
        for seed in first..<(first + seeds) {
            say("begin \(seed)")
            let report = simulation(seed).run()
            if let text = try? encoder.encode(report) { say("report \(String(decoding: text, as: UTF8.self))") }
        }
        cleanUp()
    }

    private func cleanUp() {
        try? FileManager.default.removeItem(
            atPath: "\(folder)/simulate-\(ProcessInfo.processInfo.processIdentifier)")
    }
}

/// Prints a line at once, wherever the output goes.
func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
