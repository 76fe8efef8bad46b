/// A machine that does one thing at a time: what a service claims to look like from outside.
///
/// Pure, deterministic. The checker asks for every state it comes to whether an operation could have been answered so.
package protocol HistoryModel: Sendable {
    associatedtype State: Hashable & Sendable
    associatedtype Operation: Sendable
    associatedtype Outcome: Sendable

    /// What the machine is before the first call.
    var initial: State { get }

    /// The states in which the machine may be after an operation that had this outcome; empty where it could not have
    /// had it in `state`.
    ///
    /// Shape: one state, save where the outcome leaves open what happened. For an outcome of nil (unknown) it is never
    /// empty and holds every state that any outcome would lead to.
    func states(after operation: Operation, outcome: Outcome?, from state: State) -> [State]

    /// Whether the machine may come to a state in which the operation has this outcome, whatever happens after `state`.
    ///
    /// False only where that is certain: for a change that took a number which the machine has passed, and for a sight
    /// of what is gone for good. It ends hopeless searches early.
    func mayCome(_ operation: Operation, outcome: Outcome, after state: State) -> Bool

    /// About where in the order of all operations each of these took effect, as far as answers tell; nil where they do
    /// not.
    ///
    /// Hints only: they decide what is tried first, so wrong ones cost time and never change a verdict.
    func hints(of calls: [History<Operation, Outcome>.Call]) -> [UInt64?]

    /// Whether an operation with this outcome leaves the machine as it is in every state in which it may have it.
    ///
    /// True for reads, and for changes that were refused. Not for the deletion of what may not have been there: in
    /// some states it deletes.
    func changesNothing(_ operation: Operation, outcome: Outcome?) -> Bool
}

extension HistoryModel {
    /// Judges the history of one such machine.
    package func verdict(
        on history: History<Operation, Outcome>, stepsMax: Int = 50_000_000
    ) -> HistoryVerdict {
        LinearizabilityCheck(self, stepsMax: stepsMax).verdict(on: history)
    }

    package func mayCome(_ operation: Operation, outcome: Outcome, after state: State) -> Bool { true }

    package func hints(of calls: [History<Operation, Outcome>.Call]) -> [UInt64?] {
        Array(repeating: nil, count: calls.count)
    }
}
