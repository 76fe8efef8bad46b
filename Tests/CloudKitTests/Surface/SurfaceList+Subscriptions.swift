extension SurfaceList {
    static let subscriptions = """
        = CKSubscription M class
        M typealias ID = String
        M var subscriptionID: CKSubscription.ID { get }
        M var subscriptionType: CKSubscription.SubscriptionType { get }
        M var notificationInfo: CKSubscription.NotificationInfo? { get set }
        = CKSubscription.SubscriptionType M enum
        M case query
        M case recordZone
        M case database
        = CKQuerySubscription M class
        M init(recordType: CKRecord.RecordType, predicate: NSPredicate, subscriptionID: CKSubscription.ID, options: CKQuerySubscription.Options = _)
        M init(recordType: CKRecord.RecordType, predicate: NSPredicate, options: CKQuerySubscription.Options = _)
        M var zoneID: CKRecordZone.ID? { get set }
        M var recordType: CKRecord.RecordType? { get }
        M var predicate: NSPredicate { get }
        M var querySubscriptionOptions: CKQuerySubscription.Options { get }
        = CKQuerySubscription.Options M struct
        M static var firesOnRecordCreation: CKQuerySubscription.Options { get }
        M static var firesOnRecordUpdate: CKQuerySubscription.Options { get }
        M static var firesOnRecordDeletion: CKQuerySubscription.Options { get }
        M static var firesOnce: CKQuerySubscription.Options { get }
        = CKRecordZoneSubscription S class
        S init(zoneID: CKRecordZone.ID, subscriptionID: CKSubscription.ID)
        S var zoneID: CKRecordZone.ID { get }
        S var recordType: CKRecord.RecordType? { get set }
        = CKDatabaseSubscription S class
        S init(subscriptionID: CKSubscription.ID)
        S var recordType: CKRecord.RecordType? { get set }
        = CKSubscription.NotificationInfo M class
        M init()
        M init(alertBody: String? = _, alertLocalizationKey: String? = _, alertLocalizationArgs: [CKRecord.FieldKey] = _, title: String? = _, titleLocalizationKey: String? = _, titleLocalizationArgs: [CKRecord.FieldKey] = _, subtitle: String? = _, subtitleLocalizationKey: String? = _, subtitleLocalizationArgs: [CKRecord.FieldKey] = _, alertActionLocalizationKey: String? = _, alertLaunchImage: String? = _, soundName: String? = _, desiredKeys: [CKRecord.FieldKey] = _, shouldBadge: Bool = _, shouldSendContentAvailable: Bool = _, shouldSendMutableContent: Bool = _, category: String? = _, collapseIDKey: String? = _)
        M var alertBody: String? { get set }
        M var alertLocalizationKey: String? { get set }
        M var alertLocalizationArgs: [CKRecord.FieldKey]? { get set }
        M var title: String? { get set }
        M var titleLocalizationKey: String? { get set }
        M var titleLocalizationArgs: [CKRecord.FieldKey]? { get set }
        M var subtitle: String? { get set }
        M var subtitleLocalizationKey: String? { get set }
        M var subtitleLocalizationArgs: [CKRecord.FieldKey]? { get set }
        M var alertActionLocalizationKey: String? { get set }
        M var alertLaunchImage: String? { get set }
        M var soundName: String? { get set }
        M var desiredKeys: [CKRecord.FieldKey]? { get set }
        M var shouldBadge: Bool { get set }
        M var shouldSendContentAvailable: Bool { get set }
        M var shouldSendMutableContent: Bool { get set }
        M var category: String? { get set }
        M var collapseIDKey: String? { get set }
        = CKNotification S class
        S init?(fromRemoteNotificationDictionary: [AnyHashable: Any])
        S var notificationType: CKNotification.NotificationType { get }
        S var notificationID: CKNotification.ID? { get }
        S var containerIdentifier: String? { get }
        S var subscriptionID: CKSubscription.ID? { get }
        S var subscriptionOwnerUserRecordID: CKRecord.ID? { get }
        S var isPruned: Bool { get }
        = CKNotification.ID S class
        = CKNotification.NotificationType S enum
        S case query
        S case recordZone
        S case readNotification
        S case database
        = CKQueryNotification S class
        S var queryNotificationReason: CKQueryNotification.Reason { get }
        S var recordFields: [String: Any]? { get }
        S var recordID: CKRecord.ID? { get }
        S var databaseScope: CKDatabase.Scope { get }
        = CKQueryNotification.Reason S enum
        S case recordCreated
        S case recordUpdated
        S case recordDeleted
        = CKRecordZoneNotification S class
        S var recordZoneID: CKRecordZone.ID? { get }
        S var databaseScope: CKDatabase.Scope { get }
        = CKDatabaseNotification S class
        S var databaseScope: CKDatabase.Scope { get }
        """

    static let sharing = """
        = CKShare S class
        S init(rootRecord: CKRecord)
        S init(rootRecord: CKRecord, shareID: CKRecord.ID)
        S init(recordZoneID: CKRecordZone.ID)
        S var owner: CKShare.Participant { get }
        S var participants: [CKShare.Participant] { get }
        S var currentUserParticipant: CKShare.Participant? { get }
        S var publicPermission: CKShare.ParticipantPermission { get set }
        S var url: URL? { get }
        S func addParticipant(_: CKShare.Participant)
        S func removeParticipant(_: CKShare.Participant)
        = CKShare.SystemFieldKey S enum
        S static let title: CKRecord.FieldKey
        S static let thumbnailImageData: CKRecord.FieldKey
        S static let shareType: CKRecord.FieldKey
        = CKShare.Participant S class
        S typealias ID = String
        S typealias Role = CKShare.ParticipantRole
        S typealias Permission = CKShare.ParticipantPermission
        S typealias AcceptanceStatus = CKShare.ParticipantAcceptanceStatus
        S var userIdentity: CKUserIdentity { get }
        S var role: CKShare.ParticipantRole { get set }
        S var permission: CKShare.ParticipantPermission { get set }
        S var acceptanceStatus: CKShare.ParticipantAcceptanceStatus { get }
        S var participantID: CKShare.Participant.ID { get }
        = CKShare.ParticipantRole S enum
        S case unknown
        S case owner
        S case administrator
        S case privateUser
        S case publicUser
        = CKShare.ParticipantPermission S enum
        S case unknown
        S case none
        S case readOnly
        S case readWrite
        = CKShare.ParticipantAcceptanceStatus S enum
        S case unknown
        S case pending
        S case accepted
        S case removed
        = CKShare.Metadata S class
        S var containerIdentifier: String { get }
        S var share: CKShare { get }
        S var hierarchicalRootRecordID: CKRecord.ID? { get }
        S var rootRecord: CKRecord? { get }
        S var participantRole: CKShare.ParticipantRole { get }
        S var participantStatus: CKShare.ParticipantAcceptanceStatus { get }
        S var participantPermission: CKShare.ParticipantPermission { get }
        S var ownerIdentity: CKUserIdentity { get }
        = CKUserIdentity S class
        S var userRecordID: CKRecord.ID? { get }
        S var lookupInfo: CKUserIdentity.LookupInfo? { get }
        S var nameComponents: PersonNameComponents? { get }
        S var hasiCloudAccount: Bool { get }
        = CKUserIdentity.LookupInfo S class
        S init(emailAddress: String)
        S init(phoneNumber: String)
        S init(userRecordID: CKRecord.ID)
        S var emailAddress: String? { get }
        S var phoneNumber: String? { get }
        S var userRecordID: CKRecord.ID? { get }
        """
}
