public import Foundation
import Synchronization

// @unchecked as its superclass is: what it adds lies behind a lock.
/// A record that says with whom a hierarchy of records, or a whole zone, is shared.
///
/// Save it together with its root record in one modification. The server does not have sharing yet: the save fails and
/// says so.
public class CKShare: CKRecord, @unchecked Sendable {
    private let sharing: Mutex<Sharing>

    private struct Sharing: Sendable {
        /// One of the participants, who stays.
        let owner: CKShareParticipant
        var participants: [CKShareParticipant]
        var publicPermission = ParticipantPermission.none
        var url: URL?

        /// A share of the user who asks.
        init() {
            let identity = CKUserIdentity(
                userRecordID: CKRecord.ID(recordName: CKCurrentUserDefaultName), hasiCloudAccount: true)
            owner = CKShareParticipant(
                userIdentity: identity, role: .owner, permission: .readWrite, acceptanceStatus: .accepted)
            participants = [owner]
        }

        /// Nil if the share has no owner.
        init?(participants: [CKShareParticipant], publicPermission: ParticipantPermission, url: URL?) {
            guard let owner = participants.first(where: { $0.role == .owner }) else { return nil }
            self.owner = owner
            self.participants = participants
            self.publicPermission = publicPermission
            self.url = url
        }

        /// The same with participants of its own.
        func copy() -> Sharing {
            let copies = participants.map { $0.copy() as? CKShareParticipant ?? $0 }
            return Sharing(participants: copies, publicPermission: publicPermission, url: url) ?? self
        }
    }

    /// Shares a record and all that have it as parent, under a name made up here. The record's `share` names it.
    public convenience init(rootRecord: CKRecord) {
        let name = "Share-\(UUID().uuidString)"
        self.init(
            rootRecord: rootRecord, shareID: CKRecord.ID(recordName: name, zoneID: rootRecord.recordID.zoneID))
    }

    /// Shares a record and all that have it as parent. The record's `share` names the share.
    public init(rootRecord: CKRecord, shareID: CKRecord.ID) {
        sharing = Mutex(Sharing())
        super.init(type: SystemType.share, id: shareID, state: RecordState())
        rootRecord.update { $0.setShare(CKReference(recordID: shareID, action: .none)) }
    }

    /// Shares a zone with all its records.
    public init(recordZoneID: CKRecordZone.ID) {
        sharing = Mutex(Sharing())
        let id = CKRecord.ID(recordName: CKRecordNameZoneWideShare, zoneID: recordZoneID)
        super.init(type: SystemType.share, id: id, state: RecordState())
    }

    private init(copying share: CKShare) {
        sharing = Mutex(share.content.copy())
        super.init(type: share.recordType, id: share.recordID, state: share.current)
    }

    // MARK: Who takes part

    /// Everyone who takes part and whom the user may see, the owner among them.
    public var participants: [CKShare.Participant] { content.participants }

    /// Who shares.
    public var owner: CKShare.Participant { content.owner }

    /// The user who asks; nil where the user does not take part.
    public var currentUserParticipant: CKShare.Participant? {
        content.participants.first { $0.userIdentity.userRecordID?.recordName == CKCurrentUserDefaultName }
    }

    /// What everyone who has the share's URL may do. At first nothing: only invited users may use the share.
    ///
    /// Setting it to something else drops the participants who have not accepted yet, setting it back to none drops all
    /// but the owner, as the server does.
    public var publicPermission: CKShare.ParticipantPermission {
        get { content.publicPermission }
        set {
            sharing.withLock { sharing in
                guard sharing.publicPermission != newValue else { return }
                sharing.publicPermission = newValue
                sharing.participants.removeAll { participant in
                    participant !== sharing.owner && (newValue == .none || participant.acceptanceStatus == .pending)
                }
            }
        }
    }

    /// The share's address, to invite by; nil before it was saved.
    public var url: URL? { content.url }

    /// Lets a user take part. One with the same identity gets the new one's role and permission instead.
    public func addParticipant(_ participant: CKShare.Participant) {
        sharing.withLock { sharing in
            let place = sharing.participants.firstIndex { $0.userIdentity == participant.userIdentity }
            guard let place else { return sharing.participants.append(participant) }
            if sharing.participants[place] !== sharing.owner { sharing.participants[place].role = participant.role }
            sharing.participants[place].permission = participant.permission
        }
    }

    /// Ends a participation; the owner stays.
    public func removeParticipant(_ participant: CKShare.Participant) {
        sharing.withLock { sharing in
            sharing.participants.removeAll {
                $0 !== sharing.owner && $0.participantID == participant.participantID
            }
        }
    }

    private var content: Sharing { sharing.withLock { $0 } }

    // MARK: Copying and coding

    /// A share of its own, with participants of its own.
    public override func copy(with zone: NSZone? = nil) -> Any { CKShare(copying: self) }

    /// Archives the object.
    public override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        encodeSharing(with: coder)
    }

    /// Archives participants, permission and address too.
    public override func encodeSystemFields(with coder: NSCoder) {
        super.encodeSystemFields(with: coder)
        encodeSharing(with: coder)
    }

    private func encodeSharing(with coder: NSCoder) {
        let content = content
        coder.encode(NSArray(array: content.participants), forKey: "Participants")
        coder.encode(Int64(content.publicPermission.rawValue), forKey: "PublicPermission")
        coder.write(content.url as NSURL?, "URL")
    }

    /// Nil where the archive holds no share.
    public required init?(coder: NSCoder) {
        let key = "Participants"
        guard coder.containsValue(forKey: key),
            let participants = coder.decodeObject(of: [NSArray.self, CKShareParticipant.self], forKey: key)
                as? [CKShareParticipant],
            let content = Sharing(
                participants: participants,
                publicPermission: ParticipantPermission(rawValue: coder.integer("PublicPermission")) ?? .none,
                url: coder.object(NSURL.self, "URL") as URL?)
        else { return nil }
        sharing = Mutex(content)
        super.init(coder: coder)
    }

    /// The names of the fields that show invited users what is shared.
    public enum SystemFieldKey {
        /// Its title, text.
        public static let title: CKRecord.FieldKey = "cloudkit.title"
        /// A small picture, bytes.
        public static let thumbnailImageData: CKRecord.FieldKey = "cloudkit.thumbnailImageData"
        /// The kind of what is shared, text such as `com.example.recipe`.
        public static let shareType: CKRecord.FieldKey = "cloudkit.type"
    }
}

/// Someone who takes part in a share: `CKShare.Participant`.
///
/// Permission and role may be set from any task; what was set counts once the share is saved. Equal by value: who it is
/// and what it may.
public final class CKShareParticipant: NSObject, NSSecureCoding, NSCopying, Sendable {
    /// Identifies a participant of a share.
    public typealias ID = String
    /// The older name of the type.
    public typealias AcceptanceStatus = CKShare.ParticipantAcceptanceStatus
    /// The older name of the type.
    public typealias Permission = CKShare.ParticipantPermission
    /// The older name of the type.
    public typealias Role = CKShare.ParticipantRole

    /// Who takes part.
    public let userIdentity: CKUserIdentity
    /// Whether the user accepted the share.
    public let acceptanceStatus: CKShare.ParticipantAcceptanceStatus
    /// Stays the same as long as the user takes part.
    public let participantID: CKShare.Participant.ID
    private let rights: Mutex<Rights>

    private struct Rights: Equatable {
        var permission: CKShare.ParticipantPermission
        var role: CKShare.ParticipantRole
    }

    /// Participants come from the server, which finds the user by an address; a new one may read.
    init(
        userIdentity: CKUserIdentity, role: CKShare.ParticipantRole = .privateUser,
        permission: CKShare.ParticipantPermission = .readOnly,
        acceptanceStatus: CKShare.ParticipantAcceptanceStatus = .pending, participantID: String = UUID().uuidString
    ) {
        self.userIdentity = userIdentity
        self.acceptanceStatus = acceptanceStatus
        self.participantID = participantID
        rights = Mutex(Rights(permission: permission, role: role))
    }

    /// What the participant may do with the shared records.
    public var permission: CKShare.ParticipantPermission {
        get { rights.withLock { $0.permission } }
        set { rights.withLock { $0.permission = newValue } }
    }

    /// What the participant is in the share.
    public var role: CKShare.ParticipantRole {
        get { rights.withLock { $0.role } }
        set { rights.withLock { $0.role = newValue } }
    }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKShareParticipant else { return false }
        let (mine, theirs) = (rights.withLock { $0 }, other.rights.withLock { $0 })
        return participantID == other.participantID && userIdentity == other.userIdentity
            && acceptanceStatus == other.acceptanceStatus && mine == theirs
    }

    /// Equal for equal objects.
    public override var hash: Int { participantID.hashValue }

    /// The text for logs.
    public override var description: String {
        "<CKShareParticipant: \(participantID), role=\(role), permission=\(permission), status=\(acceptanceStatus)>"
    }

    /// A copy, whose rights are set independently of this participant's.
    public func copy(with zone: NSZone? = nil) -> Any {
        CKShareParticipant(
            userIdentity: userIdentity, role: role, permission: permission, acceptanceStatus: acceptanceStatus,
            participantID: participantID)
    }

    /// Always true.
    public static var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(participantID, "ParticipantID")
        coder.write(userIdentity, "UserIdentity")
        coder.encode(Int64(role.rawValue), forKey: "Type")
        coder.encode(Int64(permission.rawValue), forKey: "Permission")
        coder.encode(Int64(acceptanceStatus.rawValue), forKey: "AcceptanceStatus")
    }

    /// Nil where the archive holds no participant.
    public convenience init?(coder: NSCoder) {
        guard let id = coder.text("ParticipantID"), let identity = coder.object(CKUserIdentity.self, "UserIdentity")
        else { return nil }
        self.init(
            userIdentity: identity, role: .init(rawValue: coder.integer("Type")) ?? .unknown,
            permission: .init(rawValue: coder.integer("Permission")) ?? .unknown,
            acceptanceStatus: .init(rawValue: coder.integer("AcceptanceStatus")) ?? .unknown, participantID: id)
    }
}

extension CKShare {
    /// The name in Swift of the type.
    public typealias Participant = CKShareParticipant

    /// What a participant is in a share.
    public enum ParticipantRole: Int, Hashable, Sendable {
        case unknown = 0
        /// Shares what is the user's own.
        case owner = 1
        /// May change who takes part.
        case administrator = 2
        /// Was invited.
        case privateUser = 3
        /// Came by the share's address.
        case publicUser = 4
    }

    /// What a participant may do.
    public enum ParticipantPermission: Int, Hashable, Sendable {
        case unknown = 0
        /// Nothing, unless it is said otherwise for the participant.
        case none = 1
        case readOnly = 2
        case readWrite = 3
    }

    /// How a participant answered the invitation.
    public enum ParticipantAcceptanceStatus: Int, Hashable, Sendable {
        case unknown = 0
        /// Not yet.
        case pending = 1
        case accepted = 2
        /// Takes part no longer.
        case removed = 3
    }
}
