public import Foundation
import Synchronization

/// Someone who takes part in a share: `CKShare.Participant`.
///
/// The class stands at the top level under the name it has in Objective-C, because Foundation on Linux archives no
/// nested classes. Permission and role may be set from any task; what was set counts once the share is saved. Equal by
/// value: who it is and what it may.
public final class CKShareParticipant: NSObject, NSSecureCoding, NSCopying, Sendable {
    /// Identifies a participant of a share.
    public typealias ID = String
    public typealias AcceptanceStatus = CKShare.ParticipantAcceptanceStatus
    public typealias Permission = CKShare.ParticipantPermission
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

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKShareParticipant else { return false }
        let (mine, theirs) = (rights.withLock { $0 }, other.rights.withLock { $0 })
        return participantID == other.participantID && userIdentity == other.userIdentity
            && acceptanceStatus == other.acceptanceStatus && mine == theirs
    }

    public override var hash: Int { participantID.hashValue }

    public override var description: String {
        "<CKShareParticipant: \(participantID), role=\(role), permission=\(permission), status=\(acceptanceStatus)>"
    }

    /// A participant of its own, whose rights are set apart from this one's.
    public func copy(with zone: NSZone? = nil) -> Any {
        CKShareParticipant(
            userIdentity: userIdentity, role: role, permission: permission, acceptanceStatus: acceptanceStatus,
            participantID: participantID)
    }

    public static var supportsSecureCoding: Bool { true }

    public func encode(with coder: NSCoder) {
        coder.write(participantID, "ParticipantID")
        coder.write(userIdentity, "UserIdentity")
        coder.encode(Int64(role.rawValue), forKey: "Role")
        coder.encode(Int64(permission.rawValue), forKey: "Permission")
        coder.encode(Int64(acceptanceStatus.rawValue), forKey: "AcceptanceStatus")
    }

    /// Nil where the archive holds no participant.
    public convenience init?(coder: NSCoder) {
        guard let id = coder.text("ParticipantID"), let identity = coder.object(CKUserIdentity.self, "UserIdentity")
        else { return nil }
        self.init(
            userIdentity: identity, role: .init(rawValue: coder.integer("Role")) ?? .unknown,
            permission: .init(rawValue: coder.integer("Permission")) ?? .unknown,
            acceptanceStatus: .init(rawValue: coder.integer("AcceptanceStatus")) ?? .unknown, participantID: id)
    }
}

extension CKShare {
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
