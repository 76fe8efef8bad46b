import Foundation
import Glibc
import NIOCore
import NIOHTTP1

/// Reads the nodes' counters and this process's CPU time before and after a run.
struct LoadMeter: Sendable {
    let client: LoadClient
    let administrator: String?

    /// What was counted up to one moment.
    struct Reading: Sendable {
        var nodes: Result<[NodeCounters], CommandFailure>
        var generatorCPUSeconds: Double
    }

    /// That counters cannot be read is no reason not to run: the reading says why.
    func read() async -> Reading {
        let seconds = Self.cpuSeconds()
        do throws(CommandFailure) {
            return Reading(nodes: .success(try await counters()), generatorCPUSeconds: seconds)
        } catch {
            return Reading(nodes: .failure(error), generatorCPUSeconds: seconds)
        }
    }

    /// Reads again.
    /// - Returns: what was spent since the reading before.
    func read(since before: Reading) async -> (cost: LoadReport.Cost, generatorCPUSeconds: Double) {
        let after = await read()
        let seconds = after.generatorCPUSeconds - before.generatorCPUSeconds
        switch (before.nodes, after.nodes) {
        case (.success(let first), .success(let second)):
            guard let cost = ClusterCost(before: first, after: second) else {
                return (.unknown("a node was started anew during the run"), seconds)
            }
            return (.measured(cost, nodes: first.count), seconds)
        case (.failure(let failure), _), (_, .failure(let failure)): return (.unknown(failure.message), seconds)
        }
    }

    private func counters() async throws(CommandFailure) -> [NodeCounters] {
        guard let administrator else {
            throw CommandFailure(
                "it takes the administrator's token: --admin-token-file or ZONEKEEPER_ADMIN_TOKEN_FILE")
        }
        var counters: [NodeCounters] = []
        for target in client.targets.indices {
            let base = client.targets[target].base
            let (status, body) = try await client.exchange(
                .GET, "/admin/1/metrics", target: target, bearer: administrator)
            guard status == 200 else { throw CommandFailure("\(base)/admin/1/metrics answered HTTP \(status)") }
            guard let node = NodeCounters(metrics: String(decoding: body.readableBytesView, as: UTF8.self)) else {
                throw CommandFailure("\(base)/admin/1/metrics has no counters of the log and the CPU")
            }
            counters.append(node)
        }
        return counters
    }

    /// User and system time of this process so far.
    private static func cpuSeconds() -> Double {
        // POSIX has a million of these in a second.
        Double(clock()) / 1_000_000
    }
}
