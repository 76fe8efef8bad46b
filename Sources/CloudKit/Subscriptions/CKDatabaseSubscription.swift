public import Foundation

/// Tells of the changes of all custom zones of the private or the shared database.
// @unchecked as its superclass is: it adds nothing that is stored.
public final class CKDatabaseSubscription: CKSubscription, @unchecked Sendable {
    /// A subscription with a random name.
    @available(*, deprecated, renamed: "init(subscriptionID:)")
    public convenience init() { self.init(subscriptionID: UUID().uuidString) }

    /// A subscription of a name that the app chose: saving it again changes nothing.
    public convenience init(subscriptionID: CKSubscription.ID) {
        self.init(subscriptionID: subscriptionID, type: .database)
    }

    private override init(subscriptionID: CKSubscription.ID, type: SubscriptionType, content: Content = Content()) {
        super.init(subscriptionID: subscriptionID, type: type, content: content)
    }

    /// Looks only at records of one type; nil for all.
    public var recordType: CKRecord.RecordType? {
        get { content.recordType }
        set { update { $0.recordType = newValue } }
    }

    public override func copy(with zone: NSZone? = nil) -> Any {
        CKDatabaseSubscription(subscriptionID: subscriptionID, type: .database, content: copiedContent)
    }

    /// Nil where the archive holds no subscription.
    public required init?(coder: NSCoder) { super.init(coder: coder) }
}
