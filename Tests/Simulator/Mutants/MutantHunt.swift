import ArgumentParser
import Foundation
import Simulation

/// Runs seeds against each planted fault until one fails, and says how soon.
struct MutantHunt {
    let command: Simulate

    /// What the hunt for one fault came to.
    private struct Catch {
        var seed: UInt64?
        var seeds = 0
        /// Of these, seeds in which something else happened than without the fault.
        var affected = 0
        var traces: [UInt64: UInt64] = [:]
        var seconds = 0.0
        var reason = ""
    }

    func run() throws {
        say("without a fault:")
        let sound = try hunt(0, seedsMax: min(command.seeds, 20), sound: [:])
        guard sound.seed == nil else {
            say("  seed \(sound.seed ?? 0) fails by itself: \(sound.reason)")
            throw ExitCode(1)
        }
        say("  \(sound.seeds) seeds, no violation")
        var (found, missed, hidden, idle) = (0, 0, 0, 0)
        for (place, mutant) in Mutant.all.enumerated() {
            guard command.planted == nil || command.planted == place + 1 else { continue }
            let caught = try hunt(place + 1, seedsMax: command.seeds, sound: sound.traces)
            let hours = String(format: "%.1f", caught.seconds / 3_600)
            if let seed = caught.seed {
                say("\(place + 1) \(mutant.name): caught by seed \(seed), after \(hours) simulated hours")
                say("    \(caught.reason.split(separator: "\n").first.map { String($0.prefix(160)) } ?? "")")
                found += 1
            } else if let reason = mutant.hiddenBy {
                say("\(place + 1) \(mutant.name): hidden from \(caught.seeds) seeds, \(hours) simulated hours,")
                say("    as \(reason)")
                hidden += 1
            } else {
                let share = "\(caught.affected) of \(min(caught.seeds, sound.seeds))"
                say("\(place + 1) \(mutant.name): NOT CAUGHT by \(caught.seeds) seeds, \(hours) simulated hours;")
                say("    \(share) went another way with it")
                missed += 1
                if caught.affected == 0 { idle += 1 }
            }
        }
        say("\(found) of \(found + missed) planted faults caught; \(hidden) more are hidden, as is known")
        say("\(idle) of the \(missed) that were not caught changed nothing in any seed")
        if missed > 0 { throw ExitCode(1) }
    }

    /// - Parameter sound: the traces of seeds without a fault.
    private func hunt(_ number: Int, seedsMax: UInt64, sound: [UInt64: UInt64]) throws -> Catch {
        var result = Catch()
        var next = command.first
        let end = command.first + seedsMax
        var running: [Batch] = []
        while result.seed == nil {
            while running.count < max(1, command.processes), next < end {
                let seeds = next..<min(end, next + 5)
                next = seeds.upperBound
                running.append(
                    try Batch(
                        seeds, command: command, stopsAtFailure: true, environment: [Planter.variable: "\(number)"]))
            }
            if running.isEmpty { break }
            note(running.removeFirst().wait(), in: &result, sound)
        }
        for batch in running { _ = batch.wait() }
        return result
    }

    private func note(_ batch: Batch.Result, in result: inout Catch, _ sound: [UInt64: UInt64]) {
        for report in batch.reports {
            result.seeds += 1
            result.seconds += report.seconds
            result.traces[report.seed] = report.trace
            if let trace = sound[report.seed], trace != report.trace { result.affected += 1 }
            if let violation = report.violations.first {
                result.seed = report.seed
                result.reason = violation
                return
            }
        }
        if let seed = batch.unfinished {
            result.seeds += 1
            result.seed = seed
            result.reason =
                "a check of its own: " + (batch.lastWords.first { $0.contains("rror") } ?? "the process ended")
        }
    }
}
