public import Foundation

// @unchecked: its parts lie behind locks; not final, as Apple's is not.
/// From where on a zone's changes are fetched, and how: `CKFetchRecordZoneChangesOperation.ZoneConfiguration`.
///
/// The class stands at the top level under the name it has in Objective-C, because Foundation on Linux archives no
/// nested classes.
public class CKFetchRecordZoneChangesConfiguration: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    /// What is known; nil for the beginning.
    @CKGuarded public var previousServerChangeToken: CKServerChangeToken? = nil
    /// The most records of one page; 0 for the server's number.
    @CKGuarded public var resultsLimit: Int = 0
    /// The fields to fetch; nil for all.
    @CKGuarded public var desiredKeys: [CKRecord.FieldKey]? = nil

    /// From the beginning, all fields.
    public override init() { super.init() }

    /// From a token on.
    public convenience init(
        previousServerChangeToken: CKServerChangeToken? = nil, resultsLimit: Int? = nil,
        desiredKeys: [CKRecord.FieldKey]? = nil
    ) {
        self.init()
        self.previousServerChangeToken = previousServerChangeToken
        self.resultsLimit = resultsLimit ?? 0
        self.desiredKeys = desiredKeys
    }

    /// A copy of the object.
    public func copy(with zone: NSZone? = nil) -> Any {
        CKFetchRecordZoneChangesConfiguration(
            previousServerChangeToken: previousServerChangeToken, resultsLimit: resultsLimit, desiredKeys: desiredKeys)
    }

    /// Always true.
    public class var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(previousServerChangeToken, "PreviousServerChangeToken")
        coder.encode(Int64(resultsLimit), forKey: "ResultsLimit")
        coder.write(desiredKeys, "DesiredKeys")
    }

    /// The configuration of an archive.
    public required init?(coder: NSCoder) {
        super.init()
        previousServerChangeToken = coder.object(CKServerChangeToken.self, "PreviousServerChangeToken")
        resultsLimit = coder.integer("ResultsLimit")
        desiredKeys = coder.texts("DesiredKeys")
    }
}

// @unchecked: all it has is a configuration, which is Sendable.
/// The older form of `CKFetchRecordZoneChangesOperation.ZoneConfiguration`: a class of its own with the same members.
///
/// The class stands at the top level under the name it has in Objective-C, because Foundation on Linux archives no
/// nested classes.
public class CKFetchRecordZoneChangesOptions: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    /// Holds the values; an operation uses this very object.
    let configuration: CKFetchRecordZoneChangesConfiguration

    /// From the beginning, all fields.
    public override init() { configuration = CKFetchRecordZoneChangesConfiguration() }

    init(_ configuration: CKFetchRecordZoneChangesConfiguration) { self.configuration = configuration }

    /// What is known; nil for the beginning.
    public var previousServerChangeToken: CKServerChangeToken? {
        get { configuration.previousServerChangeToken }
        set { configuration.previousServerChangeToken = newValue }
    }

    /// The most records of one page; 0 for the server's number.
    public var resultsLimit: Int {
        get { configuration.resultsLimit }
        set { configuration.resultsLimit = newValue }
    }

    /// The fields to fetch; nil for all.
    public var desiredKeys: [CKRecord.FieldKey]? {
        get { configuration.desiredKeys }
        set { configuration.desiredKeys = newValue }
    }

    /// A copy of the object.
    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = CKFetchRecordZoneChangesOptions()
        copy.previousServerChangeToken = previousServerChangeToken
        copy.resultsLimit = resultsLimit
        copy.desiredKeys = desiredKeys
        return copy
    }

    /// Always true.
    public class var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) { configuration.encode(with: coder) }

    /// The options of an archive.
    public required init?(coder: NSCoder) {
        guard let configuration = CKFetchRecordZoneChangesConfiguration(coder: coder) else { return nil }
        self.configuration = configuration
    }
}

extension CKFetchRecordZoneChangesOperation {
    /// The name in Swift of the type.
    public typealias ZoneConfiguration = CKFetchRecordZoneChangesConfiguration
    /// The name in Swift of the older type.
    @available(*, deprecated, renamed: "CKFetchRecordZoneChangesOperation.ZoneConfiguration")
    public typealias ZoneOptions = CKFetchRecordZoneChangesOptions
}
