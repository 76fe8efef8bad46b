import RecordModel
import Testing

@testable import Directory

@Suite("Failed sign-ins in the audit log")
struct AuditBudgetTests {
    private static let hour: Int64 = 3_600_000
    private let directory: TestDirectory

    init() throws { directory = try TestDirectory.populated() }

    private func fail(_ number: Int, at time: Int64) throws {
        let origin = AuditOrigin(actor: "somebody", requestID: "r\(number)", address: "::1", time: time)
        if number.isMultiple(of: 2) {
            try directory.apply(DirectoryEntry(.noteSignInFailure(accountID: "a1", time: time), origin: origin))
        } else {
            let event = AuditEvent(
                origin: origin, action: "sign-in", subject: "a name that no account has", outcome: "refused", count: 1)
            try directory.apply(DirectoryEntry(nil, events: [event]))
        }
    }

    @Test("an hour's first 600 are told one by one, the others by their number; nothing else is left out")
    func budget() throws {
        for number in 0..<700 { try fail(number, at: 5 * Self.hour + Int64(number)) }
        let origin = AuditOrigin(actor: "administrator", requestID: "r", address: "::1", time: 5 * Self.hour)
        for _ in 0..<3 { try directory.apply(DirectoryEntry(.setSignUp(isOpen: true), origin: origin)) }
        // A clock that is behind begins no new hour.
        try fail(0, at: 4 * Self.hour)
        #expect(try directory.audit(.requests).records.count == 600)
        try fail(0, at: 6 * Self.hour)
        try fail(1, at: 6 * Self.hour)
        let page = try directory.audit(.requests)
        #expect(page.firstBroken == nil && page.records.count == 603)
        let told = page.records.suffix(3).map(\.event)
        #expect(told.map(\.count) == [101, 1, 1] && told[0].outcome == "refused")
        #expect(try directory.audit().records.map(\.event.action) == Array(repeating: "sign-up.open", count: 3))
        let sum = page.records.map(\.event).filter { $0.action.hasPrefix("sign-in") }.reduce(0) { $0 + $1.count }
        #expect(sum == 703)
        // The lock-out counts whether the log tells of it or not; three failures were forgiven in the hour without one.
        #expect(try directory.lockout(of: "a1")?.failures == Lockout.failuresMax - 2)
    }

    @Test("an hour that a clock began which was far ahead ends with the next failure; below level 13 it goes on")
    func clockAhead() throws {
        for number in 0..<601 { try fail(number, at: 9_000 * Self.hour) }
        let origin = Self.origin("somebody", at: 5 * Self.hour)
        let event = AuditEvent(origin: origin, action: "sign-in", subject: "x", outcome: "refused")
        try directory.apply(DirectoryEntry(nil, events: [event]), at: FeatureLevel(12))
        #expect(try directory.audit(.requests).records.count == 600)
        try fail(1, at: 5 * Self.hour)
        let told = try directory.audit(.requests).records.dropFirst(600).map(\.event)
        #expect(told.map(\.count) == [2, 1] && told.last?.origin.time == 5 * Self.hour)
    }

    private static func origin(_ actor: String, at time: Int64) -> AuditOrigin {
        AuditOrigin(actor: actor, requestID: "r", address: "::1", time: time)
    }

    private func refuse(_ count: Int, at time: Int64) throws {
        let event = AuditEvent(
            origin: Self.origin("anonymous", at: time), action: "records/query", subject: "x", outcome: "refused")
        try directory.apply(DirectoryEntry(nil, refusals: Array(repeating: event, count: count)))
    }

    @Test("refusals have 600 records an hour of their own, and push nothing out of what administrators did")
    func refusals() throws {
        try directory.apply(
            DirectoryEntry(.setSignUp(isOpen: true), origin: Self.origin("administrator", at: 5 * Self.hour)))
        for hour in 5..<8 { for _ in 0..<7 { try refuse(100, at: Int64(hour) * Self.hour) } }
        // Another kind is told all the same.
        try fail(0, at: 7 * Self.hour)
        let told =
            try directory.audit(.requests).records.map(\.event)
            + directory.audit(.requests, after: 1_000).records.map(\.event)
        #expect(told.count == 1_801 && told.last?.action == "sign-in.fail")
        #expect(told.filter { $0.count > 1 }.map(\.count) == [100, 101])
        // Only the log of requests has more than is kept.
        for _ in 0..<8 { try directory.apply(.purge(time: 0, auditRecordsMax: 100)) }
        let (changes, requests) = (try directory.audit(), try directory.audit(.requests))
        #expect(changes.records.map(\.event.action) == ["sign-up.open"] && changes.firstBroken == nil)
        #expect(requests.records.count == 100 && requests.firstBroken == nil && requests.firstSequence == 1_702)
        let snapshot = try directory.snapshot()
        #expect(snapshot.auditBounds(of: .requests) == AuditBounds(purged: 1_701, last: 1_801))
        #expect(snapshot.needsPurge(now: 0, auditRecordsMax: 0) == false)
    }

    @Test("a refused command is told with refusals, but for an administrator's")
    func refusedCommands() throws {
        for actor in ["administrator", "sign-up", "user ada"] {
            let outcome = try directory.apply(
                DirectoryEntry(.createContainer(name: "app", time: 1), origin: Self.origin(actor, at: 1))
            ).outcome
            guard case .refused = outcome else { throw WrongOutcome() }
        }
        #expect(try directory.audit().records.map(\.event.origin.actor) == ["administrator"])
        #expect(try directory.audit(.requests).records.map(\.event.origin.actor) == ["sign-up", "user ada"])
    }

    private struct WrongOutcome: Error {}

    @Test("a schema that a save lets grow is told with what grew, and not where another was faster")
    func growth() throws {
        let command = DirectoryCommand.setSchema(
            SchemaKey(container: "app", environment: .production), expectedVersion: 1, Schema(),
            growth: "Note, Item.title")
        let entry = DirectoryEntry(command, origin: Self.origin("user ada", at: 1))
        #expect(try directory.apply(entry).outcome == .done(version: 2))
        guard case .refused(let error) = try directory.apply(entry).outcome else { throw WrongOutcome() }
        #expect(error.code == .conflict)
        let told = try directory.audit(.requests).records.map(\.event)
        #expect(told.count == 1 && told[0].action == "schema.grow" && told[0].origin.actor == "user ada")
        #expect(told[0].subject == "container app (production), after version 1: Note, Item.title")
        #expect(try directory.audit().records.isEmpty)
    }

    @Test("what cannot be seen, or turns the writing around, stands in the log as its number")
    func hidden() throws {
        let origin = AuditOrigin(actor: "user a\u{202E}da", requestID: "r", address: "\u{1B}[2J", time: 1)
        let event = AuditEvent(
            origin: origin, action: "a\nb", subject: "x\u{2028}y\u{200B}z", outcome: "Zoë 日本", count: 1)
        try directory.apply(DirectoryEntry(nil, events: [event]))
        let told = try #require(try directory.audit().records.first?.event)
        #expect(told.origin.actor == #"user a\u{202e}da"# && told.origin.address == #"\u{1b}[2J"#)
        #expect(told.action == #"a\u{a}b"# && told.subject == #"x\u{2028}y\u{200b}z"#)
        #expect(told.outcome == "Zoë 日本")
        #expect(Account.isPlainLine("Zoë 日本 O'Neill-1") && !Account.isPlainLine("a\u{200B}b"))
    }

    @Test("the same characters are hidden as where replicas were made: see UnicodeTableTests")
    func hiddenCharacters() {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for value in 0...0x10FFFF as ClosedRange<UInt32> {
            guard let scalar = Unicode.Scalar(value) else { continue }
            hash = (hash ^ (AuditText.isHidden(scalar) ? 1 : 0)) &* 0x100_0000_01B3
        }
        #expect(String(hash, radix: 16) == "eaed79be4cc18f34")
    }
}
