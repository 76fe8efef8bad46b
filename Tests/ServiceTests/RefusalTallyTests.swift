import Directory
import RecordModel
import Testing

@testable import Service

@Suite("Refusals on their way to the audit log")
struct RefusalTallyTests {
    private static let hour: Int64 = 3_600_000
    private var tally = RefusalTally()

    private static func origin(_ actor: String, at time: Int64) -> AuditOrigin {
        AuditOrigin(actor: actor, requestID: "", address: "", time: time)
    }

    private mutating func add(
        _ actor: String = "anonymous", in container: String = "a", _ subject: String = "s", at time: Int64 = hour
    ) {
        tally.add(Self.origin(actor, at: time), in: container, action: "records/query", subject: subject, count: 1)
    }

    private mutating func take(at time: Int64 = hour, isLast: Bool = false) -> [AuditEvent] {
        tally.take(Self.origin("node 1", at: time), isLast: isLast)
    }

    @Test("alike ones of one moment are one record")
    mutating func alike() {
        for _ in 0..<3 { add() }
        add("user ada")
        #expect(take().map(\.count) == [3, 1])
        #expect(take().isEmpty)
    }

    @Test("one actor has 60 records an hour in one container, and then one that counts the others")
    mutating func budget() {
        for number in 0..<70 { add("anonymous", in: "a", "s\(number)") }
        // Others, and the same one elsewhere, are told all the same.
        add("user ada", in: "a")
        add("anonymous", in: "b")
        #expect(take().count == 62)
        add("anonymous", in: "a", "again")
        #expect(take().isEmpty)
        let next = take(at: 2 * Self.hour)
        #expect(next.map(\.count) == [11] && next[0].origin.actor == "anonymous")
        #expect(next[0].subject == "11 more in container a within an hour")
        add("anonymous", in: "a", at: 2 * Self.hour)
        #expect(take(at: 2 * Self.hour).count == 1)
    }

    @Test("an hour that ends with the next refusal is told as well, and so is the last one of a node that stops")
    mutating func ends() {
        for number in 0..<61 { add("anonymous", in: "a", "s\(number)") }
        #expect(take().count == 60)
        add("anonymous", in: "a", at: 2 * Self.hour)
        #expect(take(at: 2 * Self.hour).map(\.count) == [1, 1])
        for number in 0..<62 { add("anonymous", in: "a", "s\(number)", at: 2 * Self.hour) }
        #expect(take(at: 2 * Self.hour).count == 59)
        #expect(take(at: 2 * Self.hour, isLast: true).map(\.count) == [3])
    }

    @Test(
        "an hour that a clock began which was ahead ends when the clock is right again; a little back is the same hour")
    mutating func clockAhead() {
        for number in 0..<70 { add("anonymous", in: "a", "s\(number)", at: 9_000 * Self.hour) }
        #expect(take(at: 9_000 * Self.hour).count == 60)
        add("anonymous", in: "a", "a moment before", at: 8_999 * Self.hour)
        #expect(take(at: 8_999 * Self.hour).isEmpty)
        add("anonymous", in: "a", "now", at: 2 * Self.hour)
        #expect(take(at: 2 * Self.hour).map(\.count) == [1, 11])
    }

    @Test("what cannot be written waits, and what there is no room for is counted")
    mutating func bounds() {
        for number in 0..<(RefusalTally.kindsMax + 5) { add("user \(number)") }
        let first = take()
        #expect(first.count == RefusalTally.kindsMax + 1 && first.last?.count == 5)
        add()
        tally.putBack(first)
        let second = take()
        #expect(second.prefix(RefusalTally.kindsMax) == first.prefix(RefusalTally.kindsMax))
        #expect(second.reduce(0) { $0 + $1.count } == UInt64(RefusalTally.kindsMax) + 6)
    }

    @Test("one user's sign-ins have the same budget, and what could not be written of the others waits")
    func signIns() {
        var budget = HourlyBudget(askersMax: 2)
        let (ada, bob) = (
            HourlyBudget.Asker(actor: "user ada", container: "a"), HourlyBudget.Asker(actor: "user bob", container: "a")
        )
        budget.begin(at: Self.hour)
        for number in 0..<65 { #expect(budget.take(1, of: ada) == (number < 60 ? .told : .counted)) }
        #expect(budget.take(1, of: bob) == .told)
        #expect(budget.take(1, of: HourlyBudget.Asker(actor: "user ada", container: "b")) == .noRoom)
        budget.begin(at: Self.hour + 1)
        #expect(budget.takeUntold().isEmpty)
        budget.begin(at: 2 * Self.hour)
        let untold = budget.takeUntold()
        #expect(untold.map(\.count) == [5] && untold[0].asker == ada && budget.takeUntold().isEmpty)
        budget.putBack(untold)
        #expect(budget.takeUntold().map(\.count) == [5] && budget.take(1, of: ada) == .told)
    }
}
