import Directory
import RecordModel
import Testing

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
        #expect(try directory.audit().records.count == 603)
        try fail(0, at: 6 * Self.hour)
        try fail(1, at: 6 * Self.hour)
        let page = try directory.audit()
        #expect(page.firstBroken == nil && page.records.count == 606)
        let told = page.records.suffix(3).map(\.event)
        #expect(told.map(\.count) == [101, 1, 1] && told[0].outcome == "refused")
        #expect(page.records.map(\.event.action).count { $0 == "sign-up.open" } == 3)
        let sum = page.records.map(\.event).filter { $0.action.hasPrefix("sign-in") }.reduce(0) { $0 + $1.count }
        #expect(sum == 703)
        // The lock-out counts whether the log tells of it or not; three failures were forgiven in the hour without one.
        #expect(try directory.snapshot().lockout(of: "a1")?.failures == Lockout.failuresMax - 2)
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
}
