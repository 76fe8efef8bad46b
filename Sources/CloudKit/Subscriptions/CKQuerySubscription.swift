public import Foundation

/// Tells of the records of one type that match a predicate, in the public or the private database.
// @unchecked as its superclass is: it adds what is immutable.
public final class CKQuerySubscription: CKSubscription, @unchecked Sendable {
    /// On what it tells.
    public struct Options: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// A record that matches is created.
        public static var firesOnRecordCreation: Options { Options(rawValue: 1) }
        /// A record that matches is changed.
        public static var firesOnRecordUpdate: Options { Options(rawValue: 2) }
        /// A record that matches is deleted.
        public static var firesOnRecordDeletion: Options { Options(rawValue: 4) }
        /// Only the first time; then the subscription is gone.
        public static var firesOnce: Options { Options(rawValue: 8) }
    }

    /// On what it tells.
    public let querySubscriptionOptions: CKQuerySubscription.Options
    /// Type and predicate; a wrong predicate shows when the subscription is saved.
    let query: CKQuery

    /// A subscription with a random name.
    public convenience init(
        recordType: CKRecord.RecordType, predicate: NSPredicate,
        options querySubscriptionOptions: CKQuerySubscription.Options = [
            .firesOnRecordCreation, .firesOnRecordUpdate, .firesOnRecordDeletion,
        ]
    ) {
        self.init(
            recordType: recordType, predicate: predicate, subscriptionID: UUID().uuidString,
            options: querySubscriptionOptions)
    }

    /// A subscription of a name that the app chose: saving it again changes nothing.
    public convenience init(
        recordType: CKRecord.RecordType, predicate: NSPredicate, subscriptionID: CKSubscription.ID,
        options querySubscriptionOptions: CKQuerySubscription.Options = [
            .firesOnRecordCreation, .firesOnRecordUpdate, .firesOnRecordDeletion,
        ]
    ) {
        self.init(
            subscriptionID: subscriptionID, query: CKQuery(recordType: recordType, predicate: predicate),
            options: querySubscriptionOptions, content: Content())
    }

    private init(subscriptionID: CKSubscription.ID, query: CKQuery, options: Options, content: Content) {
        self.query = query
        querySubscriptionOptions = options
        super.init(subscriptionID: subscriptionID, type: .query, content: content)
    }

    /// The type of the records it looks at.
    public var recordType: CKRecord.RecordType? { query.recordType }
    /// What they have to match.
    public var predicate: NSPredicate { query.predicate }
    /// The zone it looks at; nil for all of the database.
    public var zoneID: CKRecordZone.ID? {
        get { content.zoneID }
        set { update { $0.zoneID = newValue } }
    }

    public override func copy(with zone: NSZone? = nil) -> Any {
        CKQuerySubscription(
            subscriptionID: subscriptionID, query: query, options: querySubscriptionOptions, content: copiedContent)
    }

    public override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.write(query, "Query")
        coder.encode(Int64(querySubscriptionOptions.rawValue), forKey: "Options")
    }

    /// Nil where the archive holds no query subscription.
    public required init?(coder: NSCoder) {
        guard let query = coder.object(CKQuery.self, "Query") else { return nil }
        self.query = query
        querySubscriptionOptions = Options(rawValue: UInt(truncatingIfNeeded: coder.integer("Options")))
        super.init(coder: coder)
    }
}
