/// What one seed came to.
package struct SimulationReport: Sendable, Codable {
    package var seed: UInt64
    /// Virtual time, in seconds.
    package var seconds: Double = 0
    package var events: UInt64 = 0
    /// Requests of clients that were answered, and judged.
    package var operations = 0
    /// Requests whose outcome nobody learnt.
    package var unknown = 0
    package var messages: UInt64 = 0
    package var elections = 0
    package var transfers = 0
    /// How often each situation was met, by name.
    package var situations: [String: Int] = [:]
    /// How often each kind of fault happened, by name.
    package var faults: [String: Int] = [:]
    /// What should not have been; empty if all is well.
    package var violations: [String] = []
    /// The same for every run of the seed.
    package var trace: UInt64 = 0

    init(seed: UInt64) { self.seed = seed }

    package var faultCount: Int { faults.values.reduce(0, +) }
}
