import GRDB
import RaftCore
import RecordModel
import RecordStore
import Storage
import Testing
import Wire

@testable import Cluster

@Suite("Entries are applied in transactions of bounded size")
struct BoundedTransactionTests {
    private static func save(_ number: Int, _ nameBytes: Int = 4) -> [UInt8] {
        let name = String(repeating: "n", count: nameBytes) + String(number)
        return GroupCommand(Commands.save(name, number: Int64(number))).encoded()
    }

    /// Applies a schema and eight saves.
    private func run(nameBytes: Int = 4, _ change: (inout ApplySettings) -> Void) throws -> [UInt64] {
        var settings = ApplySettings()
        change(&settings)
        let bench = try ApplierBench()
        let applier = try bench.applier(1...2, settings)
        let install = GroupCommand(Commands.installSchema()).encoded()
        let (error, answers, transactions) = bench.apply(
            [install] + (0..<8).map { Self.save($0, nameBytes) }, from: 1, by: applier)
        #expect(error == nil)
        #expect(answers.count == 9)
        for (offset, answer) in answers {
            guard case .success = answer else { Issue.record("\(offset): \(answer)"); continue }
        }
        #expect(try bench.applied == LogIndex(9))
        let saved = try bench.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM record") }
        #expect(saved == 8)
        return transactions
    }

    @Test("one that has changed enough rows ends with the command that did it")
    func rows() throws {
        #expect(try run { _ in } == [9])
        // A save of this schema writes three rows.
        let transactions = try run { $0.rowsPerTransactionMax = 12 }
        #expect(transactions.count > 2 && transactions.count < 9 && transactions.last == 9, "\(transactions)")
        #expect(try run { $0.rowsPerTransactionMax = 1 } == Array(1...9))
    }

    @Test("one has so many bytes of entries, and at least one entry")
    func bytes() throws {
        #expect(try run(nameBytes: 200) { $0.bytesPerTransactionMax = 1 } == Array(1...9))
        let transactions = try run(nameBytes: 200) { $0.bytesPerTransactionMax = 1_100 }
        #expect(transactions.count > 1 && transactions.count < 9 && transactions.last == 9, "\(transactions)")
    }

    @Test("one has so many entries")
    func entries() throws {
        #expect(try run { $0.entriesPerTransactionMax = 4 } == [4, 8, 9])
    }

    @Test("what is left for another transaction stops at an entry of a later build, and keeps its callers")
    func tooOld() throws {
        var settings = ApplySettings()
        settings.rowsPerTransactionMax = 1
        let bench = try ApplierBench()
        let old = try bench.applier(1...2, settings)
        let commands = [
            GroupCommand(Commands.installSchema()).encoded(), Self.save(0), Self.save(1),
            GroupCommand.raise(FeatureLevel(3)).encoded(), Self.save(2),
        ]
        let (error, answers, transactions) = bench.apply(commands, from: 1, by: old)
        #expect(error?.index == LogIndex(4))
        #expect(transactions == [1, 2, 3])
        #expect(answers.count == 5)
        for offset in 0..<3 {
            guard case .success? = answers[offset] else { Issue.record("\(offset): \(answers)"); continue }
        }
        for offset in 3..<5 {
            guard case .failure(.outcomeUnknown)? = answers[offset] else {
                Issue.record("\(offset): \(answers)")
                continue
            }
        }
    }
}
