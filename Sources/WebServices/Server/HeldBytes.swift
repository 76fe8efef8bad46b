/// Bytes that a node holds for a client, counted in its `BodyBudget` until they are let go.
final class HeldBytes: Sendable {
    private let count: Int
    private let budget: BodyBudget

    /// Nil where the node holds as many as it may.
    init?(_ count: Int, in budget: BodyBudget) {
        guard budget.take(count) else { return nil }
        self.count = count
        self.budget = budget
    }

    deinit { budget.release(count) }
}
