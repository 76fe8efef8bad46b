import RecordModel
import RecordStore
import Testing

@testable import Service

@Suite("What a change of subscriptions costs")
struct SubscriptionCostTests {
    @Test("a token more for each four operations after the first ten, and for each MB of copies")
    func tokens() {
        var subscription = Subscription(id: "s", scope: .private, kind: .database)
        let small = ModifySubscriptions.Change.save(subscription, targets: [1, 2, 3])
        let delete = ModifySubscriptions.Change.delete(.private, id: "s")
        #expect(Subscriptions.tokens(for: [small, delete]) == 0)
        #expect(Subscriptions.tokens(for: Array(repeating: delete, count: 200)) == 47)
        subscription.info = [UInt8](repeating: 0x20, count: 10_000)
        let large = ModifySubscriptions.Change.save(subscription, targets: Array(1...16))
        #expect(Subscriptions.tokens(for: Array(repeating: large, count: 10)) == 1)
        #expect(Subscriptions.tokens(for: Array(repeating: large, count: 200)) == 47 + 32)
    }
}
