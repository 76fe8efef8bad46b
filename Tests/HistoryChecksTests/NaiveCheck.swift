import HistoryChecks

/// Linearizability by trying every order: for a handful of calls.
struct NaiveCheck<Model: HistoryModel> {
    typealias Call = History<Model.Operation, Model.Outcome>.Call

    let model: Model

    func isLinearizable(_ history: History<Model.Operation, Model.Outcome>) -> Bool {
        hasOrder(history.calls, from: model.initial)
    }

    private func hasOrder(_ calls: [Call], from state: Model.State) -> Bool {
        if calls.allSatisfy({ $0.returned == nil }) { return true }
        return calls.indices.contains { index in
            let call = calls[index]
            // Nothing that was answered before this was called may come after it.
            guard calls.allSatisfy({ $0.returned.map { $0 > call.called } ?? true }) else { return false }
            var rest = calls
            rest.remove(at: index)
            return model.states(after: call.operation, outcome: call.outcome, from: state).contains {
                hasOrder(rest, from: $0)
            }
        }
    }
}
