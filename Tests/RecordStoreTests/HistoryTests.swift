import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

/// Long random histories of commands, sound and unsound.
@Suite("random histories")
struct HistoryTests {
    @Test(
        "two databases that applied the same commands hold the same state, however they were grouped", arguments: 1...2)
    func determinism(_ seed: UInt64) throws {
        var random = Random(seed)
        let commands = (0..<500).map { _ in Self.command(&random) }
        let first = try Fixture(installs: false)
        let second = try Fixture(installs: false)
        var outcomes: [RecordOutcome] = []
        for command in commands { outcomes.append(try first.apply(command)) }
        var position = 0
        while position < commands.count {
            let end = min(position + Int.random(in: 1...64, using: &random), commands.count)
            try second.queue.write { db in
                let transaction = try second.tables.begin(in: db)
                for index in position..<end { #expect(try transaction.apply(commands[index]) == outcomes[index]) }
                try transaction.finish()
            }
            position = end
        }
        #expect(try first.stateBytes() == second.stateBytes())
        #expect(outcomes.contains { if case .records = $0 { true } else { false } })
        #expect(outcomes.contains { if case .atomicFailure = $0 { true } else { false } })
        #expect(outcomes.contains { if case .needsSchema = $0 { true } else { false } })
    }

    @Test("the index rows and edges are those that the records call for", arguments: 1...2)
    func indexes(_ seed: UInt64) throws {
        var random = Random(seed &+ 1000)
        let shard = try Fixture()
        for _ in 0..<300 { try shard.apply(Self.command(&random)) }
        try shard.maintain()
        try shard.expectEdges()
        let stored = try shard.rowsOfIndexes()
        try shard.remakeIndexes()
        #expect(try shard.rowsOfIndexes() == stored)
        #expect(!stored.isEmpty)
    }

    @Test("any bytes that decode to a command have an outcome")
    func fuzz() throws {
        var random = Random(77)
        let shard = try Fixture()
        var decodable = 0
        for _ in 0..<1500 {
            var bytes = Self.command(&random).encoded()
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                default: bytes[place] = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &random) ?? 0
                }
            }
            guard let command = try? RecordCommand(decoding: bytes) else { continue }
            decodable += 1
            let outcome = try shard.queue.write { try shard.tables.apply(command, in: $0) }
            _ = try RecordOutcome(decoding: outcome.encoded())
        }
        #expect(decodable > 150)
        #expect(try shard.queue.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
    }

    static func command(_ random: inout Random) -> RecordCommand {
        let zones = [Fixture.annsDefault, Fixture.work, Fixture.publicZone]
        let caller =
            [Fixture.ann, Fixture.ann, Fixture.bob, Caller(user: nil)].randomElement(using: &random) ?? Fixture.ann
        let zone = zones.randomElement(using: &random) ?? Fixture.work
        let time = Int64.random(in: 0...400_000_000, using: &random)
        switch Int.random(in: 0..<40, using: &random) {
        case 0: return Fixture.install(UInt64.random(in: 0...3, using: &random), schema(&random))
        case 1: return .modifyZone(ModifyZone(.delete, zone: Fixture.work, caller: Fixture.ann, time: time))
        case 2, 3, 4: return .modifyZone(ModifyZone(.create, zone: Fixture.work, caller: caller, time: time))
        case 5, 6: return .maintain(Maintain(time: time, rowsMax: UInt64.random(in: 1...20, using: &random)))
        default: break
        }
        let operations = (0..<Int.random(in: 1...5, using: &random)).map { _ in operation(&random) }
        var idempotency: IdempotencyKey?
        if Int.random(in: 0..<4, using: &random) == 0 {
            idempotency = IdempotencyKey(
                key: [UInt8](repeating: UInt8.random(in: 0...40, using: &random) | 0x80, count: 16),
                bodyHash: [UInt8](repeating: UInt8.random(in: 0...1, using: &random), count: 32), caller: "c")
        }
        let version: UInt64 = [1, 2, 3].randomElement(using: &random) ?? 1
        return .modifyRecords(
            ModifyRecords(
                zone: zone, schemaVersion: version, caller: caller, time: time, isAtomic: Bool.random(using: &random),
                idempotency: idempotency, operations: operations))
    }

    static func operation(_ random: inout Random) -> RecordChange {
        let kind = RecordChange.Kind.allCases.randomElement(using: &random) ?? .create
        let name = "r\(Int.random(in: 0..<30, using: &random))"
        var tag: ChangeTag?
        if Bool.random(using: &random) {
            tag = ChangeTag(incarnation: 1, sequence: UInt64.random(in: 1...60, using: &random))
        }
        var fields = fields(&random)
        if Int.random(in: 0..<3, using: &random) == 0 {
            let action = [Reference.Action.deleteSelf, .validate].randomElement(using: &random) ?? .none
            let target = "r\(Int.random(in: 0..<30, using: &random))"
            fields.append(("list", .reference(Reference(recordName: target, action: action))))
        }
        return .make(kind, name, fields, tag: tag)
    }

    /// The fixture's schema with some indexes missing.
    static func schema(_ random: inout Random) -> Schema {
        var note = Fixture.note
        for place in note.fields.indices where Int.random(in: 0..<4, using: &random) == 0 {
            note.fields[place].indexes = Bool.random(using: &random) ? [] : .queryable
        }
        return Schema(types: [note, Fixture.secret, Fixture.bare])
    }

    static func fields(_ random: inout Random) -> [(String, FieldValue?)] {
        var fields: [(String, FieldValue?)] = []
        for name in ["text", "rank", "score", "due", "data", "tags", "plain"] where Bool.random(using: &random) {
            if Int.random(in: 0..<4, using: &random) == 0 {
                fields.append((name, nil))
                continue
            }
            let number = Int64.random(in: -2...3, using: &random)
            let value: FieldValue =
                switch name {
                case "rank": .int64(number)
                case "score": .double(Double(number) / 2)
                case "due": .timestamp(number)
                case "data": .bytes([UInt8](repeating: 0xFF, count: Int(number + 2)))
                case "tags": .list(.string, (0..<Int(number + 2)).map { .string("t\($0 % 3)") })
                default: .string(["", "a", "ab", "\u{E9}", "a\0"].randomElement(using: &random) ?? "")
                }
            fields.append((name, value))
        }
        return fields
    }
}
