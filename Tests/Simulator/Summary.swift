import Foundation
import Simulation

/// What many seeds came to, in words.
struct Summary: CustomStringConvertible {
    var seeds = 0
    var seconds = 0.0
    var events: UInt64 = 0
    var operations = 0
    var unknown = 0
    var messages: UInt64 = 0
    var elections = 0
    var transfers = 0
    var faults: [String: Int] = [:]
    /// How often each situation was met, and by how many seeds.
    private var situations: [String: Int] = [:]
    private var seedsBySituation: [String: Int] = [:]
    var cpuSeconds: Double

    init(of reports: [SimulationReport] = [], cpuSeconds: Double) {
        self.cpuSeconds = cpuSeconds
        for report in reports { add(report) }
    }

    mutating func add(_ report: SimulationReport) {
        seeds += 1
        seconds += report.seconds
        events += report.events
        operations += report.operations
        unknown += report.unknown
        messages += report.messages
        elections += report.elections
        transfers += report.transfers
        situations.merge(report.situations, uniquingKeysWith: +)
        for name in report.situations.keys { seedsBySituation[name, default: 0] += 1 }
        faults.merge(report.faults, uniquingKeysWith: +)
    }

    /// Seeds that together must have met every situation.
    static let swarmMin = 100

    /// Requests that a seed must have had answered, on average.
    static let operationsMin = 300

    /// Where a swarm that is large enough tested too little.
    var shortfalls: [String] {
        if seeds < Self.swarmMin { return [] }
        let rare = Situation.allCases.compactMap { situation -> String? in
            let met = seedsBySituation[situation.rawValue] ?? 0
            let least = seeds * situation.seedsPerThousandMin / 1_000
            return met < least ? "\(situation.rawValue) was met in \(met) seeds instead of \(least)" : nil
        }
        let isIdle = operations < seeds * Self.operationsMin
        return rare + (isIdle ? ["\(operations) operations are fewer than \(Self.operationsMin) a seed"] : [])
    }

    private var speed: String {
        cpuSeconds > 0 ? ", \(number(seconds / cpuSeconds, 0)) simulated seconds a second" : ""
    }
    private var faultCount: Int { faults.values.reduce(0, +) }

    var description: String {
        let kinds = faults.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        let met = Situation.allCases.map { situation in
            "\(situation.rawValue) \(situations[situation.rawValue] ?? 0) in \(seedsBySituation[situation.rawValue] ?? 0)"
        }.joined(separator: ", ")
        return """
            \(seeds) seeds, \(number(seconds / 86_400, 3)) simulated days\(speed)
            \(operations) operations checked (\(number(Double(operations) / max(seconds, 1), 2)) a second), \(unknown) of \
            unknown outcome
            \(faultCount) faults (\(number(Double(faultCount) * 60 / max(seconds, 1), 1)) a minute): \(kinds)
            \(events) events, \(messages) Raft messages, \(elections) reigns, \(transfers) transfers
            met, and in how many seeds: \(met)
            """
    }

    private func number(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }
}
