import RecordModel
import RecordStore
import Testing

@Suite("escrow: shards use no more than the ledger has, whatever becomes of messages")
struct EscrowTests {
    @Test("messages are lost, repeated and reordered: never over the cap, and nothing leaks", arguments: 1...2)
    func random(_ seed: UInt64) throws {
        var world = try EscrowWorld(seed)
        for step in 0..<300 {
            if world.chance(2) { try world.write() } else { try world.deliver() }
            try world.check(atMost: world.cap, recount: step % 10 == 9)
        }
        try settle(&world)
        #expect(try world.whole() == world.cap)
        for what in ["refused", "saved", "repeated", "lost", "insufficient"] {
            #expect(world.seen[what, default: 0] > 0, "never met: \(what)")
        }
    }

    @Test("the limits change meanwhile: what is outstanding covers what is used, and nothing leaks", arguments: 1...2)
    func changingLimits(_ seed: UInt64) throws {
        var world = try EscrowWorld(seed &+ 100)
        for step in 0..<300 {
            if world.chance(30) { world.changeCap() }
            if world.chance(2) { try world.write() } else { try world.deliver() }
            try world.check(atMost: nil, recount: step % 10 == 9)
        }
        try settle(&world)
        #expect(world.seen["grown", default: 0] > 0 && world.seen["over", default: 0] > 0)
        world.cap = QuotaAmounts(bytes: 30_000, records: 100)
        world.epoch += 1
        let grant = QuotaGrant(
            ledger: world.key, shard: 0, want: .zero, need: .zero, received: .zero, cap: world.cap,
            epoch: world.epoch, time: 1)
        _ = try world.ledger.apply(.quota(.grant(grant)))
        #expect(try world.whole() == world.cap)
    }

    @Test("limits that are set again and again, raised and lowered, leak nothing, though no other shard gives back")
    func setAgain() throws {
        var world = try EscrowWorld(7)
        var saved = 0
        for step in 0..<300 {
            world.epoch += 1
            let isLow = step % 5 == 4
            world.cap = QuotaAmounts(bytes: isLow ? 1800 : 12_000, records: isLow ? 2 : 12)
            let name = "r\(step % 12)"
            let text = String(repeating: "x", count: step % 100)
            let change = step % 3 == 2 ? RecordChange.make(.forceDelete, name) : .note(.forceReplace, name, text)
            if try world.change(change, on: 0).codes == [nil] { saved += 1 }
            try world.check(atMost: nil, recount: false)
        }
        #expect(saved > 200)
        for number in 0..<12 { _ = try world.change(.make(.forceDelete, "r\(number)"), on: 0) }
        world.epoch += 1
        world.cap = QuotaAmounts(bytes: 4000, records: 12)
        #expect(try world.change(.note(.create, "all", String(repeating: "x", count: 1500)), on: 0).codes == [nil])
        #expect(try world.whole() == world.cap)
    }

    @Test("what is deleted over a lowered limit is not room for more until there is less than the limit")
    func deletedOverLimit() throws {
        var world = try EscrowWorld(8)
        world.cap = QuotaAmounts(bytes: 10_000, records: 10)
        for (shard, name) in ["a", "b", "c", "d", "e", "f"].enumerated() {
            #expect(try world.change(.note(.create, name), on: shard % 2).codes == [nil])
        }
        world.epoch += 1
        world.cap = QuotaAmounts(bytes: 10_000, records: 3)
        for shard in 0..<2 { #expect(try world.change(.note(.create, "x"), on: shard).codes == [.quotaExceeded]) }
        // What does not add a record goes on: bytes are not overdrawn.
        #expect(try world.change(.note(.forceReplace, "a", "more"), on: 0).codes == [nil])
        for (shard, name) in ["a", "b", "c"].enumerated() {
            #expect(try world.change(.make(.forceDelete, name), on: shard % 2).codes == [nil])
            #expect(try world.change(.note(.create, "x"), on: shard % 2).codes == [.quotaExceeded], "\(name)")
        }
        #expect(try world.change(.make(.forceDelete, "d"), on: 1).codes == [nil])
        #expect(try world.change(.note(.create, "x"), on: 1).codes == [nil])
        #expect(try world.change(.note(.create, "y"), on: 1).codes == [.quotaExceeded])
        #expect(try world.change(.make(.forceDelete, "e"), on: 0).codes == [nil])
        #expect(try world.change(.note(.create, "y"), on: 0).codes == [nil])
    }

    @Test("a limit that fell without a new version holds, whatever was allotted")
    func fallenLimit() throws {
        let shard = try Fixture()
        let size = Fixture.size("a", "")
        try shard.credit(10 * size)
        let limit = QuotaAmounts(bytes: 2 * size, records: 9)
        #expect(try shard.save(Fixture.annsDefault, limit: limit, .note(.create, "a")).codes == [nil])
        #expect(try shard.save(Fixture.annsDefault, limit: limit, .note(.create, "b")).codes == [nil])
        #expect(
            try shard.save(Fixture.annsDefault, limit: limit, .note(.create, "c")).need?.need
                == QuotaAmounts(bytes: size))
        #expect(
            try shard.save(Fixture.annsDefault, final: true, limit: limit, .note(.create, "c")).codes == [
                .quotaExceeded
            ])
        #expect(try shard.save(Fixture.annsDefault, .note(.create, "c")).codes == [nil])
    }

    @Test("a node whose clock is years ahead does not end the month for the others")
    func wrongClock() throws {
        let shard = try Fixture(installs: false)
        func add(_ month: UInt64, _ bytes: UInt64) throws -> QuotaOutcome? {
            let transfer = QuotaTransfer(ledger: Fixture.publicData, month: month, bytes: bytes)
            return try shard.apply(.quota(.addTransfer(transfer))).quota
        }
        func pass(_ time: Int64) throws {
            try shard.setTime(time)
            _ = try shard.apply(
                .quota(
                    .grant(
                        QuotaGrant(
                            ledger: Fixture.publicData, shard: 1, want: .zero, need: .zero, received: .zero,
                            cap: .unlimited, epoch: 1, time: time))))
        }
        // Before anything told the shard the time.
        #expect(try add(203105, 1) == .transfer(month: 203105, bytes: 1))
        for (time, month, next) in [
            (951_782_400_000, 200002, 200003), (1_735_689_599_999, 202412, 202501),
            (1_735_689_600_000, 202501, 202502), (1_795_000_000_000, 202611, 202612),
        ] as [(Int64, UInt64, UInt64)] {
            try pass(time)
            #expect(try add(month, 5) == .transfer(month: month, bytes: 5))
            #expect(try add(next + 1, 7) == .transfer(month: month, bytes: 5), "\(time)")
            #expect(try add(203105, 7) == .transfer(month: month, bytes: 5), "\(time)")
            #expect(try add(month, 2) == .transfer(month: month, bytes: 7))
        }
        #expect(try add(202612, 3) == .transfer(month: 202612, bytes: 3))
        #expect(try add(202611, 3) == .transfer(month: 202612, bytes: 3))
    }

    /// Every message arrives, shards hear what was granted, and give back what they do not use.
    private func settle(_ world: inout EscrowWorld) throws {
        for share in try world.ledger.ledger(world.key).shares {
            let state = try world.ledger.ledger(world.key)
            let credit = QuotaCredit(
                database: world.key, cumulative: share.granted, epoch: world.epoch,
                overdrawn: QuotaParts(below: state.free))
            world.messages.append(.init(shard: Int(share.shard), command: .credit(credit)))
        }
        while !world.messages.isEmpty { try world.deliver(reliably: true) }
        for shard in world.shards.indices { world.release(shard) }
        while !world.messages.isEmpty { try world.deliver(reliably: true) }
        try world.check(atMost: nil, recount: true)
    }

    @Test("a grant that is repeated gives nothing twice; what is in flight counts for the next")
    func repeatedGrant() throws {
        let shard = try Fixture(installs: false)
        #expect(try grant(shard, want: 60, need: 10) == .granted(cumulative: bytes(60), free: bytes(40)))
        #expect(try grant(shard, want: 60, need: 10) == .granted(cumulative: bytes(60), free: bytes(40)))
        #expect(try grant(shard, want: 70, need: 65) == .granted(cumulative: bytes(70), free: bytes(30)))
        #expect(
            try grant(shard, want: 70, need: 65, received: 70) == .insufficient(cumulative: bytes(70), free: bytes(30)))
        #expect(try grant(shard, want: 70, need: 0, received: 70) == .granted(cumulative: bytes(100), free: bytes(0)))
        #expect(try grant(shard, 2, want: 1, need: 1) == .insufficient(cumulative: bytes(0), free: bytes(0)))
    }

    @Test("a cap that was lowered leaves less than nothing, and grants go on once enough came back")
    func loweredCap() throws {
        let shard = try Fixture(installs: false)
        _ = try grant(shard, want: 100, need: 100)
        #expect(
            try grant(shard, 2, want: 1, need: 1, cap: 50, epoch: 2)
                == .insufficient(cumulative: bytes(0), free: bytes(-50)))
        // Whoever does not know of the lower cap gets no more by it.
        #expect(
            try grant(shard, 2, want: 1, need: 1, cap: 500, epoch: 1)
                == .insufficient(cumulative: bytes(0), free: bytes(-50)))
        let deposit = QuotaDeposit(ledger: Fixture.annsData, shard: 1, received: bytes(100), returned: bytes(51))
        #expect(try shard.apply(.quota(.deposit(deposit))).quota == .deposited)
        #expect(
            try grant(shard, 2, want: 9, need: 1, cap: 50, epoch: 2) == .granted(cumulative: bytes(1), free: bytes(0)))
    }

    @Test("a ledger that was restored takes over what shards say they received")
    func restoredLedger() throws {
        let shard = try Fixture(installs: false)
        #expect(try grant(shard, want: 10, need: 10, received: 80) == .granted(cumulative: bytes(90), free: bytes(10)))
        let deposit = QuotaDeposit(ledger: Fixture.annsData, shard: 2, received: bytes(7), returned: bytes(3))
        _ = try shard.apply(.quota(.deposit(deposit)))
        #expect(try shard.ledger().free == bytes(6))
    }

    @Test("a deposit that comes late takes nothing back")
    func lateDeposit() throws {
        let shard = try Fixture(installs: false)
        _ = try grant(shard, want: 90, need: 90)
        for returned: Int64 in [40, 30, 40, 0] {
            let deposit = QuotaDeposit(
                ledger: Fixture.annsData, shard: 1, received: bytes(90), returned: bytes(returned))
            _ = try shard.apply(.quota(.deposit(deposit)))
            #expect(try shard.ledger().free == bytes(50))
        }
    }

    @Test("what was allotted under older limits is given back, but for what is used")
    func epochs() throws {
        let shard = try Fixture()
        let size = Fixture.size("a", "")
        try shard.credit(10 * size, epoch: 1)
        _ = try shard.save(Fixture.annsDefault, epoch: 1, .note(.create, "a"))
        let need = try shard.save(Fixture.annsDefault, epoch: 2, .note(.create, "b")).need
        #expect(need?.need == QuotaAmounts(bytes: size, records: 1))
        #expect(need?.holdsVoid == true)
        #expect(try shard.usage().allotted.bytes == 10 * size)
        // Whoever does not know of the newer limits goes on under the older ones.
        #expect(try shard.save(Fixture.annsDefault, epoch: 1, .note(.create, "b")).codes == [nil])
        #expect(try shard.save(Fixture.annsDefault, epoch: 2, .make(.forceDelete, "b")).codes == [nil])
        #expect(try shard.save(Fixture.annsDefault, epoch: 2, .note(.create, "c")).need != nil)
        let released = try shard.apply(.quota(.release(QuotaRelease(database: Fixture.annsData)))).quota
        #expect(
            released
                == .released(
                    received: QuotaAmounts(bytes: 10 * size, records: 1000),
                    returned: QuotaAmounts(bytes: 9 * size - Fixture.tombstone("b"), records: 999)))
        let settled = try shard.save(Fixture.annsDefault, epoch: 2, .note(.create, "c")).need
        #expect(settled?.holdsVoid == false && settled?.returned.bytes == 9 * size - Fixture.tombstone("b"))
        try shard.credit(11 * size, 1001, epoch: 2)
        #expect(try shard.save(Fixture.annsDefault, epoch: 2, .note(.create, "c")).codes == [nil])
        // Granted before the change, received after it.
        try shard.credit(15 * size, 1002, epoch: 1)
        #expect(try shard.usage().allotted.bytes == 2 * size + Fixture.tombstone("b"))
        #expect(try shard.save(Fixture.annsDefault, epoch: 1, .note(.create, "d")).need?.epoch == 2)
        try shard.credit(16 * size, 1003, epoch: 2)
        #expect(try shard.save(Fixture.annsDefault, epoch: 2, .note(.create, "d")).codes == [nil])
        #expect(try shard.save(Fixture.annsDefault, epoch: 2, .note(.create, "e")).need != nil)
    }

    @Test("a credit under newer limits gives back what is unused under older ones, though nobody had it released")
    func newerCredit() throws {
        let shard = try Fixture()
        let size = Fixture.size("a", "")
        try shard.credit(10 * size, epoch: 1)
        _ = try shard.save(Fixture.annsDefault, epoch: 1, .note(.create, "a"))
        try shard.credit(11 * size, 1001, epoch: 2)
        #expect(try shard.usage().allotted == QuotaAmounts(bytes: 2 * size, records: 2))
        #expect(try shard.save(Fixture.annsDefault, epoch: 2, .note(.create, "b")).codes == [nil])
        #expect(try shard.save(Fixture.annsDefault, epoch: 2, .note(.create, "c")).need != nil)
    }

    @Test("transfer is counted by month; what comes late for an earlier one is not")
    func transfer() throws {
        let shard = try Fixture(installs: false)
        func add(_ month: UInt64, _ bytes: UInt64) throws -> QuotaOutcome? {
            let transfer = QuotaTransfer(ledger: Fixture.publicData, month: month, bytes: bytes)
            return try shard.apply(.quota(.addTransfer(transfer))).quota
        }
        #expect(try add(202611, 5) == .transfer(month: 202611, bytes: 5))
        #expect(try add(202611, 6) == .transfer(month: 202611, bytes: 11))
        #expect(try add(202612, 1) == .transfer(month: 202612, bytes: 1))
        #expect(try add(202611, 6) == .transfer(month: 202612, bytes: 1))
        #expect(try add(202612, .max) == .transfer(month: 202612, bytes: .max))
        #expect(try shard.ledger(Fixture.publicData).transferBytes == .max)
    }

    @Test("no numbers make a quota command fail to have an outcome")
    func extremes() throws {
        let shard = try Fixture()
        var random = Random(9)
        let numbers: [Int64] = [.min, -1, 0, 1, 100, 1 << 61, 1 << 62, (1 << 62) + 1, .max]
        func amounts() -> QuotaAmounts {
            QuotaAmounts(
                bytes: numbers.randomElement(using: &random) ?? 0, records: numbers.randomElement(using: &random) ?? 0)
        }
        func number() -> UInt64 { UInt64(bitPattern: numbers.randomElement(using: &random) ?? 0) }
        for step in 0..<150 {
            let key = step % 3 == 0 ? Fixture.publicData : Fixture.annsData
            let commands: [QuotaCommand] = [
                .grant(
                    QuotaGrant(
                        ledger: key, shard: number(), want: amounts(), need: amounts(), received: amounts(),
                        returned: amounts(), cap: amounts(), epoch: number(), time: 5)),
                .credit(
                    QuotaCredit(
                        database: key, cumulative: amounts(), epoch: number(),
                        overdrawn: QuotaParts(rawValue: Int64(step % 4)))),
                .release(QuotaRelease(database: key)),
                .deposit(QuotaDeposit(ledger: key, shard: number(), received: amounts(), returned: amounts())),
                .addTransfer(QuotaTransfer(ledger: key, month: number(), bytes: number())),
            ]
            for command in commands { _ = try shard.apply(.quota(command)) }
            _ = try shard.save(Fixture.annsDefault, final: step % 2 == 0, epoch: number(), .note(.forceUpdate, "a"))
            let usage = try shard.usage(key)
            #expect(usage.allotted == usage.allotted.greater(.zero))
            let ledger = try shard.ledger(key)
            #expect(ledger.shares.allSatisfy { $0.returned.fits(in: $0.granted) && $0.granted.fits(in: .greatest) })
        }
    }

    private func bytes(_ count: Int64) -> QuotaAmounts { QuotaAmounts(bytes: count) }

    private func grant(
        _ ledger: Fixture, _ shard: UInt64 = 1, want: Int64, need: Int64, received: Int64 = 0, cap: Int64 = 100,
        epoch: UInt64 = 1
    ) throws -> QuotaOutcome? {
        try ledger.apply(
            .quota(
                .grant(
                    QuotaGrant(
                        ledger: Fixture.annsData, shard: shard, want: bytes(want), need: bytes(need),
                        received: bytes(received), cap: bytes(cap), epoch: epoch, time: 1)))
        ).quota
    }
}
