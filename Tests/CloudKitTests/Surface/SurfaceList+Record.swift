extension SurfaceList {
    static let record = """
        = CKRecord M class
        M typealias RecordType = String
        M typealias FieldKey = String
        M init(recordType: CKRecord.RecordType, recordID: CKRecord.ID = _)
        M var recordType: CKRecord.RecordType { get }
        M var recordID: CKRecord.ID { get }
        M var creationDate: Date? { get }
        M var modificationDate: Date? { get }
        M var creatorUserRecordID: CKRecord.ID? { get }
        M var lastModifiedUserRecordID: CKRecord.ID? { get }
        M var recordChangeTag: String? { get }
        M func object(forKey: CKRecord.FieldKey) -> __CKRecordObjCValue?
        M func setObject(_: __CKRecordObjCValue?, forKey: CKRecord.FieldKey)
        M subscript(_: CKRecord.FieldKey) -> __CKRecordObjCValue? { get set }
        M subscript<T>(_: CKRecord.FieldKey) -> T? where T : CKRecordValueProtocol { get set }
        M func value(forKey: String) -> Any?
        M func setValue(_: Any?, forKey: String)
        S func setValuesForKeys(_: [String: Any])
        L func dictionaryWithValues(forKeys: [String]) -> [String: Any]
        M func allKeys() -> [CKRecord.FieldKey]
        M func changedKeys() -> [CKRecord.FieldKey]
        S var encryptedValues: CKRecordKeyValueSetting & Sendable { get }
        S func encodeSystemFields(with: NSCoder)
        S init?(coder: NSCoder)
        S var parent: CKRecord.Reference? { get set }
        S func setParent(_: CKRecord?)
        S func setParent(_: CKRecord.ID?)
        S var share: CKRecord.Reference? { get }
        M func makeIterator() -> CKRecordKeyValueIterator
        = CKRecord.SystemType S enum
        S static let userRecord: CKRecord.RecordType
        S static let share: CKRecord.RecordType
        = CKRecord.SystemFieldKey S enum
        S static let parent: CKRecord.FieldKey
        S static let share: CKRecord.FieldKey
        S static var recordID: CKRecord.FieldKey { get }
        S static var creationDate: CKRecord.FieldKey { get }
        S static var creatorUserRecordID: CKRecord.FieldKey { get }
        S static var modificationDate: CKRecord.FieldKey { get }
        S static var lastModifiedUserRecordID: CKRecord.FieldKey { get }
        = CKRecordKeyValueIterator M struct
        = CKRecordValueProtocol M protocol
        = *
        M typealias CKRecordValue = __CKRecordObjCValue
        = CKRecordKeyValueSetting S protocol
        S func object(forKey: String) -> __CKRecordObjCValue?
        S func setObject(_: __CKRecordObjCValue?, forKey: String)
        S subscript(_: String) -> __CKRecordObjCValue? { get set }
        S subscript<T>(_: CKRecord.FieldKey) -> T? where T : CKRecordValueProtocol { get set }
        S func allKeys() -> [String]
        S func changedKeys() -> [String]
        = CKRecord.ID M class
        M init(recordName: String)
        M init(recordName: String = _, zoneID: CKRecordZone.ID = _)
        M var recordName: String { get }
        M var zoneID: CKRecordZone.ID { get }
        = CKRecord.Reference M class
        M init(recordID: CKRecord.ID, action: CKRecord.ReferenceAction)
        M init(record: CKRecord, action: CKRecord.ReferenceAction)
        M var recordID: CKRecord.ID { get }
        M var action: CKRecord.ReferenceAction { get }
        M typealias Action = CKRecord.ReferenceAction
        = CKRecord.ReferenceAction M enum
        M case none
        M case deleteSelf
        = CKAsset M class
        M init(fileURL: URL)
        M var fileURL: URL? { get }
        = CKRecordZone M class
        M init(zoneName: String)
        M init(zoneID: CKRecordZone.ID)
        M class func default() -> CKRecordZone
        M var zoneID: CKRecordZone.ID { get }
        S var capabilities: CKRecordZone.Capabilities { get }
        S var share: CKRecord.Reference? { get }
        = CKRecordZone.ID M class
        M init(zoneName: String = _, ownerName: String = _)
        M static let default: CKRecordZone.ID
        M static let defaultZoneName: String
        M var zoneName: String { get }
        M var ownerName: String { get }
        = CKRecordZone.Capabilities S struct
        S static var fetchChanges: CKRecordZone.Capabilities { get }
        S static var atomic: CKRecordZone.Capabilities { get }
        S static var sharing: CKRecordZone.Capabilities { get }
        S static var zoneWideSharing: CKRecordZone.Capabilities { get }
        = CKServerChangeToken S class
        """

    static let query = """
        = CKQuery M class
        M init(recordType: CKRecord.RecordType, predicate: NSPredicate)
        M var recordType: CKRecord.RecordType { get }
        M var predicate: NSPredicate { get }
        M var sortDescriptors: [NSSortDescriptor]? { get set }
        = CKLocationSortDescriptor S class
        S init(key: String, relativeLocation: CLLocation)
        S var relativeLocation: CLLocation { get }
        """

    static let predicates = """
        = NSPredicate
        M init(format: String, _: Any?...)
        M init(format: String, argumentArray: [Any]?)
        = NSSortDescriptor
        M init(key: String?, ascending: Bool)
        M var key: String? { get }
        """

    static let errors = """
        = CKError M struct
        M var code: CKError.Code { get }
        M var errorCode: Int { get }
        M var errorUserInfo: [String: Any] { get }
        M var localizedDescription: String { get }
        M static var errorDomain: String { get }
        M var retryAfterSeconds: Double? { get }
        M var partialErrorsByItemID: [AnyHashable: Error]? { get }
        M var ancestorRecord: CKRecord? { get }
        M var serverRecord: CKRecord? { get }
        M var clientRecord: CKRecord? { get }
        = *
        M let CKErrorDomain: String
        M let CKPartialErrorsByItemIDKey: String
        M let CKErrorRetryAfterKey: String
        M let CKRecordChangedErrorAncestorRecordKey: String
        M let CKRecordChangedErrorServerRecordKey: String
        M let CKRecordChangedErrorClientRecordKey: String
        S let CKErrorUserDidResetEncryptedDataKey: String
        = CKError.Code M enum
        """
        + "\n" + codes.map { "\($0.mark) case \($0.name)" }.joined(separator: "\n")
        + "\n= CKError\n"
        + codes.map { "\($0.mark) static var \($0.name): CKError.Code { get }" }.joined(separator: "\n")

    /// Every code, by its number from 1 on.
    static let codes: [(mark: String, name: String)] = [
        ("S", "internalError"), ("M", "partialFailure"), ("M", "networkUnavailable"), ("M", "networkFailure"),
        ("M", "badContainer"), ("M", "serviceUnavailable"), ("M", "requestRateLimited"), ("S", "missingEntitlement"),
        ("M", "notAuthenticated"), ("M", "permissionFailure"), ("M", "unknownItem"), ("M", "invalidArguments"),
        ("S", "resultsTruncated"), ("M", "serverRecordChanged"), ("S", "serverRejectedRequest"),
        ("S", "assetFileNotFound"),
        ("S", "assetFileModified"), ("S", "incompatibleVersion"), ("S", "constraintViolation"),
        ("M", "operationCancelled"),
        ("M", "changeTokenExpired"), ("M", "batchRequestFailed"), ("M", "zoneBusy"), ("S", "badDatabase"),
        ("M", "quotaExceeded"), ("M", "zoneNotFound"), ("M", "limitExceeded"), ("S", "userDeletedZone"),
        ("S", "tooManyParticipants"), ("S", "alreadyShared"), ("M", "referenceViolation"),
        ("S", "managedAccountRestricted"),
        ("S", "participantMayNeedVerification"), ("S", "serverResponseLost"), ("S", "assetNotAvailable"),
        ("S", "accountTemporarilyUnavailable"), ("S", "participantAlreadyInvited"),
    ]

    static let preferences = """
        = NSUbiquitousKeyValueStore M class
        M class var default: NSUbiquitousKeyValueStore { get }
        M init()
        M func object(forKey: String) -> Any?
        M func set(_: Any?, forKey: String)
        M func removeObject(forKey: String)
        M func string(forKey: String) -> String?
        M func array(forKey: String) -> [Any]?
        M func dictionary(forKey: String) -> [String: Any]?
        M func data(forKey: String) -> Data?
        M func longLong(forKey: String) -> Int64
        M func double(forKey: String) -> Double
        M func bool(forKey: String) -> Bool
        M func set(_: String?, forKey: String)
        M func set(_: Data?, forKey: String)
        M func set(_: [Any]?, forKey: String)
        M func set(_: [String: Any]?, forKey: String)
        M func set(_: Int64, forKey: String)
        M func set(_: Double, forKey: String)
        M func set(_: Bool, forKey: String)
        M var dictionaryRepresentation: [String: Any] { get }
        M func synchronize() -> Bool
        M class let didChangeExternallyNotification: NSNotification.Name
        = *
        M let NSUbiquitousKeyValueStoreChangeReasonKey: String
        M let NSUbiquitousKeyValueStoreChangedKeysKey: String
        M var NSUbiquitousKeyValueStoreServerChange: Int { get }
        M var NSUbiquitousKeyValueStoreInitialSyncChange: Int { get }
        M var NSUbiquitousKeyValueStoreQuotaViolationChange: Int { get }
        M var NSUbiquitousKeyValueStoreAccountChange: Int { get }
        """
}
