public import Foundation

/// Tells of the changes of one zone of the private database.
// @unchecked as its superclass is: it adds what is immutable.
public final class CKRecordZoneSubscription: CKSubscription, @unchecked Sendable {
    /// The zone it looks at.
    public let zoneID: CKRecordZone.ID

    /// A subscription with a random name.
    @available(*, deprecated, renamed: "init(zoneID:subscriptionID:)")
    public convenience init(zoneID: CKRecordZone.ID) {
        self.init(zoneID: zoneID, subscriptionID: UUID().uuidString)
    }

    /// A subscription of a name that the app chose: saving it again changes nothing.
    public convenience init(zoneID: CKRecordZone.ID, subscriptionID: CKSubscription.ID) {
        self.init(zoneID: zoneID, subscriptionID: subscriptionID, content: Content(zoneID: zoneID))
    }

    private init(zoneID: CKRecordZone.ID, subscriptionID: CKSubscription.ID, content: Content) {
        self.zoneID = zoneID
        super.init(subscriptionID: subscriptionID, type: .recordZone, content: content)
    }

    /// Looks only at records of one type; nil for all.
    public var recordType: CKRecord.RecordType? {
        get { content.recordType }
        set { update { $0.recordType = newValue } }
    }

    public override func copy(with zone: NSZone? = nil) -> Any {
        CKRecordZoneSubscription(zoneID: zoneID, subscriptionID: subscriptionID, content: copiedContent)
    }

    /// Nil where the archive holds no zone subscription.
    public required init?(coder: NSCoder) {
        guard let zoneID = coder.object(CKRecordZoneID.self, "ZoneID") else { return nil }
        self.zoneID = zoneID
        super.init(coder: coder)
    }
}
