/// Whether one machine, doing one thing at a time, could have given all answers of a history, each at some moment
/// between its call and its answer.
///
/// The search is Wing and Gong's with Lowe's memory of what was tried (Testing for linearizability, 2017). It is exact;
/// what it may not finish within `stepsMax` is `undecided`, which callers count as a failure. Check each object on its
/// own: a history is linearizable exactly if its parts are, and the parts cost far less.
package struct LinearizabilityCheck<Model: HistoryModel>: Sendable {
    /// A history of the model's operations.
    package typealias Calls = History<Model.Operation, Model.Outcome>

    /// What the history is held against.
    package let model: Model
    /// How many times the model may be asked before the search gives up.
    package let stepsMax: Int

    /// A check against a model.
    package init(_ model: Model, stepsMax: Int = 50_000_000) {
        self.model = model
        self.stepsMax = stepsMax
    }

    /// Judges a history. Calls without an answer may have taken effect at any time after they were made, or not at all.
    package func verdict(on history: Calls) -> HistoryVerdict {
        let calls = history.calls
        var search = LinearizationSearch(model: model, calls: calls, stepsMax: stepsMax)
        switch search.run() {
        case .found:
            return .linearizable(calls: calls.count, steps: search.steps)
        case .exhausted:
            return .undecided(search.toldAsUndecided)
        case .impossible:
            // To say why costs a multiple of what it cost to find out, and no more.
            var report = ViolationReport(model: model, steps: 20 * search.steps + 100_000)
            return .violated(report.text(calls, longest: search.longest.order))
        }
    }
}

/// What a check found.
package enum HistoryVerdict: Sendable, CustomStringConvertible {
    /// There is an order that explains every answer.
    case linearizable(calls: Int, steps: Int)
    /// There is none; the text says which answer cannot be explained, and by what it follows.
    case violated(String)
    /// The search gave up; the text says how far it got.
    case undecided(String)

    /// Only a proven order counts: `undecided` is a failure.
    package var isLinearizable: Bool {
        if case .linearizable = self { true } else { false }
    }

    package var description: String {
        switch self {
        case .linearizable(let calls, let steps): "linearizable: \(calls) calls, \(steps) steps"
        case .violated(let report): "NOT LINEARIZABLE\n\(report)"
        case .undecided(let report): "UNDECIDED (counts as a failure)\n\(report)"
        }
    }
}
