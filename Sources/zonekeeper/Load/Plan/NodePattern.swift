/// Which node each request of a run goes to.
enum NodePattern: Hashable, Sendable {
    /// One after the other.
    case even
    /// All to the first node.
    case one
    /// All to one node, which is the next one every so many seconds.
    case moving(seconds: Double)

    /// Reads `even`, `one` or `moving:5`; nil for anything else.
    init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        switch (parts[0], parts.count) {
        case ("even", 1): self = .even
        case ("one", 1): self = .one
        case ("moving", 2):
            guard let seconds = Double(parts[1]), seconds > 0, seconds <= 86_400 else { return nil }
            self = .moving(seconds: seconds)
        default: return nil
        }
    }

    var name: String {
        switch self {
        case .even: "even"
        case .one: "one"
        case .moving(let seconds): "moving:\(seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)")"
        }
    }

    /// - Parameters:
    ///   - turn: number of the request, or of the worker in a closed loop, which stays with its node.
    ///   - nanoseconds: since the start.
    /// - Returns: an index below `count`.
    func target(turn: Int, nanoseconds: UInt64, count: Int) -> Int {
        switch self {
        case .even: turn % count
        case .one: 0
        case .moving(let seconds): Int((Double(nanoseconds) / 1_000_000_000 / seconds).rounded(.down)) % count
        }
    }
}
