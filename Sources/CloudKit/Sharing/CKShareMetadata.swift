public import Foundation

/// What someone who was invited gets to know of a share before accepting it: `CKShare.Metadata`.
///
/// The class stands at the top level under the name it has in Objective-C, because Foundation on Linux archives no
/// nested classes. Immutable.
public final class CKShareMetadata: NSObject, NSSecureCoding, NSCopying, Sendable {
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

    public override var description: String {
        "<CKShareMetadata: container=\(containerIdentifier), share=\(share.recordID.recordName)>"
    }

    /// Itself: it cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    public static var supportsSecureCoding: Bool { true }

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
    public typealias Metadata = CKShareMetadata
}
