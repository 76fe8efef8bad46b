/// One search for an order: depth first, with undo.
struct LinearizationSearch<Model: HistoryModel> {
    typealias Call = History<Model.Operation, Model.Outcome>.Call

    enum Result {
        case found
        case impossible
        case exhausted
    }

    /// A place where the search chose, and what it has not tried there.
    private struct Branch {
        /// The state before the choice.
        var state: Model.State
        /// How long the order was.
        var orderCount: Int
        /// Calls that may come next, worst first: the last is tried next.
        var choices: [Int]
        /// States that the last choice may lead to beside the one that was tried.
        var alternatives: [(call: Int, state: Model.State)] = []
    }

    /// What a dead end is remembered by.
    private struct Configuration: Hashable {
        var first: Int
        var beyond: [Int32]
        var state: Model.State
    }

    private let model: Model
    /// By time of call.
    let calls: [Call]
    private let hints: [UInt64?]
    /// Whether each call changes nothing.
    private let isIdle: [Bool]
    /// The indexes of changes with unknown outcome.
    private let open: [Int]
    private let stepsMax: Int

    private var isPlaced: [Bool]
    /// The first answered call that is not in the order.
    private var first = 0
    private var deadEnds: Set<Configuration> = []
    private var state: Model.State

    /// How often the model was asked.
    private(set) var steps = 0
    /// The order so far, as indexes of calls; the whole order once it was found.
    private(set) var order: [Int] = []
    /// The longest order that led nowhere, and the state it leads to.
    private(set) var longest: (order: [Int], state: Model.State)

    /// - Parameter calls: by time of call.
    init(model: Model, calls: [Call], stepsMax: Int) {
        self.model = model
        self.calls = calls
        self.stepsMax = stepsMax
        hints = model.hints(of: calls)
        isIdle = calls.map { model.changesNothing($0.operation, outcome: $0.outcome) }
        let idle = isIdle
        open = calls.indices.filter { calls[$0].returned == nil && !idle[$0] }
        isPlaced = Array(repeating: false, count: calls.count)
        state = model.initial
        longest = ([], model.initial)
        advance()
    }

    mutating func run() -> Result {
        var branches: [Branch] = []
        while true {
            // What is settled belongs to the choice before it, and is undone with it.
            settle()
            if first == calls.count { return .found }
            if steps > stepsMax {
                keepLongest()
                return .exhausted
            }
            let isKnown = isHopeless() || (!deadEnds.isEmpty && deadEnds.contains(configuration))
            let choices = isKnown ? [] : choices()
            if choices.isEmpty { keepLongest() }
            branches.append(Branch(state: state, orderCount: order.count, choices: choices))
            if !goOn(&branches) { return .impossible }
        }
    }

    /// Tries what is next in the last branch that has anything left; false if none has.
    private mutating func goOn(_ branches: inout [Branch]) -> Bool {
        while var branch = branches.popLast() {
            undo(to: branch.orderCount)
            state = branch.state
            while branch.alternatives.isEmpty, let index = branch.choices.popLast() {
                let isUnknown = calls[index].returned == nil
                // An unknown call that would change nothing is as well left out.
                branch.alternatives = states(after: index).filter { !isUnknown || $0 != state }.map { (index, $0) }
            }
            if let (call, next) = branch.alternatives.popLast() {
                branches.append(branch)
                place(call)
                state = next
                return true
            }
            deadEnds.insert(configuration)
        }
        return false
    }

    /// Takes every answered call that changes nothing and may come now: any order in which it comes later is one in
    /// which it comes now, too.
    private mutating func settle() {
        var hasMore = true
        while hasMore {
            hasMore = false
            for index in candidates() {
                guard isIdle[index] else { continue }
                let next = states(after: index)
                if next.count == 1 && next[0] == state {
                    place(index)
                    hasMore = true
                }
            }
        }
    }

    /// Calls that may be next in the order, the most likely last.
    private func choices() -> [Int] {
        let bound = earliestReturn()
        let unknown = open.prefix(while: { calls[$0].called < bound }).filter { !isPlaced[$0] }
        let answered = candidates()
        let frontier = answered.compactMap { hints[$0] }.min() ?? 0
        // Unknown calls fill what answers leave open: first the ones that are known to have done so about now, then
        // those of which nothing was ever seen, at last those that were seen later.
        let fillers = unknown.map { index -> (Int, UInt64, Int, Int) in
            guard let hint = hints[index] else { return (1, 0, 0, index) }
            return (hint <= frontier ? 0 : 2, hint, .max, index)
        }
        let ranked = answered.map { (0, hints[$0] ?? 0, calls[$0].returned ?? .max, $0) } + fillers
        return ranked.sorted { $0 > $1 }.map(\.3)
    }

    /// Whether an answer that is still to come can no longer be given. All that are left come later, so as many as are
    /// worth it are looked at: more of them where the last call was put there by guess.
    private mutating func isHopeless() -> Bool {
        var left = order.last.map { calls[$0].returned == nil } ?? false ? 256 : 32
        var index = first
        while index < calls.count, left > 0 {
            if !isPlaced[index], let outcome = calls[index].outcome {
                steps += 1
                if !model.mayCome(calls[index].operation, outcome: outcome, after: state) { return true }
                left -= 1
            }
            index += 1
        }
        return false
    }

    private mutating func states(after index: Int) -> [Model.State] {
        steps += 1
        return model.states(after: calls[index].operation, outcome: calls[index].outcome, from: state)
    }

    /// Before this place the next call of the order must have been made.
    private func earliestReturn() -> Int {
        var bound = Int.max
        var index = first
        while index < calls.count, calls[index].called < bound {
            if !isPlaced[index], let returned = calls[index].returned { bound = min(bound, returned) }
            index += 1
        }
        return bound
    }

    /// The answered calls that may be next, by time of call.
    private func candidates() -> [Int] {
        let bound = earliestReturn()
        var found: [Int] = []
        var index = first
        while index < calls.count, calls[index].called < bound {
            if !isPlaced[index], calls[index].returned != nil { found.append(index) }
            index += 1
        }
        return found
    }

    private var configuration: Configuration {
        // Unknown calls that were taken stay part of what was done, however long ago.
        var beyond = open.filter { isPlaced[$0] }.map { Int32($0) }
        // Whatever was placed after it had been called before it was answered.
        let bound = first < calls.count ? calls[first].returned ?? .max : 0
        var index = first
        while index < calls.count, calls[index].called < bound {
            if isPlaced[index], calls[index].returned != nil { beyond.append(Int32(index)) }
            index += 1
        }
        return Configuration(first: first, beyond: beyond, state: state)
    }

    private mutating func keepLongest() {
        if order.count > longest.order.count { longest = (order, state) }
    }

    private mutating func place(_ index: Int) {
        isPlaced[index] = true
        order.append(index)
        if index == first { advance() }
    }

    private mutating func undo(to count: Int) {
        while order.count > count {
            let index = order.removeLast()
            isPlaced[index] = false
            if calls[index].returned != nil { first = min(first, index) }
        }
    }

    private mutating func advance() {
        while first < calls.count, isPlaced[first] || calls[first].returned == nil { first += 1 }
    }
}
