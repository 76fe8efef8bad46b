import Directory
import Foundation
import GRDB
import Testing

@Suite("A search of the audit log")
struct AuditSearchTests {
    private let directory: TestDirectory

    init() throws { directory = try TestDirectory.populated() }

    /// Records with the numbers 1 to `count`; each third one is grace's.
    private func append(_ count: Int) throws {
        let events = (1...count).map { number in
            AuditEvent(
                origin: AuditOrigin(
                    actor: number.isMultiple(of: 3) ? "administrator grace" : "administrator", requestID: "r\(number)",
                    address: "::1", time: Int64(number)),
                action: number.isMultiple(of: 2) ? "limits.set" : "user.create", subject: "user Ada\(number)",
                outcome: "done", count: 1)
        }
        for start in stride(from: 0, to: count, by: 500) {
            try directory.apply(DirectoryEntry(nil, events: Array(events[start..<min(start + 500, count)])))
        }
    }

    private func search(
        before: UInt64? = .max, limit: UInt64 = 100, _ change: (inout AuditSearch) -> Void = { _ in }
    ) throws -> AuditFindings {
        var search = AuditSearch(of: .changes, before: before, limit: limit)
        change(&search)
        return try directory.find(search)
    }

    @Test("the newest come first, and a page goes on where the last one ended")
    func newest() throws {
        #expect(try search() == AuditFindings())
        try append(5)
        let first = try search(limit: 2)
        #expect(first.records.map(\.sequence) == [5, 4] && !first.span.isEnd && first.span.firstBroken == nil)
        #expect(first.span.first == 4 && first.span.last == 5 && first.span.count == 2)
        let second = try search(before: first.span.first, limit: 3)
        #expect(second.records.map(\.sequence) == [3, 2, 1] && second.span.isEnd)
        #expect(first.records.last?.previousHash == second.records.first?.hash)
        #expect(try search(before: 1).records.isEmpty)
        #expect(try search { $0.after = 3 }.records.map(\.sequence) == [5, 4])
        let oldest = try search(before: nil, limit: 2) { $0.after = 1 }
        #expect(oldest.records.map(\.sequence) == [2, 3] && !oldest.span.isEnd && oldest.span.last == 3)
    }

    @Test("what is not looked for, or not to be seen, takes no place of a page")
    func filters() throws {
        try append(30)
        func found(_ change: (inout AuditSearch) -> Void) throws -> [UInt64] {
            try search(limit: 3, change).records.map(\.sequence)
        }
        #expect(try found { $0.visibleActors = ["administrator grace", "x"] } == [30, 27, 24])
        #expect(try found { $0.visibleActors = [] } == [])
        #expect(try found { $0.actor = "administrator grace" } == [30, 27, 24])
        #expect(try found { $0.actor = "administrator" } == [29, 28, 26])
        #expect(try found { ($0.visibleActors, $0.actor) = (["administrator grace"], "administrator") } == [])
        #expect(try found { $0.action = "limits.set" } == [30, 28, 26])
        #expect(try found { ($0.action, $0.visibleActors) = ("limits.set", ["administrator grace"]) } == [30, 24, 18])
        #expect(try found { $0.text = "aDa1" } == [19, 18, 17])
        #expect(try found { $0.text = "r7" } == [7])
        #expect(try found { $0.text = "nowhere" } == [])
    }

    @Test("a search looks at so many records only, and says where it ended")
    func bound() throws {
        let count = AuditSearch.examinedMax + 10
        try append(count)
        let first = try search { $0.text = "r1" }
        #expect(first.records.count == 100)
        let rare = try search { $0.actor = "nobody" }
        #expect(rare.records.isEmpty && !rare.span.isEnd && rare.span.count == AuditSearch.examinedMax)
        #expect(rare.span.first == 11 && rare.span.last == UInt64(count))
        #expect(try search(before: rare.span.first) { $0.actor = "nobody" }.span.isEnd)
        #expect(try search(limit: .max).records.count == 1_000)
    }

    @Test("a record that was changed or taken out is named, found or not")
    func broken() throws {
        try append(9)
        func write(_ sql: String) throws { try directory.database.write { try $0.execute(sql: sql) } }
        try write("UPDATE audit SET hash = zeroblob(32) WHERE sequence = 4")
        #expect(try search { $0.actor = "nobody" }.span.firstBroken == 4)
        #expect(try search(limit: 4).span.firstBroken == nil)
        #expect(try search(before: nil, limit: 4) { $0.action = "limits.set" }.span.firstBroken == 4)
        try write("DELETE FROM audit WHERE sequence = 2")
        #expect(try search().span.firstBroken == 3)
    }

    @Test("the chain begins with what is kept of records past retention")
    func retention() throws {
        try append(20)
        try directory.apply(.purge(time: 0, auditRecordsMax: 5))
        let kept = try search()
        #expect(kept.records.map(\.sequence) == [20, 19, 18, 17, 16])
        #expect(kept.span.firstBroken == nil && kept.span.isEnd)
    }
}
