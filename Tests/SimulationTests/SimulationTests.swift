import Foundation
import RaftCore
import Simulation
import Testing

/// Whole clusters under faults, with virtual time. `scripts/simulate` runs more of them, and faster.
@Suite("Simulated clusters keep what they acknowledged")
final class SimulationTests {
    private let folder =
        (FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory())
        + "/simulation-tests-\(UUID().uuidString)"

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    @Test(
        "What clients are told could have come from one machine, whatever fails meanwhile",
        arguments: 1...6 as ClosedRange<UInt64>
    )
    func seed(_ seed: UInt64) async {
        let report = await ownThread { [folder] in
            Simulation(seed: seed, folder: folder) { $0.seconds = 120 }.run()
        }
        #expect(report.violations == [], "scripts/simulate --seed \(seed) --seconds 120 --trace")
        // What never happens is not tested.
        #expect(report.operations > 30 && report.faultCount > 1 && report.elections > 2, "\(report)")
        #expect(report.unknown <= report.operations / 10, "\(report)")
    }

    /// Sets and dictionaries are in another order each time here, so a run that depends on it differs.
    @Test("The same seed gives the same run", arguments: [21, 22, 33, 40] as [UInt64])
    func deterministic(_ seed: UInt64) async {
        let (one, other) = await ownThread { [folder] in
            (Self.story(of: seed, seconds: 60, folder), Self.story(of: seed, seconds: 60, folder))
        }
        let first = zip(one.lines, other.lines).first { $0 != $1 }
        #expect(one.trace == other.trace, "\(first.map { "\($0)" } ?? "the same lines")")
    }

    @Test("Another seed gives another run")
    func different() async {
        let traces = await ownThread { [folder] in
            (1...4 as ClosedRange<UInt64>).map { Self.story(of: $0, seconds: 1, folder).trace }
        }
        #expect(Set(traces).count == traces.count)
    }

    /// Runs something in a thread of its own: in one of the few threads of tasks it would keep other tests waiting.
    private func ownThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            let thread = Thread { continuation.resume(returning: body()) }
            thread.stackSize = 8 << 20
            thread.start()
        }
    }

    private static func story(
        of seed: UInt64, seconds: UInt64, _ folder: String
    ) -> (lines: [String], trace: UInt64) {
        let simulation = Simulation(seed: seed, folder: folder) { $0.seconds = seconds }
        var lines: [String] = []
        simulation.narrate { lines.append($0) }
        return (lines, simulation.run().trace)
    }
}
