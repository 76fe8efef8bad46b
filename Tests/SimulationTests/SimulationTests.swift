import Foundation
import RaftCore
import Simulation
import Testing

/// Whole clusters under faults, with virtual time. `scripts/simulate` runs more of them, and faster.
@Suite("Simulated clusters keep what they acknowledged", .serialized)
struct SimulationTests {
    private static let folder =
        (FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory())
        + "/simulation-tests-\(ProcessInfo.processInfo.processIdentifier)"

    @Test(
        "What clients are told could have come from one machine, whatever fails meanwhile",
        arguments: 1...6 as ClosedRange<UInt64>
    )
    func seed(_ seed: UInt64) {
        let simulation = Simulation(seed: seed, folder: Self.folder) { $0.seconds = 120 }
        let report = simulation.run()
        #expect(report.violations == [], "scripts/simulate --seed \(seed) --seconds 120 --trace")
        // What never happens is not tested.
        #expect(report.operations > 60 && report.faultCount > 1 && report.elections > 2, "\(report)")
        #expect(report.unknown <= report.operations / 10, "\(report)")
    }

    @Test("The same seed gives the same run, another one another")
    func deterministic() {
        let traces = [21, 21, 22].map { seed in
            Simulation(seed: seed, folder: Self.folder) { $0.seconds = 60 }.run().trace
        }
        #expect(traces[0] == traces[1] && traces[0] != traces[2])
    }
}
