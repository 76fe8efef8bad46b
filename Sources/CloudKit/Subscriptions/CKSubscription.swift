public import Foundation
import RecordModel
import Synchronization

// @unchecked: what changes is `state`, behind its lock, and subclasses add what is immutable.
/// Asks the server to tell of changes: one of `CKQuerySubscription`, `CKRecordZoneSubscription` and
/// `CKDatabaseSubscription`.
public class CKSubscription: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    /// The name of a subscription, unique within the user's database.
    public typealias ID = String
    /// The name in Swift of the type.
    public typealias NotificationInfo = CKNotificationInfo

    /// What a subscription looks at.
    public enum SubscriptionType: Int, Hashable, Sendable {
        /// The records that match a query.
        case query = 1
        /// The records of a zone.
        case recordZone = 2
        /// All zones of a database.
        case database = 3
    }

    /// Its name.
    public let subscriptionID: CKSubscription.ID
    /// What it looks at.
    public let subscriptionType: CKSubscription.SubscriptionType
    private let state: Mutex<Content>

    struct Content: Sendable, Equatable {
        var notificationInfo: CKNotificationInfo?
        var zoneID: CKRecordZoneID?
        var recordType: String?
    }

    init(subscriptionID: CKSubscription.ID, type: SubscriptionType, content: Content = Content()) {
        self.subscriptionID = subscriptionID
        subscriptionType = type
        state = Mutex(content)
    }

    /// What its notifications look like: a copy of what was set. Nil shows nothing.
    public var notificationInfo: CKSubscription.NotificationInfo? {
        get { content.notificationInfo }
        set {
            let copy = newValue?.copy() as? CKNotificationInfo
            update { $0.notificationInfo = copy }
        }
    }

    final var content: Content { state.withLock { $0 } }
    final func update(_ change: (inout Content) -> Void) { state.withLock { change(&$0) } }

    /// What goes into a copy: its own notification info.
    final var copiedContent: Content {
        var content = content
        content.notificationInfo = content.notificationInfo?.copy() as? CKNotificationInfo
        return content
    }

    /// Whether the other object is a subscription of the same name that looks at the same.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKSubscription else { return false }
        return subscriptionID == other.subscriptionID && subscriptionType == other.subscriptionType
            && content == other.content
    }

    /// Equal for equal objects.
    public override var hash: Int { subscriptionID.hashValue }

    /// The text for logs.
    public override var description: String { "<\(Self.self): \(subscriptionID)>" }

    /// One of its own; every subclass makes its kind.
    public func copy(with zone: NSZone? = nil) -> Any {
        CKSubscription(subscriptionID: subscriptionID, type: subscriptionType, content: copiedContent)
    }

    /// Always true.
    public class var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        let content = content
        coder.write(subscriptionID, "SubscriptionID")
        coder.encode(Int64(subscriptionType.rawValue), forKey: "SubscriptionType")
        coder.write(content.notificationInfo, "NotificationInfo")
        coder.write(content.zoneID, "ZoneID")
        coder.write(content.recordType, "RecordType")
    }

    /// Nil where the archive holds no subscription.
    public required init?(coder: NSCoder) {
        guard let id = coder.text("SubscriptionID"),
            let type = SubscriptionType(rawValue: coder.integer("SubscriptionType"))
        else { return nil }
        subscriptionID = id
        subscriptionType = type
        state = Mutex(
            Content(
                notificationInfo: coder.object(CKNotificationInfo.self, "NotificationInfo"),
                zoneID: coder.object(CKRecordZoneID.self, "ZoneID"), recordType: coder.text("RecordType")))
    }
}

// @unchecked as its superclass is: it adds what is immutable.
/// Tells of the records of one type that match a predicate, in the public or the private database.
public final class CKQuerySubscription: CKSubscription, @unchecked Sendable {
    /// On what it tells.
    public struct Options: OptionSet, Sendable {
        /// The bits.
        public let rawValue: UInt
        /// Creates options from their bits.
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

    /// Whether the other object is a subscription of the same name that looks at the same.
    public override func isEqual(_ object: Any?) -> Bool {
        guard super.isEqual(object), let other = object as? CKQuerySubscription else { return false }
        return querySubscriptionOptions == other.querySubscriptionOptions && form == other.form
            && recordType == other.recordType
    }

    /// What the query asks for; nil where its predicate is wrong.
    private var form: JSONValue? { try? query.webForm(zone: nil, distanceUnit: .kilometers) }

    /// What the server is asked for. It keeps the predicate's archive too, from which the predicate is made again.
    /// - Parameter distanceUnit: what a radius in the predicate is in.
    /// - Throws: `invalidArguments` for a predicate that the server cannot evaluate.
    func queryForm(_ distanceUnit: UnitLength) throws(CKError) -> JSONValue {
        guard case .object(let members)? = try query.webForm(zone: zoneID, distanceUnit: distanceUnit) else {
            throw CKError(.invalidArguments, reason: "a predicate that is always false matches nothing")
        }
        return .object(members + [JSONValue.Member("predicate", .string(PredicateArchive.text(of: query.reading)))])
    }

    /// The predicate of a query: the one that `queryForm` kept, else one that says what the filters of another program
    /// ask for.
    /// - Parameters:
    ///   - zone: the zone that the subscription looks at; nil for all.
    ///   - distanceUnit: what a radius in the predicate is to be in.
    /// - Throws: `invalidArguments` where no predicate says so.
    static func predicate(
        of query: JSONValue, in zone: CKRecordZone.ID?, _ distanceUnit: UnitLength
    ) throws(CKError) -> NSPredicate {
        if let predicate = query["predicate"]?.string.flatMap({ PredicateArchive.predicate(from: $0) }) {
            return predicate
        }
        let reader = FilterReader(zone: zone ?? .default, distanceUnit: distanceUnit)
        return try reader.predicate(query["filterBy"]?.array ?? [])
    }

    /// A copy of the object.
    public override func copy(with zone: NSZone? = nil) -> Any {
        CKQuerySubscription(
            subscriptionID: subscriptionID, query: query, options: querySubscriptionOptions, content: copiedContent)
    }

    /// Archives the object.
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

// @unchecked as its superclass is: it adds what is immutable.
/// Tells of the changes of one zone of the private database.
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

    /// A copy of the object.
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

// @unchecked as its superclass is: it adds nothing that is stored.
/// Tells of the changes of all custom zones of the private or the shared database.
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

    /// A copy of the object.
    public override func copy(with zone: NSZone? = nil) -> Any {
        CKDatabaseSubscription(subscriptionID: subscriptionID, type: .database, content: copiedContent)
    }

    /// Nil where the archive holds no subscription.
    public required init?(coder: NSCoder) { super.init(coder: coder) }
}
