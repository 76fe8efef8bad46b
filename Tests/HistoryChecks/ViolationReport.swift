/// Says in words why a history has no order, with as little of it as will do.
struct ViolationReport<Model: HistoryModel> {
    typealias Call = History<Model.Operation, Model.Outcome>.Call

    let model: Model
    /// How many more times the model may be asked to shorten the report.
    var steps: Int

    /// A history that has no order: its shortest beginning without one ends with the answer that cannot be.
    /// - Parameter longest: the longest order that led nowhere.
    mutating func text(_ calls: [Call], longest: [Int]) -> String {
        let last = longest.max().map { min($0 + 64, calls.count - 1) } ?? calls.count - 1
        let end = shortestEnd(of: calls, reached: calls[last].returned ?? calls[last].called)
        guard let culprit = calls.first(where: { $0.returned == end }) else {
            return "no call was answered, and yet there is no order: the model is not total"
        }
        let part = withoutIdle(beginning(of: calls, until: end), but: culprit.number)
        // Without its answer there is an order, which shows what the answer contradicts.
        let rest = part.map { $0.number == culprit.number ? $0.unanswered : $0 }
        var search = LinearizationSearch(model: model, calls: rest, stepsMax: max(steps, 100_000))
        let order = search.run() == .found ? search.order : search.longest.order
        var lines = [
            "This answer has no place among the others:", "  \(culprit)", "Everything before it in one order:",
        ]
        lines += search.told(order)
        lines += ["which leaves:"] + states(after: order, of: rest).map { "  \($0)" }
        lines += left(rest, order: order, but: culprit.number)
        lines.append("(\(part.count) of \(calls.count) calls matter)")
        return lines.joined(separator: "\n")
    }

    /// The place of the first answer that cannot be: beginnings of a history that has an order have one, too.
    ///
    /// It is most likely a little before the place where the search came to its end.
    private mutating func shortestEnd(of calls: [Call], reached: Int) -> Int {
        let ends = calls.compactMap(\.returned).sorted()
        var high = ends.count - 1
        let guess = ends.firstIndex { $0 >= reached } ?? high
        if guess < high, isImpossible(beginning(of: calls, until: ends[guess])) { high = guess }
        var (low, width) = (high, 1)
        while low > 0, steps > 0 {
            low = max(0, high - width)
            guard isImpossible(beginning(of: calls, until: ends[low])) else { break }
            (high, width) = (low, width * 4)
        }
        while low + 1 < high, steps > 0 {
            let middle = (low + high) / 2
            if isImpossible(beginning(of: calls, until: ends[middle])) { high = middle } else { low = middle }
        }
        return ends.indices.contains(high) ? ends[high] : -1
    }

    /// What was known once an answer had come: later calls are not there, later answers not given.
    private func beginning(of calls: [Call], until end: Int) -> [Call] {
        calls.filter { $0.called < end }.map { call in
            call.returned.map { $0 <= end } ?? true ? call : call.unanswered
        }
    }

    private mutating func isImpossible(_ calls: [Call]) -> Bool {
        var search = LinearizationSearch(model: model, calls: calls, stepsMax: max(steps, 1))
        defer { steps -= search.steps }
        return search.run() == .impossible
    }

    /// Leaves out what changed nothing and the contradiction does not need. Without a change, other answers could
    /// become false.
    private mutating func withoutIdle(_ calls: [Call], but culprit: Int) -> [Call] {
        var part = calls
        var size = calls.count
        while size >= 1, steps > 0 {
            var start = 0
            while start < part.count, steps > 0 {
                let range = start..<min(start + size, part.count)
                let less = part.indices.filter { index in
                    !range.contains(index) || part[index].number == culprit
                        || !model.changesNothing(part[index].operation, outcome: part[index].outcome)
                }.map { part[$0] }
                if less.count < part.count, isImpossible(less) { part = less } else { start += size }
            }
            size /= 2
        }
        return part
    }

    private func states(after order: [Int], of calls: [Call]) -> [Model.State] {
        var states = [model.initial]
        for index in order {
            states = states.flatMap {
                model.states(after: calls[index].operation, outcome: calls[index].outcome, from: $0)
            }
        }
        return Array(states.prefix(4))
    }

    private func left(_ calls: [Call], order: [Int], but culprit: Int) -> [String] {
        let placed = Set(order)
        let left = calls.indices.filter { !placed.contains($0) && calls[$0].number != culprit }.map { calls[$0] }
        guard !left.isEmpty else { return [] }
        return ["Calls whose outcome is unknown, which no place explains either:"]
            + left.suffix(16).map { "  \($0)" }
    }
}

extension LinearizationSearch {
    /// The end of an order in words.
    func told(_ order: [Int]) -> [String] {
        let shown = order.suffix(24)
        let skipped = order.count - shown.count
        return (skipped > 0 ? ["  (\(skipped) calls before)"] : []) + shown.map { "  \(calls[$0])" }
    }

    /// How far a search came that gave up.
    var toldAsUndecided: String {
        let order = longest.order
        var lines = ["gave up after \(steps) steps; the longest order has \(order.count) of \(calls.count) calls:"]
        lines += told(order)
        lines += ["which leaves:", "  \(longest.state)", "and nothing that could come next among:"]
        let placed = Set(order)
        let bound = calls.indices.filter { !placed.contains($0) }.compactMap { calls[$0].returned }.min() ?? .max
        let next = calls.indices.filter { !placed.contains($0) && calls[$0].called < bound }
        lines += next.suffix(16).map { "  \(calls[$0])" }
        return lines.joined(separator: "\n")
    }
}

extension History.Call {
    /// The call as if its answer had never come.
    fileprivate var unanswered: Self {
        var call = self
        call.outcome = nil
        call.returned = nil
        call.returnedAt = nil
        return call
    }
}
