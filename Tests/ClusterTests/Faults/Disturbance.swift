import Foundation
import RaftCore
import TestSupport

/// What goes wrong in a live run, one thing after the other, drawn from a seed.
struct Disturbance {
    private enum Kind: String, CaseIterable {
        case kill, killTwo, killAll, pause, pauseTwo, isolate, silence, oneWay, bridge, flicker, fullDisk, wrongClock
        case fullDiskAndWrongClock
    }

    private let faults: FaultCluster
    /// What can happen on this machine, in the order in which each comes for the first time.
    private let kinds: [Kind]
    /// What the clients are answered meanwhile: things last for some requests.
    private let tally: AnswerTally
    /// Another tenant, who is to be served while two nodes are as ill as they may be.
    private let tenant: Tenant
    private var generator: SplitMix64
    /// How often each thing happened, by name.
    private(set) var counts: [String: Int] = [:]

    init(_ faults: FaultCluster, _ tally: AnswerTally, _ tenant: Tenant, seed: UInt64) {
        self.faults = faults
        self.tenant = tenant
        self.tally = tally
        generator = SplitMix64(seed: seed)
        kinds = Kind.allCases.filter { ![.fullDisk, .fullDiskAndWrongClock].contains($0) || faults.disk != nil }
            .shuffled(using: &generator)
    }

    /// Lets so many things go wrong, and more until a time, then heals, and waits until every node serves again.
    /// - Returns: how many it were.
    mutating func run(_ count: Int, until end: ContinuousClock.Instant) async throws -> Int {
        var done = 0
        while done < count || ContinuousClock.now < end {
            done += 1
            // Each thing once at least before chance decides.
            let next = kinds.first { counts[$0.rawValue] == nil }
            let kind = next ?? kinds.randomElement(using: &generator) ?? .kill
            counts[kind.rawValue, default: 0] += 1
            try await happen(kind)
            faults.heal()
            for id in faults.ids where faults.cluster.processes[id] == nil { try faults.start(id) }
            // Now and then the next thing comes before everyone is back.
            if roll(in: 0...3) > 0 { await awaitAll() }
            try await tally.awaitAnswers(roll(in: 20...200))
        }
        faults.heal()
        for id in faults.ids { try await faults.cluster.awaitReady(id) }
        return done
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
        case .pause: try await stop(Array(nodes.prefix(1)))
        case .pauseTwo: try await stop(Array(nodes.prefix(2)))
        case .isolate: try await separate(nodes, .cut)
        case .silence: try await separate(nodes, .silent)
        case .oneWay:
            for other in nodes.dropFirst() { faults.link(nodes[0], other)?.set(.silent) }
            try await tally.awaitAnswers(roll(in: 5...40))
        case .bridge:
            faults.set(.cut, between: nodes[0], and: nodes[1])
            try await tally.awaitAnswers(roll(in: 5...40))
        case .flicker:
            for _ in 0..<10 {
                faults.set(.cut, between: nodes[0], and: nodes[1])
                try await tally.awaitAnswers(roll(in: 1...5))
                faults.set(.passing, between: nodes[0], and: nodes[1])
                try await tally.awaitAnswers(roll(in: 1...5))
            }
        case .fullDisk:
            try faults.disk?.disk.fill()
            try await tally.awaitAnswers(roll(in: 40...200))
            // Whoever fills a disk often has the node started again.
            if let id = faults.disk?.id, roll(in: 0...1) == 0 {
                faults.cluster.kill(id)
                try faults.start(id)
                try await tally.awaitAnswers(roll(in: 5...40))
            }
        case .wrongClock: try await mistakeClock(of: nodes[0])
        case .fullDiskAndWrongClock:
            try faults.disk?.disk.fill()
            try await mistakeClock(of: nodes.first { $0 != faults.disk?.id } ?? nodes[0], isTenantServed: true)
        }
    }

    /// Starts a node with a clock that is three days ahead, until it has said so for a while; then with the right one.
    private mutating func mistakeClock(of id: Int, isTenantServed: Bool = false) async throws {
        faults.cluster.kill(id)
        try faults.start(id, clockSecondsAhead: 3 * 86_400)
        try await awaitState("node \(id) says that its clock is wrong") {
            "\(try await faults.client.get("/health/ready", node: id - 1).json)"
        } until: {
            $0.contains("clock")
        }
        if isTenantServed {
            let before = tenant.saved
            try await awaitTrue("another tenant is served by the third node") { tenant.saved > before + 5 }
        }
        try await tally.awaitAnswers(roll(in: 40...200))
        faults.cluster.kill(id)
        try faults.start(id)
    }

    private mutating func kill(_ ids: [Int]) async throws {
        for id in ids { faults.cluster.processes[id]?.signalKill() }
        for id in ids { faults.cluster.kill(id) }
        // Two go on; one alone says that it cannot; where all are gone nothing more comes.
        switch faults.ids.count - ids.count {
        case 2: try await tally.awaitAnswers(roll(in: 5...40))
        case 1: try await tally.awaitAnswers(roll(in: 1...5), of: "503")
        default: break
        }
        for id in ids { try faults.start(id) }
        try await tally.awaitAnswers(roll(in: 1...40))
    }

    private mutating func stop(_ ids: [Int]) async throws {
        for id in ids { faults.signal(id, SIGSTOP) }
        try await tally.awaitAnswers(ids.count == 1 ? roll(in: 5...40) : roll(in: 1...5))
        for id in ids { faults.signal(id, SIGCONT) }
    }

    /// The first node from the others.
    private mutating func separate(_ nodes: [Int], _ mode: FaultyLink.Mode) async throws {
        for other in nodes.dropFirst() { faults.set(mode, between: nodes[0], and: other) }
        try await tally.awaitAnswers(roll(in: 5...40))
    }
}
