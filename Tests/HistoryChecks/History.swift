/// What clients asked and were told, in the order in which both happened: what a checker judges.
///
/// Shape: every call and every answer takes the next number of one counter, so one call is before another exactly if
/// its answer's number is below the other's call's. Times are for reports only; no judgement rests on a clock. A value:
/// whoever records from several threads keeps it behind a lock, taken before a request is sent and after its answer has
/// come.
package struct History<Operation: Sendable, Outcome: Sendable>: Sendable {
    /// One call of one client.
    package struct Call: Sendable {
        /// How many calls were made before.
        package let number: Int
        /// Who called; for reports.
        package let client: Int
        /// What was asked.
        package let operation: Operation
        /// What was answered. Nil: nobody knows what became of it, now or ever. It may have taken effect at any time
        /// since it was made, may do so yet, or never.
        package internal(set) var outcome: Outcome?
        /// The place of the call among all calls and answers.
        package let called: Int
        /// The place of the answer; nil while there is none.
        package internal(set) var returned: Int?
        /// When, in whichever unit the recorder counts.
        package let calledAt: Int64
        /// When the answer came.
        package internal(set) var returnedAt: Int64?
    }

    /// Names a call that was begun.
    package struct CallID: Hashable, Sendable {
        let number: Int
    }

    private var all: [Call] = []
    private var withdrawn: Set<Int> = []
    private var places = 0

    /// An empty history.
    package init() {}

    /// The calls, in the order in which they were made, without the ones that were withdrawn.
    package var calls: [Call] { withdrawn.isEmpty ? all : all.filter { !withdrawn.contains($0.number) } }

    /// How many calls were made, withdrawn ones included.
    package var count: Int { all.count }

    /// A client asks. Without `end` or `withdraw` the outcome stays unknown.
    ///
    /// A request that is sent again under the same idempotency key is one call, from its first sending to the answer.
    package mutating func begin(_ operation: Operation, client: Int, at time: Int64 = 0) -> CallID {
        let number = all.count
        all.append(
            Call(
                number: number, client: client, operation: operation, outcome: nil, called: places, returned: nil,
                calledAt: time, returnedAt: nil))
        places += 1
        return CallID(number: number)
    }

    /// The answer has come: at most once a call.
    package mutating func end(_ id: CallID, _ outcome: Outcome, at time: Int64 = 0) {
        precondition(all[id.number].returned == nil, "call \(id.number) was answered twice")
        all[id.number].outcome = outcome
        all[id.number].returned = places
        all[id.number].returnedAt = time
        places += 1
    }

    /// The service said that the request had no effect and never will (throttled, not a leader, malformed). To withdraw
    /// what may have had an effect hides violations, or makes them up.
    package mutating func withdraw(_ id: CallID) {
        precondition(all[id.number].returned == nil, "call \(id.number) was answered and cannot be withdrawn")
        withdrawn.insert(id.number)
    }

    /// How many calls have an unknown outcome.
    package var unknownCount: Int { all.count { $0.returned == nil } - withdrawn.count }
}

extension History.Call: CustomStringConvertible {
    /// `#12 client 3 at 40-52: fetch a -> found 1.4 {text: x}`
    package var description: String {
        let end = returnedAt.map { "-\($0)" } ?? "-?"
        let answer = outcome.map { "\($0)" } ?? "outcome unknown"
        return "#\(number) client \(client) at \(calledAt)\(end): \(operation) -> \(answer)"
    }
}
