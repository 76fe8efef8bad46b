import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing

/// Shards, one ledger, and messages between them that are lost, repeated and overtaken.
struct EscrowWorld {
    /// A command on its way to a shard or, where `shard` is nil, to the ledger.
    struct Message {
        var shard: Int?
        var command: QuotaCommand
    }

    let key = Fixture.annsData
    let shards: [Fixture]
    let ledger: Fixture
    var random: Random
    var cap = QuotaAmounts(bytes: 9000, records: 25)
    var epoch: UInt64 = 1
    /// By epoch, where the limits changed.
    private var caps: [UInt64: QuotaAmounts] = [:]
    var messages: [Message] = []
    /// How often each kind of thing happened.
    var seen: [String: Int] = [:]

    init(_ seed: UInt64) throws {
        shards = try (0..<3).map { _ in try Fixture() }
        ledger = try Fixture(installs: false)
        random = Random(seed)
    }

    mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

    /// A request at some shard; a need becomes a message to the ledger.
    mutating func write() throws {
        let shard = Int.random(in: 0..<shards.count, using: &random)
        let zone = ZoneKey(database: key, name: ZoneKey.defaultZoneName)
        let operations = (0..<Int.random(in: 1...3, using: &random)).map { number in
            let name = "\(number)-\(Int.random(in: 0..<12, using: &random))"
            if chance(4) { return RecordChange.make(.forceDelete, name) }
            return .note(.forceReplace, name, String(repeating: "x", count: Int.random(in: 0...150, using: &random)))
        }
        let terms = QuotaTerms(epoch: chance(6) && epoch > 1 ? epoch - 1 : epoch, isFinal: chance(6))
        let before = try share(shards[shard], recount: false).usage.used
        let outcome = try shards[shard].apply(
            .modifyRecords(
                ModifyRecords(
                    zone: zone, schemaVersion: 1, caller: Fixture.ann, time: 1, quota: terms, operations: operations)))
        if terms.epoch == epoch { try checkGrowth(from: before, on: shard) }
        if outcome.codes.contains(.quotaExceeded) { seen["refused", default: 0] += 1 }
        if outcome.codes.contains(nil) { seen["saved", default: 0] += 1 }
        guard let need = outcome.need else { return }
        if need.holdsVoid { release(shard) }
        let want = chance(2) ? need.need : need.need + QuotaAmounts(bytes: 1800, records: 4)
        messages.append(
            Message(
                shard: nil,
                command: .grant(
                    QuotaGrant(
                        ledger: key, shard: UInt64(shard), want: want, need: chance(5) ? .zero : need.need,
                        received: need.received, returned: need.returned, cap: caps[terms.epoch] ?? cap,
                        epoch: terms.epoch, time: 1))))
        if chance(3) { release(Int.random(in: 0..<shards.count, using: &random)) }
    }

    mutating func release(_ shard: Int) {
        messages.append(Message(shard: shard, command: .release(QuotaRelease(database: key))))
    }

    /// Some message arrives, or is lost; it may arrive again later.
    mutating func deliver(reliably: Bool = false) throws {
        guard !messages.isEmpty else { return }
        let place = reliably ? 0 : Int.random(in: 0..<messages.count, using: &random)
        let message = messages[place]
        if reliably || !chance(4) { messages.remove(at: place) } else { seen["repeated", default: 0] += 1 }
        if !reliably && chance(4) { seen["lost", default: 0] += 1; return }
        let outcome = try (message.shard.map { shards[$0] } ?? ledger).apply(.quota(message.command)).quota
        // The answer may be lost too.
        if reliably || !chance(5) { answer(message, try #require(outcome)) }
    }

    private mutating func answer(_ message: Message, _ outcome: QuotaOutcome) {
        switch (message.command, outcome) {
        case (.grant(let grant), .granted(let cumulative, let free)),
            (.grant(let grant), .insufficient(let cumulative, let free)):
            if case .insufficient = outcome { seen["insufficient", default: 0] += 1 }
            messages.append(
                Message(
                    shard: Int(grant.shard),
                    command: .credit(
                        QuotaCredit(
                            database: key, cumulative: cumulative, epoch: grant.epoch,
                            overdrawn: QuotaParts(below: free)))))
        case (.release, .released(let received, let returned)):
            messages.append(
                Message(
                    shard: nil,
                    command: .deposit(
                        QuotaDeposit(
                            ledger: key, shard: UInt64(message.shard ?? 0), received: received, returned: returned))))
        default: break
        }
    }

    /// The limits change; often to less than what is used.
    mutating func changeCap() {
        caps[epoch] = cap
        epoch += 1
        let part: Int64 = chance(2) ? 10 : 1
        cap = QuotaAmounts(
            bytes: Int64.random(in: 0...(24_000 / part), using: &random),
            records: Int64.random(in: 0...(80 / part), using: &random))
    }

    /// What a shard uses, received and gave back.
    private struct Share {
        var usage: DatabaseUsage
        var received: QuotaAmounts
        var returned: QuotaAmounts
    }

    private func share(_ shard: Fixture, recount: Bool) throws -> Share {
        try shard.queue.read { db in
            let sql = """
                SELECT received_bytes, received_records, returned_bytes, returned_records FROM database WHERE scope = 2
                """
            let row = try Row.fetchOne(db, sql: sql)
            func amounts(_ column: Int) -> QuotaAmounts {
                row.map { QuotaAmounts(bytes: $0[column], records: $0[column + 1]) } ?? .zero
            }
            return Share(
                usage: try UsageCounts.database(key, recount: recount, in: db), received: amounts(0),
                returned: amounts(2))
        }
    }

    /// What grew by whoever knows the present limits is within them, whatever there was before.
    private mutating func checkGrowth(from before: QuotaAmounts, on shard: Int) throws {
        let after = try share(shards[shard], recount: false).usage.used
        let all = try shards.indices.reduce(QuotaAmounts.zero) {
            $0 + (try share(shards[$1], recount: false).usage.used)
        }
        if after.bytes > before.bytes { #expect(all.bytes <= cap.bytes) }
        if after.records > before.records { #expect(all.records <= cap.records) }
        if !after.fits(in: before) { seen["grown", default: 0] += 1 }
        if !all.fits(in: cap) { seen["over", default: 0] += 1 }
    }

    /// A record is saved or deleted, and everything that it takes is asked for and arrives: no shard but this one is
    /// asked for anything.
    mutating func change(_ operation: RecordChange, on shard: Int) throws -> RecordOutcome {
        let zone = ZoneKey(database: key, name: ZoneKey.defaultZoneName)
        func save(isFinal: Bool) throws -> RecordOutcome {
            try shards[shard].apply(
                .modifyRecords(
                    ModifyRecords(
                        zone: zone, schemaVersion: 1, caller: Fixture.ann, time: 1,
                        quota: QuotaTerms(epoch: epoch, isFinal: isFinal), operations: [operation])))
        }
        let outcome = try save(isFinal: false)
        guard let need = outcome.need else { return outcome }
        var (received, returned) = (need.received, need.returned)
        if need.holdsVoid,
            case .released(let all, let back)? = try shards[shard].apply(.quota(.release(QuotaRelease(database: key))))
                .quota
        {
            (received, returned) = (all, back)
        }
        let grant = QuotaGrant(
            ledger: key, shard: UInt64(shard), want: need.need + QuotaAmounts(bytes: 1800, records: 3), need: need.need,
            received: received, returned: returned, cap: cap, epoch: epoch, time: 1)
        switch try ledger.apply(.quota(.grant(grant))).quota {
        case .granted(let cumulative, let free)?, .insufficient(let cumulative, let free)?:
            let credit = QuotaCredit(
                database: key, cumulative: cumulative, epoch: epoch, overdrawn: QuotaParts(below: free))
            _ = try shards[shard].apply(.quota(.credit(credit)))
        default: break
        }
        return try save(isFinal: true)
    }

    /// - Parameters:
    ///   - cap: what all shards together may use; nil where it changes.
    ///   - recount: whether counters are compared with what is stored.
    func check(atMost cap: QuotaAmounts?, recount: Bool) throws {
        let state = try ledger.ledger(key)
        #expect(state.outstanding + state.free == state.cap)
        var sum = QuotaAmounts.zero
        for (number, shard) in shards.enumerated() {
            let share = try share(shard, recount: recount)
            let known = state.shares.first { $0.shard == UInt64(number) }
            let granted = known?.granted ?? .zero
            let returned = known?.returned ?? .zero
            let usage = share.usage
            #expect(usage.recount == (recount || usage.zones.isEmpty ? usage.used : nil))
            #expect(usage.used.fits(in: usage.allotted))
            #expect(usage.allotted == share.received - share.returned)
            #expect(usage.allotted.fits(in: granted - returned))
            #expect(share.received.fits(in: granted))
            #expect(returned.fits(in: share.returned))
            sum = sum + usage.used
        }
        #expect(sum.fits(in: state.outstanding))
        if let cap { #expect(sum.fits(in: cap)) }
    }

    /// What shards hold and the ledger has left, once nothing is in flight.
    func whole() throws -> QuotaAmounts {
        let free = try ledger.ledger(key).free
        return try shards.reduce(free) { $0 + (try share($1, recount: false).usage.allotted) }
    }
}
