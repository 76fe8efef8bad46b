import Foundation

/// What the machine's processors did since it was started, from `/proc/stat`.
struct MachineTime: Hashable, Sendable {
    var idle: Double
    var total: Double

    static func read() -> MachineTime? {
        guard let text = try? String(contentsOfFile: "/proc/stat", encoding: .utf8) else { return nil }
        return MachineTime(stat: text)
    }

    /// - Returns: nil where the text does not begin with the line of all processors.
    init?(stat text: String) {
        let words = text.prefix { $0 != "\n" }.split(separator: " ")
        // user nice system idle iowait irq softirq steal; what follows is counted in user already.
        let ticks = words.dropFirst().prefix(8).compactMap { Double($0) }
        guard words.first == "cpu", ticks.count >= 5 else { return nil }
        idle = ticks[3] + ticks[4]
        total = ticks.reduce(0, +)
    }

    static func idleShare(from first: MachineTime?, to second: MachineTime?) -> Double? {
        guard let first, let second, second.total > first.total else { return nil }
        return min(1, max(0, (second.idle - first.idle) / (second.total - first.total)))
    }
}
