import Foundation
import RaftCore
import TestSupport

/// What goes wrong in a live run, one thing after the other, drawn from a seed.
struct Disturbance {
    private enum Kind: String, CaseIterable {
        case kill, killTwo, killAll, pause, pauseTwo, isolate, silence, oneWay, bridge, flicker
    }

    private let faults: FaultCluster
    private var generator: SplitMix64
    /// How often each thing happened, by name.
    private(set) var counts: [String: Int] = [:]

    init(_ faults: FaultCluster, seed: UInt64) {
        self.faults = faults
        generator = SplitMix64(seed: seed)
    }

    /// Disturbs until the time is over, then heals, and waits until every node serves again.
    mutating func run(until end: ContinuousClock.Instant) async throws {
        while ContinuousClock.now < end {
            // Each thing once at least before chance decides.
            let next = Kind.allCases.first { counts[$0.rawValue] == nil }
            let kind = next ?? Kind.allCases.randomElement(using: &generator) ?? .kill
            counts[kind.rawValue, default: 0] += 1
            try await happen(kind)
            faults.heal()
            for id in faults.ids where faults.cluster.processes[id] == nil { try faults.start(id) }
            // Now and then the next thing comes before everyone is back.
            if roll(in: 0...3) > 0 { await awaitAll() }
            await faults.pause(roll(in: 500...2_000))
        }
        faults.heal()
        for id in faults.ids { try await faults.cluster.awaitReady(id) }
    }

    private func awaitAll() async {
        for id in faults.ids { try? await faults.cluster.awaitReady(id) }
    }

    private mutating func roll(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

    private mutating func happen(_ kind: Kind) async throws {
        let nodes = faults.ids.shuffled(using: &generator)
        switch kind {
        case .kill: try await kill(Array(nodes.prefix(1)))
        case .killTwo: try await kill(Array(nodes.prefix(2)))
        case .killAll: try await kill(nodes)
        case .pause: await stop(Array(nodes.prefix(1)))
        case .pauseTwo: await stop(Array(nodes.prefix(2)))
        case .isolate: await separate(nodes, .cut)
        case .silence: await separate(nodes, .silent)
        case .oneWay:
            for other in nodes.dropFirst() { faults.link(nodes[0], other)?.set(.silent) }
            await faults.pause(roll(in: 500...4_000))
        case .bridge:
            faults.set(.cut, between: nodes[0], and: nodes[1])
            await faults.pause(roll(in: 500...4_000))
        case .flicker:
            for _ in 0..<10 {
                faults.set(.cut, between: nodes[0], and: nodes[1])
                await faults.pause(roll(in: 20...150))
                faults.set(.passing, between: nodes[0], and: nodes[1])
                await faults.pause(roll(in: 20...150))
            }
        }
    }

    private mutating func kill(_ ids: [Int]) async throws {
        for id in ids { faults.cluster.processes[id]?.signalKill() }
        for id in ids { faults.cluster.kill(id) }
        await faults.pause(roll(in: 50...2_500))
        for id in ids { try faults.start(id) }
        await faults.pause(roll(in: 0...2_000))
    }

    private mutating func stop(_ ids: [Int]) async {
        for id in ids { faults.signal(id, SIGSTOP) }
        await faults.pause(roll(in: 200...4_000))
        for id in ids { faults.signal(id, SIGCONT) }
    }

    /// The first node from the others.
    private mutating func separate(_ nodes: [Int], _ mode: FaultyLink.Mode) async {
        for other in nodes.dropFirst() { faults.set(mode, between: nodes[0], and: other) }
        await faults.pause(roll(in: 500...4_000))
    }
}
