import Foundation
import Testing

@testable import CloudKit

@Suite("Shares and who takes part, by sdk-surface section 8")
struct SharingTests {
    private static func participant(_ name: String, _ status: CKShare.ParticipantAcceptanceStatus = .pending)
        -> CKShare.Participant
    {
        let identity = CKUserIdentity(userRecordID: CKRecord.ID(recordName: name), hasiCloudAccount: true)
        return CKShareParticipant(userIdentity: identity, acceptanceStatus: status)
    }

    @Test("a share of a record is in its zone, and the record names it")
    func ofRecord() {
        let root = CKRecord(
            recordType: "Note", recordID: CKRecord.ID(recordName: "n", zoneID: CKRecordZone.ID(zoneName: "zone")))
        let share = CKShare(rootRecord: root)
        #expect(share.recordType == "cloudkit.share" && share.recordID.zoneID == root.recordID.zoneID)
        #expect(root.share?.recordID == share.recordID && share.url == nil)
        #expect(share.publicPermission == .none)
        let named = CKShare(rootRecord: root, shareID: CKRecord.ID(recordName: "s"))
        #expect(named.recordID.recordName == "s" && root.share?.recordID == named.recordID)
        share[CKShare.SystemFieldKey.title] = "Shopping"
        #expect(share["cloudkit.title"] as? String == "Shopping" && share.changedKeys() == ["cloudkit.title"])
        #expect(CKShare.SystemFieldKey.thumbnailImageData == "cloudkit.thumbnailImageData")
        #expect(CKShare.SystemFieldKey.shareType == "cloudkit.type")
    }

    @Test("a share of a zone has the name that says so")
    func ofZone() {
        let share = CKShare(recordZoneID: CKRecordZone.ID(zoneName: "zone"))
        #expect(share.recordID.recordName == CKRecordNameZoneWideShare && share.recordID.zoneID.zoneName == "zone")
    }

    @Test("its maker owns it and takes part")
    func owner() {
        let share = CKShare(recordZoneID: .default)
        #expect(share.participants.count == 1 && share.owner === share.currentUserParticipant)
        #expect(share.owner.role == .owner && share.owner.acceptanceStatus == .accepted)
        share.removeParticipant(share.owner)
        share.addParticipant(CKShareParticipant(userIdentity: share.owner.userIdentity))
        #expect(share.participants.count == 1 && share.owner.role == .owner, "the owner stays")
    }

    @Test("a participant may read at first, is added once, and can be removed")
    func participants() {
        let share = CKShare(recordZoneID: .default)
        let friend = Self.participant("_friend")
        #expect(friend.permission == .readOnly && friend.role == .privateUser && friend.acceptanceStatus == .pending)
        share.addParticipant(friend)
        let again = Self.participant("_friend")
        again.permission = .readWrite
        share.addParticipant(again)
        #expect(share.participants.count == 2)
        #expect(share.participants.last?.permission == .readWrite, "the new rights hold")
        share.removeParticipant(friend)
        #expect(share.participants.count == 1)
    }

    @Test("opening a share to all drops who has not accepted; closing it drops all but the owner")
    func publicPermission() {
        let share = CKShare(recordZoneID: .default)
        share.addParticipant(Self.participant("_pending"))
        share.addParticipant(Self.participant("_accepted", .accepted))
        share.publicPermission = .none
        #expect(share.participants.count == 3, "no change, no effect")
        share.publicPermission = .readOnly
        #expect(
            share.participants.map { $0.userIdentity.userRecordID?.recordName } == [
                CKCurrentUserDefaultName, "_accepted",
            ])
        share.publicPermission = .none
        #expect(share.participants.count == 1)
    }

    @Test("a share survives a copy and an archive with its participants, and a copy goes its own way")
    func copiesAndArchives() throws {
        let root = CKRecord(recordType: "Note")
        let share = CKShare(rootRecord: root)
        share["cloudkit.title"] = "Shopping"
        share.addParticipant(Self.participant("_friend"))
        share.publicPermission = .none
        let data = try NSKeyedArchiver.archivedData(withRootObject: share, requiringSecureCoding: true)
        let archived = try NSKeyedUnarchiver.unarchivedObject(ofClass: CKShare.self, from: data)
        for other in [share.copy() as? CKShare, archived] {
            let other = try #require(other)
            #expect(
                other !== share && other.recordID == share.recordID && other["cloudkit.title"] as? String == "Shopping")
            #expect(other.participants == share.participants && other.publicPermission == .none)
            other.participants.last?.permission = .readWrite
            #expect(share.participants.last?.permission == .readOnly)
        }
        let restored = try NSKeyedUnarchiver.unarchivedObject(
            ofClass: CKRecord.self,
            from: NSKeyedArchiver.archivedData(withRootObject: root, requiringSecureCoding: true))
        #expect(restored?.share?.recordID == share.recordID)
    }

    @Test("metadata and identities keep what the server said, through an archive too")
    func metadata() throws {
        let name = PersonNameComponents(givenName: "Tami", familyName: "V")
        let owner = CKUserIdentity(
            userRecordID: CKRecord.ID(recordName: "_owner"), lookupInfo: .init(phoneNumber: "555"),
            nameComponents: name,
            hasiCloudAccount: true)
        let root = CKRecord(recordType: "Note")
        let metadata = CKShareMetadata(
            containerIdentifier: "iCloud.com.example.app", share: CKShare(rootRecord: root),
            root: (root.recordID, nil),
            standing: .init(role: .privateUser, status: .pending, permission: .readWrite), ownerIdentity: owner)
        let data = try NSKeyedArchiver.archivedData(withRootObject: metadata, requiringSecureCoding: true)
        let archived = try NSKeyedUnarchiver.unarchivedObject(ofClass: CKShareMetadata.self, from: data)
        for metadata in [metadata, try #require(archived)] {
            #expect(metadata.containerIdentifier == "iCloud.com.example.app")
            #expect(metadata.hierarchicalRootRecordID == root.recordID && metadata.rootRecord == nil)
            #expect(metadata.participantRole == .privateUser && metadata.participantStatus == .pending)
            #expect(metadata.participantPermission == .readWrite && metadata.ownerIdentity == owner)
            #expect(metadata.ownerIdentity.nameComponents?.givenName == "Tami")
            #expect(metadata.share.recordID == root.share?.recordID)
        }
    }

    @Test("lookup infos say one of three, and roles, rights and answers have Apple's numbers")
    func lookupInfos() {
        #expect(CKUserIdentity.LookupInfo(emailAddress: "a").emailAddress == "a")
        #expect(CKUserIdentity.LookupInfo(phoneNumber: "1").phoneNumber == "1")
        #expect(CKUserIdentity.LookupInfo(userRecordID: CKRecord.ID(recordName: "u")).userRecordID?.recordName == "u")
        #expect(CKUserIdentity.LookupInfo.lookupInfos(withEmails: ["a", "b"]).map(\.emailAddress) == ["a", "b"])
        #expect(CKUserIdentity.LookupInfo.lookupInfos(withPhoneNumbers: ["1"]).map(\.phoneNumber) == ["1"])
        #expect(CKUserIdentity.LookupInfo.lookupInfos(with: [CKRecord.ID(recordName: "u")]).count == 1)
        #expect(
            (0...4).map { CKShare.ParticipantRole(rawValue: $0) } == [
                .unknown, .owner, .administrator, .privateUser, .publicUser,
            ])
        let permissions: [CKShare.ParticipantPermission] = [.unknown, .none, .readOnly, .readWrite]
        #expect(permissions.map(\.rawValue) == [0, 1, 2, 3])
        #expect(
            (0...3).map { CKShare.ParticipantAcceptanceStatus(rawValue: $0) } == [
                .unknown, .pending, .accepted, .removed,
            ])
    }
}
