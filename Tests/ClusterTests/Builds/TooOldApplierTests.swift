import Foundation
import GRDB
import RaftCore
import RecordModel
import RecordStore
import Storage
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Cluster
@testable import Directory

@Suite("Apply stops before what only a newer build knows")
struct TooOldApplierTests {
    private static func bytes(_ write: (inout WireWriter) -> Void) -> [UInt8] {
        var writer = WireWriter()
        write(&writer)
        return writer.bytes
    }

    private static let save = GroupCommand(Commands.save("a", number: 1)).encoded()

    /// Entries that are well formed, and of which this build knows too little.
    static let unknown: [(name: String, command: [UInt8])] = [
        ("a group's command", bytes { $0.field(99, 7) }),
        ("a shard's command", GroupCommand.machine(bytes { $0.field(99, 7) }).encoded()),
        ("a record command", GroupCommand.machine(bytes { $0.field(1) { $0.field(99, 7) } }).encoded()),
        (
            "a field of a command",
            GroupCommand.machine(
                bytes { writer in
                    writer.field(1) { record in
                        record.field(4) { maintain in
                            Maintain(time: 5).encode(to: &maintain)
                            maintain.field(77, 1)
                        }
                    }
                }
            ).encoded()
        ),
        (
            "a value of an enumeration",
            GroupCommand.machine(
                bytes { writer in
                    writer.field(1) { record in
                        record.field(2) { zone in
                            zone.field(1) { Commands.zone.encode(to: &$0) }
                            zone.field(3, 77)
                        }
                    }
                }
            ).encoded()
        ),
        ("a bit of an index's options", install(RecordModel.IndexOptions(rawValue: 9), .read)),
        ("a bit of permissions", install(.queryable, Permissions(rawValue: 10))),
        (
            "a part of a quota",
            GroupCommand.machine(
                ShardCommand.record(
                    .quota(
                        .credit(
                            QuotaCredit(
                                database: Commands.zone.database, cumulative: QuotaAmounts(), epoch: 1,
                                overdrawn: QuotaParts(rawValue: 9))))
                ).encoded()
            ).encoded()
        ),
        (
            "a member of a list",
            GroupCommand.machine(
                bytes { writer in
                    writer.field(1) { record in
                        record.field(1) { modify in
                            modify.field(7) { change in
                                change.field(5) { field in
                                    field.field(1, "f")
                                    field.field(2) { value in
                                        value.field(8) { list in
                                            list.field(15, 1)
                                            list.field(44, "x")
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            ).encoded()
        ),
    ]

    private static func install(_ indexes: RecordModel.IndexOptions, _ permissions: Permissions) -> [UInt8] {
        let type = RecordType(
            name: "T", fields: [FieldDefinition(name: "f", type: FieldType(.string), indexes: indexes)],
            grants: [Grant(role: "_world", permissions: permissions)])
        let command = InstallSchema(
            container: "c", environment: .production, version: 1, schema: Schema(types: [type]))
        return GroupCommand.machine(ShardCommand.record(.installSchema(command)).encoded()).encoded()
    }

    @Test("a leader does not take from a peer what would stop it, and takes what it knows or what everybody refuses")
    func proposed() throws {
        let machine = ShardMachine(vault: FieldVault(clusterKey: nil))
        for (name, command) in Self.unknown {
            #expect(machine.unknownPart(ofEntry: command) != nil, "\(name)")
        }
        let directory = DirectoryMachine(vault: FieldVault(clusterKey: nil))
        let newer = GroupCommand.machine(Self.bytes { $0.field(1) { $0.field(99, 7) } }).encoded()
        #expect(directory.unknownPart(ofEntry: newer) != nil)
        let open = GroupCommand.machine(DirectoryEntry(.setSignUp(isOpen: true)).encoded()).encoded()
        #expect(directory.unknownPart(ofEntry: open) == nil)
        for command in [Self.save, Array(Self.save.dropLast()), Self.install(.queryable, .read)] {
            #expect(machine.unknownPart(ofEntry: command) == nil)
        }
    }

    @Test(
        "what is before it is applied and answered, it and what follows wait for a build that knows it",
        arguments: 0..<9)
    func stops(_ number: Int) throws {
        let (name, command) = Self.unknown[number]
        let bench = try ApplierBench()
        let applier = try bench.applier()
        let (error, answers, _) = bench.apply([Self.save, command, Self.save], from: 1, by: applier)
        #expect(error?.index == LogIndex(2) && error?.needs == nil, "\(name)")
        #expect("\(try #require(error))".contains("too old"))
        #expect(try bench.applied == LogIndex(1))
        guard case .success? = answers[0], case .failure(.outcomeUnknown)? = answers[1],
            case .failure(.outcomeUnknown)? = answers[2]
        else { throw TestFailure("\(name): \(answers)") }
    }

    @Test(
        "so does the directory's", arguments: [bytes { $0.field(1) { $0.field(99, 7) } }, bytes { $0.field(9, "x") }])
    func directory(_ command: [UInt8]) throws {
        let bench = try ApplierBench(.directory)
        let open = GroupCommand.machine(DirectoryEntry(.setSignUp(isOpen: true)).encoded()).encoded()
        let applier = try bench.applier()
        let (error, _, _) = bench.apply([open, GroupCommand.machine(command).encoded()], from: 1, by: applier)
        #expect(error?.index == LogIndex(2))
        #expect(try bench.applied == LogIndex(1))
    }

    @Test("a level above what the build follows stops apply, and says which; a build that has it goes on from there")
    func level() throws {
        let bench = try ApplierBench()
        let commands = [Self.save, GroupCommand.raise(FeatureLevel(3)).encoded(), Self.save]
        let old = try bench.applier(1...2)
        let error = try #require(bench.apply(commands, from: 1, by: old).error)
        #expect(
            error.description
                == "this build is too old for what the log holds: entry 2 of group 1 needs feature level 3, and this build follows "
                + "levels up to 2; start a build that has it")
        #expect(old.level == .first)
        #expect(bench.record.levels.withLock(\.self) == [])

        let able = try bench.applier(1...3)
        let (stop, answers, _) = bench.apply(Array(commands[1...]), from: 2, by: able)
        #expect(stop == nil)
        #expect(answers.count == 2)
        #expect(able.level == FeatureLevel(3))
        // The folder says so, too, and did before the database.
        #expect(bench.record.levels.withLock(\.self) == [FeatureLevel(3)])
        #expect(try bench.applied == LogIndex(3))
        // It is in the database, and a lower one changes nothing.
        let next = try bench.applier(1...3)
        #expect(next.level == FeatureLevel(3))
        #expect(bench.apply([GroupCommand.raise(FeatureLevel(2)).encoded()], from: 4, by: next).error == nil)
        #expect(next.level == FeatureLevel(3))
    }

    @Test("a command that is damaged is refused, by every build alike, and apply goes on")
    func damaged() throws {
        let cut = Array(Commands.save("a", number: 1).encoded().dropLast(3))
        let damaged = [
            GroupCommand.machine(cut).encoded(), GroupCommand.machine([]).encoded(), Array(Self.save.dropLast()), [],
            GroupCommand.machine(Self.bytes { $0.field(1) { $0.field(2) { $0.field(3, 1) } } }).encoded(),
        ]
        let bench = try ApplierBench()
        let (error, answers, _) = bench.apply(damaged + [Self.save], from: 1, by: try bench.applier())
        #expect(error == nil)
        #expect(try bench.applied == LogIndex(6))
        for offset in [0, 1, 4] {
            guard case .success(let bytes)? = answers[offset], case .refused? = try? RecordOutcome(decoding: bytes)
            else {
                Issue.record("\(offset): \(String(describing: answers[offset]))")
                continue
            }
        }
    }

    @Test("where a level comes to count more in quotas, maintenance counts what the shard holds")
    func counted() throws {
        let bench = try ApplierBench()
        let applier = try bench.applier(1...3)
        func usage() throws -> DatabaseUsage {
            try bench.database.read { db in
                try UsageCounts.database(Commands.database, recount: true, level: AppliedRow.level(of: db), in: db)
            }
        }
        func jobs() throws -> Int? { try bench.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM job") } }
        let commands = [
            GroupCommand(Commands.installSchema()).encoded(), Self.save, GroupCommand.raise(.countedRows).encoded(),
        ]
        #expect(bench.apply(commands, from: 1, by: applier).error == nil)
        let before = try usage()
        #expect(before.used == before.recount && before.used.records == 1)
        #expect(try jobs() == 1)
        let maintain = GroupCommand(ShardCommand.record(.maintain(Maintain(time: 1)))).encoded()
        #expect(bench.apply([maintain], from: 4, by: applier).error == nil)
        let after = try usage()
        // A record's row, one in the index of names, and one in that of numbers.
        let more = QuotaAmounts(bytes: 64 + 16 + 1 + 16 + 8)
        #expect(after.used == before.used + more && after.used == after.recount)
        #expect(try jobs() == 0)
    }

    @Test("a command is applied at the level in force where it stands in the log, however entries come together")
    func placed() throws {
        let hour: Int64 = 3_600_000
        func maintain(_ time: Int64) -> [UInt8] {
            GroupCommand(ShardCommand.record(.maintain(Maintain(time: time)))).encoded()
        }
        let commands = [
            maintain(hour), maintain(3 * hour), GroupCommand.raise(.evenSteps).encoded(), maintain(3 * hour),
        ]
        for pieces in [[0..<4], [0..<1, 1..<3, 3..<4], [0..<2, 2..<4]] {
            let bench = try ApplierBench()
            let applier = try bench.applier()
            for piece in pieces {
                let (error, _, _) = bench.apply(Array(commands[piece]), from: UInt64(piece.lowerBound + 1), by: applier)
                #expect(error == nil)
            }
            let time = try bench.database.read { try Int64.fetchOne($0, sql: "SELECT time FROM record_state") }
            #expect(time == 2 * hour + 60_000)
        }
    }
}
