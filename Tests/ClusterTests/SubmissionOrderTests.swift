import RaftCore
import Storage
import Testing

@testable import Cluster

@Suite("The order in which a lane's submissions go to the log")
struct SubmissionOrderTests {
    private static func submission(_ number: UInt64) -> Submission {
        Submission(writes: [LogWrite(group: GroupID(number), hardState: HardState(term: Term(1)))], waiting: [])
    }

    /// Everything that the log may have now.
    private static func take(_ order: inout SubmissionOrder) -> [Submission] {
        var taken: [Submission] = []
        while let next = order.next() { taken.append(next) }
        return taken
    }

    private static func numbers(_ submissions: [Submission]) -> [UInt64] {
        submissions.compactMap { $0.writes.first?.group.rawValue }
    }

    @Test("what the log refused goes to it again before what came later, and not before it told of everything it had")
    func refused() {
        var order = SubmissionOrder(bytesMax: 1_000)
        for number in UInt64(1)...3 { order.add(Self.submission(number)) }
        let given = Self.take(&order)
        #expect(Self.numbers(given) == [1, 2, 3] && !order.isStalled)
        var retries: [Bool] = []
        for submission in given {
            retries.append(order.retry())
            order.wasRefused(submission, rest: submission)
            if retries.count == 1 { order.add(Self.submission(4)) }
            #expect(order.isStalled)
        }
        let early = Self.take(&order)
        #expect(early.isEmpty, "the log has to be resumed first")
        retries += [order.retry(), order.retry()]
        #expect(retries == [false, false, false, true, false])
        let again = Self.take(&order)
        #expect(Self.numbers(again) == [1, 2, 3, 4] && !order.isStalled)
    }

    @Test("the log is given no more than its queue has room for, and the rest as it is done with that")
    func room() {
        var order = SubmissionOrder(bytesMax: 2 * Self.submission(1).sizeBytes)
        for number in UInt64(1)...4 { order.add(Self.submission(number)) }
        let first = Self.take(&order)
        #expect(Self.numbers(first) == [1, 2] && order.isStalled)
        order.becameDurable(first[0])
        let second = Self.take(&order)
        #expect(Self.numbers(second) == [3] && order.isStalled)
        var small = SubmissionOrder(bytesMax: 1)
        for number in UInt64(1)...2 { small.add(Self.submission(number)) }
        let alone = Self.take(&small)
        #expect(Self.numbers(alone) == [1], "one alone may be larger")
    }
}
