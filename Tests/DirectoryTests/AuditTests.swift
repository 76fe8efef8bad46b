import Directory
import Foundation
import GRDB
import RecordModel
import Testing
import Wire

@Suite("The audit log")
struct AuditTests {
    private let directory: TestDirectory

    init() throws { directory = try TestDirectory.populated() }

    private static func origin(_ number: Int = 1) -> AuditOrigin {
        AuditOrigin(actor: "administrator", requestID: "r\(number)", address: "::1", time: Int64(number))
    }

    private static func event(_ number: Int) -> AuditEvent {
        AuditEvent(
            origin: origin(number), action: "records/query", subject: "user ada", outcome: "refused",
            count: UInt64(number))
    }

    /// Records with the numbers 1 to `count`.
    private func append(_ count: Int) throws {
        for number in 1...count { try directory.apply(DirectoryEntry(nil, events: [Self.event(number)])) }
    }

    @Test("a command with an origin is told once, done or refused, and one without is not")
    func commands() throws {
        try directory.apply(.createContainer(name: "silent", time: 1))
        try directory.apply(DirectoryEntry(.createContainer(name: "x", time: 1), origin: Self.origin()))
        try directory.apply(DirectoryEntry(.createContainer(name: "x", time: 1), origin: Self.origin(2)))
        try directory.apply(
            DirectoryEntry(.setSignUp(isOpen: false), origin: Self.origin(3), events: [Self.event(4), Self.event(5)]))
        let page = try directory.audit()
        #expect(page.records.map(\.sequence) == [1, 2, 3, 4, 5])
        #expect(page.records.map(\.event.origin) == (1...5).map(Self.origin))
        #expect(
            page.records.map(\.event.action).prefix(3) == ["container.create", "container.create", "sign-up.close"])
        #expect(page.records[0].event.subject == "container x")
        #expect(
            page.records.map(\.event.outcome).prefix(3) == ["done", "EXISTS: container 'x' exists already", "done"])
        #expect(page.records[4].event == Self.event(5))
        #expect(page.firstBroken == nil && !page.moreComing && page.firstSequence == 1)
        #expect(page.records[0].previousHash == [UInt8](repeating: 0, count: 32))
    }

    @Test("pages follow each other, and the end is an empty page")
    func pages() throws {
        try append(5)
        let first = try directory.audit(limit: 2)
        #expect(first.records.map(\.sequence) == [1, 2] && first.moreComing)
        let second = try directory.audit(after: 2, limit: 3)
        #expect(second.records.map(\.sequence) == [3, 4, 5] && !second.moreComing)
        #expect(second.firstPreviousHash == first.records[1].hash && second.firstBroken == nil)
        #expect(AuditRecord.verify(second.records, following: first.records[1]) == nil)
        for after in [5, 6, UInt64.max] {
            let page = try directory.audit(after: after)
            #expect(page.records.isEmpty && !page.moreComing && page.firstSequence == 6 && page.firstBroken == nil)
        }
        #expect(try directory.audit(limit: 0).records.count == 1)
        #expect(try directory.audit(limit: .max).records.count == 5)
    }

    @Test("whatever is changed, dropped or swapped in the records is found where it is")
    func damage() throws {
        try append(6)
        let page = try directory.audit()
        let records = page.records
        #expect(AuditRecord.verify(records) == nil)
        for index in records.indices {
            var dropped = records
            dropped.remove(at: index)
            // The first and the last one are missed by who knows what went before, and what came after.
            let expected = index == 0 || index == 5 ? nil : UInt64(index + 1)
            #expect(AuditRecord.verify(dropped) == expected)
            var broken = page
            broken.records = dropped
            #expect(broken.firstBroken == (index == 5 ? nil : UInt64(index + 1)))
            for change in Self.changes {
                var changed = records
                change(&changed[index])
                let found = AuditRecord.verify(changed)
                #expect(found == UInt64(index + 1) || found == changed[index].sequence)
            }
        }
        for index in records.indices.dropLast() {
            var swapped = page
            swapped.records.swapAt(index, index + 1)
            #expect(swapped.firstBroken == UInt64(index + 1))
        }
        #expect(AuditRecord.verify(Array(records.dropFirst(2)), following: records[0]) == 2)
        // A record that is whole in itself, but follows another one.
        var forged = records
        forged[3] = AuditRecord(records[3].event, sequence: 4, previousHash: records[1].hash)
        #expect(AuditRecord.verify(forged) == 4)
    }

    private static let changes: [@Sendable (inout AuditRecord) -> Void] = [
        { $0.sequence += 100 }, { $0.previousHash[31] ^= 1 }, { $0.hash[0] ^= 1 }, { $0.event.origin.actor += " " },
        { $0.event.origin.requestID = "" }, { $0.event.origin.address = "::2" }, { $0.event.origin.time += 1 },
        { $0.event.action = "" }, { $0.event.subject = "user bob" }, { $0.event.outcome = "done" },
        { $0.event.count += 1 },
    ]

    @Test("every changed byte of a row in the tables is found")
    func damagedRows() throws {
        try append(3)
        let body = try #require(
            try directory.database.read { try Data.fetchOne($0, sql: "SELECT body FROM audit WHERE sequence = 2") })
        for index in body.indices {
            var changed = body
            changed[index] ^= 1
            try directory.database.write {
                try $0.execute(sql: "UPDATE audit SET body = ? WHERE sequence = 2", arguments: [changed])
            }
            // What cannot be read any more is an error, anything else a broken chain.
            if let page = try? directory.audit() { #expect(page.firstBroken != nil, "byte \(index)") }
        }
        try directory.database.write {
            try $0.execute(sql: "UPDATE audit SET body = ? WHERE sequence = 2", arguments: [body])
        }
        #expect(try directory.audit().firstBroken == nil)
        try directory.database.write { try $0.execute(sql: "DELETE FROM audit WHERE sequence = 2") }
        #expect(try directory.audit().firstBroken == 2)
        #expect(try directory.audit(after: 2).firstBroken == 2)
        #expect(try directory.audit(after: 1).firstBroken == 2)
    }

    @Test("the oldest records above the most that are kept go, and the chain is verified from there")
    func retention() throws {
        try append(1_010)
        var kept = try directory.snapshot()
        let all = try directory.audit().records + directory.audit(after: 1_000).records
        #expect(kept.auditBounds(of: .changes) == AuditBounds(purged: 0, last: 1_010))
        #expect(kept.needsPurge(now: 0, auditRecordsMax: 510) && !kept.needsPurge(now: 0, auditRecordsMax: 511))
        #expect(!kept.needsPurge(now: 0, auditRecordsMax: .max) && !kept.needsPurge(now: 0))
        func purge(_ recordsMax: UInt64) throws {
            for change in try directory.apply(.purge(time: 0, auditRecordsMax: recordsMax)).changes {
                kept.take(change)
            }
            #expect(try kept == directory.snapshot())
        }
        try purge(10)
        #expect(kept.auditBounds(of: .changes) == AuditBounds(purged: 500, last: 1_010))
        try purge(10)
        #expect(kept.auditBounds(of: .changes) == AuditBounds(purged: 1_000, last: 1_010))
        let page = try directory.audit(after: 3)
        #expect(page.records == Array(all.dropFirst(1_000)) && page.firstSequence == 1_001)
        #expect(page.firstPreviousHash == all[999].hash && page.firstBroken == nil)
        #expect(try directory.isIdle(.purge(time: 0, auditRecordsMax: 10)))
        // Also when all of them are gone, the next one follows the last one.
        try purge(0)
        #expect(try directory.audit().records.isEmpty)
        try directory.apply(DirectoryEntry(nil, events: [Self.event(1)]))
        let last = try directory.audit()
        #expect(last.records.map(\.sequence) == [1_011] && last.firstBroken == nil)
        #expect(AuditRecord.verify(last.records, following: all[1_009]) == nil)
    }

    @Test("a purge does not hide that records are missing")
    func purgedGap() throws {
        try append(20)
        try directory.database.write { try $0.execute(sql: "DELETE FROM audit WHERE sequence = 10") }
        try directory.apply(.purge(time: 0, auditRecordsMax: 10))
        #expect(try directory.audit().firstBroken == 10)
        try directory.database.write { try $0.execute(sql: "DELETE FROM audit WHERE sequence < 15") }
        try directory.apply(.purge(time: 0, auditRecordsMax: 7))
        #expect(try directory.audit().firstBroken != nil)
    }

    @Test("a text that is too long is cut, and the record is whole")
    func bounds() throws {
        var event = Self.event(1)
        event.subject = String(repeating: "ä", count: 100_000)
        try directory.apply(DirectoryEntry(nil, events: [event]))
        let page = try directory.audit()
        #expect(page.records[0].event.subject.unicodeScalars.count == 512)
        #expect(page.records[0].event.subject.hasSuffix("ä…") && page.firstBroken == nil)
    }

    @Test("no bytes ask for the position")
    func reads() throws {
        #expect(try DirectoryRead(decoding: []) == .position)
        #expect(DirectoryRead.position.encoded().isEmpty)
    }
}
