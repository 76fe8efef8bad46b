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
    var diskCalls: UInt64 = 0
    var faults: [String: Int] = [:]
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
        diskCalls += report.diskCalls
        faults.merge(report.faults, uniquingKeysWith: +)
    }

    private var faultCount: Int { faults.values.reduce(0, +) }

    var description: String {
        let kinds = faults.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        return """
            \(seeds) seeds, \(number(seconds / 86_400, 3)) simulated days, \(number(seconds / max(cpuSeconds, 0.001), 0)) \
            simulated seconds a second
            \(operations) operations checked (\(number(Double(operations) / max(seconds, 1), 2)) a second), \(unknown) of \
            unknown outcome
            \(faultCount) faults (\(number(Double(faultCount) * 60 / max(seconds, 1), 1)) a minute): \(kinds)
            \(events) events, \(messages) Raft messages, \(elections) reigns, \(transfers) transfers
            """
    }

    private func number(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }
}
