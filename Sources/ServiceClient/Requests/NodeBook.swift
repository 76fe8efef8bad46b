import Synchronization

/// Which of a cluster's nodes to ask first: the one that answered last, and those that failed not before some seconds
/// have passed.
final class NodeBook: Sendable {
    private struct State {
        var preferred = 0
        /// Until when each node comes last; nil for one that did not fail.
        var failedUntil: [Duration?]
    }

    private let state: Mutex<State>
    /// How long a node that failed comes last.
    private static let avoided = Duration.seconds(5)

    init(count: Int) { state = Mutex(State(failedUntil: Array(repeating: nil, count: count))) }

    /// All nodes, the best first.
    func order(now: Duration) -> [Int] {
        state.withLock { state in
            let count = state.failedUntil.count
            if count == 1 { return [0] }
            let round = (0..<count).map { (state.preferred + $0) % count }
            if !state.failedUntil.contains(where: { $0 != nil }) { return round }
            func isAvoided(_ place: Int) -> Bool { state.failedUntil[place].map { $0 > now } ?? false }
            return round.filter { !isAvoided($0) } + round.filter { isAvoided($0) }
        }
    }

    /// A node answered, or did not.
    /// - Parameter isServing: false where it could not be reached, or says that it cannot serve now.
    func answered(_ place: Int, isServing: Bool, now: Duration) {
        state.withLock { state in
            guard state.failedUntil.indices.contains(place) else { return }
            state.failedUntil[place] = isServing ? nil : now + Self.avoided
            if isServing { state.preferred = place }
        }
    }
}
