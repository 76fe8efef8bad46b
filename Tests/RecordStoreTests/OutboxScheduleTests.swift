import GRDB
import RecordModel
import RecordStore
import Testing

/// From `FeatureLevel.exactNotifications` on nothing is lost between an outbox and its destination: what is removed was
/// applied, and what was applied is forgotten only together with all that is sent. So copies of subscriptions are
/// missing nowhere while clients are served, and there is no moment in which a change is told to nobody.
@Suite("Deliveries in any order")
struct OutboxScheduleTests {
    /// Two groups, and what is under way between them: senders that read long ago, answers that come late or twice.
    private struct Network {
        private enum Side { case home, shard }

        let pair: Pair
        var random: Random
        private var deliveries: [(to: Side, delivery: OutboxDelivery)] = []
        private var acknowledgements: [(at: Side, acknowledgement: OutboxAcknowledgement)] = []
        private var incarnation: UInt64 = 1
        private var serial = 0
        private(set) var restores = 0
        private(set) var refusals = 0
        private(set) var repeats = 0

        init(seed: UInt64) throws {
            pair = try Pair()
            random = Random(seed)
            try pair.shard.zone(.create, Fixture.work)
        }

        private func fixture(_ side: Side) -> Fixture { side == .home ? pair.home : pair.shard }
        private func group(of side: Side) -> UInt64 { side == .home ? Pair.homeGroup : Pair.shardGroup }
        private func other(_ side: Side) -> Side { side == .home ? .shard : .home }
        private mutating func anySide() -> Side { random.next() % 2 == 0 ? .home : .shard }

        mutating func step() throws {
            switch random.next() % 32 {
            case 0..<6: try change()
            case 6..<10: try subscribe()
            case 10..<17: try read()
            case 17..<24: try deliver()
            case 24..<31: try acknowledge()
            default: try restore()
            }
        }

        private mutating func change() throws {
            serial += 1
            _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "r\(serial)"))
        }

        private mutating func subscribe() throws {
            let name = "s\(random.next() % 4)"
            if random.next() % 3 == 0 {
                try pair.modify(.delete(.private, id: name))
            } else {
                serial += 1
                try pair.modify(
                    .save(Pair.subscription(name, zone: "zone\(serial)"), targets: [Pair.shardGroup]))
            }
        }

        private mutating func read() throws {
            let side = anySide()
            let (source, destination) = (group(of: side), group(of: other(side)))
            let bytesMax = random.next() % 2 == 0 ? 1 : OutboxDelivery.bytesMax
            let next = try fixture(side).queue.read {
                try WaitingEffects.nextDelivery(from: source, to: destination, bytesMax: bytesMax, in: $0)
            }
            if let next { deliveries.append((other(side), next)) }
        }

        private mutating func deliver() throws {
            guard !deliveries.isEmpty else { return }
            let index = Int(random.next() % UInt64(deliveries.count))
            let (side, delivery) = deliveries[index]
            // It may come once more.
            if random.next() % 3 > 0 { deliveries.remove(at: index) } else { repeats += 1 }
            try take(delivery, at: side)
        }

        private mutating func take(_ delivery: OutboxDelivery, at side: Side) throws {
            let receipt = try fixture(side).run { try $0.deliver(delivery) }
            #expect(!receipt.hasLost, "\(delivery.first) to \(delivery.last) of incarnation \(delivery.incarnation)")
            guard receipt.isTaken else { return refusals += 1 }
            acknowledgements.append(
                (
                    other(side),
                    OutboxAcknowledgement(
                        destination: group(of: side), incarnation: delivery.incarnation, through: delivery.last)
                ))
        }

        private mutating func acknowledge() throws {
            guard !acknowledgements.isEmpty else { return }
            let index = Int(random.next() % UInt64(acknowledgements.count))
            let (side, acknowledgement) = acknowledgements[index]
            if random.next() % 3 > 0 { acknowledgements.remove(at: index) } else { repeats += 1 }
            try fixture(side).run { try $0.acknowledge(acknowledgement) }
        }

        /// One group begins the next incarnation, and the other one later; what is under way meanwhile is of either.
        private mutating func restore() throws {
            incarnation += 1
            restores += 1
            let first = anySide()
            try begin(first)
            for _ in 0..<random.next() % 8 { if random.next() % 2 == 0 { try read() } else { try deliver() } }
            try begin(other(first))
        }

        private func begin(_ side: Side) throws {
            try fixture(side).queue.write { try RecordTables.startNewIncarnation(incarnation, in: $0) }
            try fixture(side).maintain(time: 1000)
        }

        /// Delivers all that waits, behind what is under way.
        mutating func finish() throws {
            while !deliveries.isEmpty { try deliver() }
            while !acknowledgements.isEmpty { try acknowledge() }
            try pair.deliverAll()
        }
    }

    @Test("nothing is missed, however often, late and by whomever it is sent", arguments: UInt64(1)...8)
    func schedule(_ seed: UInt64) throws {
        var network = try Network(seed: seed)
        for _ in 0..<300 { try network.step() }
        try network.finish()
        #expect(network.restores > 0 && network.refusals > 0 && network.repeats > 0)
        for side in [network.pair.home, network.pair.shard] {
            #expect(try side.count("SELECT losses FROM outbox_self") == 0)
            #expect(try side.count("SELECT count(*) FROM outbox") == 0)
        }
        let (subscriptions, copies) = (
            try network.pair.home.count("SELECT count(*) FROM subscription"),
            try network.pair.shard.count("SELECT count(*) FROM watcher")
        )
        #expect(subscriptions == copies)
    }
}
