import Synchronization

/// A count that tasks share.
final class Tally: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .sequentiallyConsistent) }

    /// The count afterwards.
    @discardableResult
    func add(_ amount: Int) -> Int { count.add(amount, ordering: .sequentiallyConsistent).newValue }
}
