public import Foundation

/// Who a user is, as far as the server says. Immutable.
public final class CKUserIdentity: NSObject, _CKImmutable, Sendable {
    /// What an identity is looked up by.
    public typealias LookupInfo = CKUserIdentityLookupInfo

    /// The user's record; nil where the user is not known here.
    public let userRecordID: CKRecord.ID?
    /// What the identity was looked up by; nil where it was not.
    public let lookupInfo: CKUserIdentity.LookupInfo?
    /// The user's name, where the user lets it be seen.
    public let nameComponents: PersonNameComponents?
    /// Whether the user has an account.
    public let hasiCloudAccount: Bool

    /// Identities come from the server.
    init(
        userRecordID: CKRecord.ID?, lookupInfo: LookupInfo? = nil, nameComponents: PersonNameComponents? = nil,
        hasiCloudAccount: Bool
    ) {
        self.userRecordID = userRecordID
        self.lookupInfo = lookupInfo
        self.nameComponents = nameComponents
        self.hasiCloudAccount = hasiCloudAccount
    }

    /// Cards of an address book; always empty here.
    @available(*, deprecated, message: "There is no address book")
    public var contactIdentifiers: [String] { [] }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKUserIdentity else { return false }
        return userRecordID == other.userRecordID && lookupInfo == other.lookupInfo
            && nameComponents == other.nameComponents && hasiCloudAccount == other.hasiCloudAccount
    }

    /// Equal for equal objects.
    public override var hash: Int { userRecordID?.hash ?? lookupInfo?.hash ?? 0 }

    /// The record name only: names and addresses are the user's.
    public override var description: String { "<CKUserIdentity: \(userRecordID?.recordName ?? "not known")>" }

    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(userRecordID, "UserRecordID")
        coder.write(lookupInfo, "LookupInfo")
        coder.write(codable: nameComponents, "ZonekeeperNameComponents")
        coder.encode(hasiCloudAccount, forKey: "HasICloudAccount")
    }

    /// Nil where the archive holds no identity.
    public convenience init?(coder: NSCoder) {
        guard coder.containsValue(forKey: "HasICloudAccount") else { return nil }
        self.init(
            userRecordID: coder.object(CKRecordID.self, "UserRecordID"),
            lookupInfo: coder.object(CKUserIdentityLookupInfo.self, "LookupInfo"),
            nameComponents: coder.codable(PersonNameComponents.self, "ZonekeeperNameComponents"),
            hasiCloudAccount: coder.decodeBool(forKey: "HasICloudAccount"))
    }
}

/// What an identity is looked up by, one of three: `CKUserIdentity.LookupInfo`.
///
/// Immutable; equal by value.
public final class CKUserIdentityLookupInfo: NSObject, _CKImmutable, Sendable {
    /// An address of electronic mail.
    public let emailAddress: String?
    /// A telephone number.
    public let phoneNumber: String?
    /// The user's record.
    public let userRecordID: CKRecord.ID?

    /// Looks up by address.
    public convenience init(emailAddress: String) {
        self.init(emailAddress: emailAddress, phoneNumber: nil, userRecordID: nil)
    }

    /// Looks up by telephone number.
    public convenience init(phoneNumber: String) {
        self.init(emailAddress: nil, phoneNumber: phoneNumber, userRecordID: nil)
    }

    /// Looks up by the user's record.
    public convenience init(userRecordID: CKRecord.ID) {
        self.init(emailAddress: nil, phoneNumber: nil, userRecordID: userRecordID)
    }

    private init(emailAddress: String?, phoneNumber: String?, userRecordID: CKRecord.ID?) {
        self.emailAddress = emailAddress
        self.phoneNumber = phoneNumber
        self.userRecordID = userRecordID
    }

    /// One for each address, in order.
    public class func lookupInfos(withEmails emails: [String]) -> [CKUserIdentity.LookupInfo] {
        emails.map { CKUserIdentityLookupInfo(emailAddress: $0) }
    }

    /// One for each telephone number, in order.
    public class func lookupInfos(withPhoneNumbers phoneNumbers: [String]) -> [CKUserIdentity.LookupInfo] {
        phoneNumbers.map { CKUserIdentityLookupInfo(phoneNumber: $0) }
    }

    /// One for each user's record, in order.
    public class func lookupInfos(with recordIDs: [CKRecord.ID]) -> [CKUserIdentity.LookupInfo] {
        recordIDs.map { CKUserIdentityLookupInfo(userRecordID: $0) }
    }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKUserIdentityLookupInfo else { return false }
        return emailAddress == other.emailAddress && phoneNumber == other.phoneNumber
            && userRecordID == other.userRecordID
    }

    /// Equal for equal objects.
    public override var hash: Int { combinedHash(emailAddress, phoneNumber, userRecordID) }

    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(emailAddress, "EmailAddress")
        coder.write(phoneNumber, "PhoneNumber")
        coder.write(userRecordID, "RecordID")
    }

    /// Nil where the archive holds none of the three.
    public convenience init?(coder: NSCoder) {
        let (email, phone) = (coder.text("EmailAddress"), coder.text("PhoneNumber"))
        let user = coder.object(CKRecordID.self, "RecordID")
        guard email != nil || phone != nil || user != nil else { return nil }
        self.init(emailAddress: email, phoneNumber: phone, userRecordID: user)
    }
}

/// What someone who was invited gets to know of a share before accepting it: `CKShare.Metadata`.
///
/// Immutable.
public final class CKShareMetadata: NSObject, _CKImmutable, Sendable {
    /// The container that holds the share.
    public let containerIdentifier: String
    /// The share.
    public let share: CKShare
    /// The record whose hierarchy is shared; nil for the share of a zone.
    public let hierarchicalRootRecordID: CKRecord.ID?
    /// That record itself, where it was asked for.
    public let rootRecord: CKRecord?
    /// What the user who asks is in the share.
    public let participantRole: CKShare.ParticipantRole
    /// Whether the user who asks accepted it.
    public let participantStatus: CKShare.ParticipantAcceptanceStatus
    /// What the user who asks may do.
    public let participantPermission: CKShare.ParticipantPermission
    /// Who shares.
    public let ownerIdentity: CKUserIdentity

    /// What the server says of a share to one user.
    struct Standing: Sendable {
        var role: CKShare.ParticipantRole
        var status: CKShare.ParticipantAcceptanceStatus
        var permission: CKShare.ParticipantPermission
    }

    /// Metadata come from the server.
    init(
        containerIdentifier: String, share: CKShare, root: (id: CKRecord.ID?, record: CKRecord?), standing: Standing,
        ownerIdentity: CKUserIdentity
    ) {
        self.containerIdentifier = containerIdentifier
        self.share = share
        hierarchicalRootRecordID = root.id
        rootRecord = root.record
        participantRole = standing.role
        participantStatus = standing.status
        participantPermission = standing.permission
        self.ownerIdentity = ownerIdentity
    }

    /// The text for logs.
    public override var description: String {
        "<CKShareMetadata: container=\(containerIdentifier), share=\(share.recordID.recordName)>"
    }

    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(containerIdentifier, "ContainerIdentifier")
        coder.write(share, "Share")
        coder.write(hierarchicalRootRecordID, "RootRecordID")
        coder.write(rootRecord, "RootRecord")
        coder.write(ownerIdentity, "OwnerIdentity")
        coder.encode(Int64(participantRole.rawValue), forKey: "Role")
        coder.encode(Int64(participantStatus.rawValue), forKey: "Status")
        coder.encode(Int64(participantPermission.rawValue), forKey: "Permission")
    }

    /// Nil where the archive holds no metadata.
    public convenience init?(coder: NSCoder) {
        guard let container = coder.text("ContainerIdentifier"), let share = coder.object(CKShare.self, "Share"),
            let owner = coder.object(CKUserIdentity.self, "OwnerIdentity")
        else { return nil }
        let standing = Standing(
            role: .init(rawValue: coder.integer("Role")) ?? .unknown,
            status: .init(rawValue: coder.integer("Status")) ?? .unknown,
            permission: .init(rawValue: coder.integer("Permission")) ?? .unknown)
        self.init(
            containerIdentifier: container, share: share,
            root: (coder.object(CKRecordID.self, "RootRecordID"), coder.object(CKRecord.self, "RootRecord")),
            standing: standing, ownerIdentity: owner)
    }
}

extension CKShare {
    /// The name in Swift of the type.
    public typealias Metadata = CKShareMetadata
}
