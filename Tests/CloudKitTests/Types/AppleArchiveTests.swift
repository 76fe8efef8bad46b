import Foundation
import Testing

@testable import CloudKit

/// Archives in the form in which Apple's framework writes them: names of classes and keys as public dumps of system
/// fields show them. The values are made up.
@Suite("Archives of Apple's framework")
struct AppleArchiveTests {
    /// Writes an archive: each object is a property list in XML, in which `#3` stands for the object of that number.
    private struct Archive {
        private var objects = ["<string>$null</string>"]

        mutating func add(_ object: String) -> String {
            objects.append(object)
            return "#\(objects.count - 1)"
        }

        mutating func text(_ text: String) -> String { add("<string>\(text)</string>") }

        mutating func instance(_ name: String, _ members: [String: String]) -> String {
            let names = "<array><string>\(name)</string><string>NSObject</string></array>"
            let type = add(Self.dictionary(["$classname": "<string>\(name)</string>", "$classes": names]))
            return add(Self.dictionary(members.merging(["$class": type]) { first, _ in first }))
        }

        mutating func zone(_ name: String) -> String {
            instance(
                "CKRecordZoneID",
                [
                    "ZoneName": text(name), "ownerName": text("__defaultOwner__"), "anonymousCKUserID": "#0",
                    "databaseScopeKey": "<integer>2</integer>",
                ])
        }

        mutating func record(_ name: String, zone: String) -> String {
            instance("CKRecordID", ["RecordName": text(name), "ZoneID": self.zone(zone)])
        }

        mutating func date(_ seconds: Double) -> String {
            instance("NSDate", ["NS.time": "<real>\(seconds)</real>"])
        }

        func data(top: [String: String]) -> Data {
            let body = Self.dictionary([
                "$version": "<integer>100000</integer>", "$archiver": "<string>NSKeyedArchiver</string>",
                "$top": Self.dictionary(top), "$objects": "<array>\(objects.map(Self.resolved).joined())</array>",
            ])
            return Data(#"<?xml version="1.0" encoding="UTF-8"?><plist version="1.0">\#(body)</plist>"#.utf8)
        }

        private static func dictionary(_ members: [String: String]) -> String {
            "<dict>" + members.map { "<key>\($0)</key>\(resolved($1))" }.joined() + "</dict>"
        }

        private static func resolved(_ object: String) -> String {
            guard object.hasPrefix("#") else { return object }
            return "<dict><key>CF$UID</key><integer>\(object.dropFirst())</integer></dict>"
        }
    }

    /// The system fields of a record with a parent.
    private static func systemFields() -> Data {
        var archive = Archive()
        let parent = archive.record("parent", zone: "Notes")
        let top = [
            "RecordType": archive.text("Note"), "RecordID": archive.record("one", zone: "Notes"),
            "ETag": archive.text("1a"), "RecordCtime": archive.date(700_000_000.5),
            "RecordMtime": archive.date(700_000_001.25),
            "CreatorUserRecordID": archive.record("__defaultOwner__", zone: "_defaultZone"),
            "LastModifiedUserRecordID": archive.record("_other", zone: "_defaultZone"),
            "ModifiedByDevice": archive.text("A phone"),
            "ParentReference": archive.instance(
                "CKReference", ["recordID": parent]),
            "ShareReference": "#0", "PreviousParentReference": "#0", "KnownToServer": "<true/>",
            "HasUpdatedParentReference": "<false/>", "Permission": "<integer>0</integer>", "URL": "#0",
        ]
        return archive.data(top: top)
    }

    @Test("System fields that Apple's framework wrote are read")
    func systemFields() throws {
        let unarchiver = try NSKeyedUnarchiver(forReadingFrom: Self.systemFields())
        unarchiver.requiresSecureCoding = true
        let record = try #require(CKRecord(coder: unarchiver))
        #expect(record.recordType == "Note" && record.recordChangeTag == "1a")
        #expect(
            record.recordID == CKRecord.ID(recordName: "one", zoneID: CKRecordZone.ID(zoneName: "Notes")))
        #expect(record.creationDate == Date(timeIntervalSinceReferenceDate: 700_000_000.5))
        #expect(record.modificationDate == Date(timeIntervalSinceReferenceDate: 700_000_001.25))
        #expect(record.creatorUserRecordID?.recordName == CKCurrentUserDefaultName)
        #expect(record.lastModifiedUserRecordID?.recordName == "_other")
        #expect(record.parent?.recordID.recordName == "parent" && record.share == nil)
        #expect(record.allKeys() == [] && record.changedKeys() == [])
    }

    @Test("An object is found by Apple's name of its class, before any code of the SDK ran for it")
    func objects() throws {
        var archive = Archive()
        let root = archive.record("r", zone: "z")
        let data = archive.data(top: ["root": root])
        let id = try NSKeyedUnarchiver.unarchivedObject(ofClass: CKRecordID.self, from: data)
        #expect(id == CKRecord.ID(recordName: "r", zoneID: CKRecordZone.ID(zoneName: "z")))
    }

    @Test("A participant that Apple's framework wrote is read, without the name that only Apple can read")
    func participant() throws {
        var archive = Archive()
        let identity = archive.instance(
            "CKUserIdentity",
            [
                "UserRecordID": archive.record("_user", zone: "_defaultZone"), "HasICloudAccount": "<true/>",
                "NameComponents": archive.instance("NSPersonNameComponents", [:]),
                "LookupInfo": archive.instance(
                    "CKUserIdentityLookupInfo",
                    ["EmailAddress": archive.text("a@example.com"), "PhoneNumber": "#0", "RecordID": "#0"]),
            ])
        let root = archive.instance(
            "CKShareParticipant",
            [
                "ParticipantID": archive.text("P"), "UserIdentity": identity, "Type": "<integer>1</integer>",
                "Permission": "<integer>3</integer>", "AcceptanceStatus": "<integer>2</integer>",
            ])
        let data = archive.data(top: ["root": root])
        let participant = try #require(
            try NSKeyedUnarchiver.unarchivedObject(ofClass: CKShareParticipant.self, from: data))
        #expect(participant.participantID == "P" && participant.role == .owner)
        #expect(participant.permission == .readWrite && participant.acceptanceStatus == .accepted)
        #expect(participant.userIdentity.userRecordID?.recordName == "_user")
        #expect(participant.userIdentity.lookupInfo?.emailAddress == "a@example.com")
    }

    @Test("What the SDK writes has Apple's keys, and names Apple's classes to fall back to")
    func written() throws {
        let user = CKRecord.ID(recordName: "_user")
        let record = CKRecord(
            id: CKRecord.ID(recordName: "one", zoneID: CKRecordZone.ID(zoneName: "Notes")), type: "Note",
            system: SystemFields(
                changeTag: "1a", created: .init(date: Date(timeIntervalSince1970: 1), user: user),
                modified: .init(date: Date(timeIntervalSince1970: 2), user: user),
                parent: CKReference(recordID: CKRecord.ID(recordName: "parent"), action: .none)),
            values: [:])
        let archiver = NSKeyedArchiver(requiringSecureCoding: true)
        record.encodeSystemFields(with: archiver)
        archiver.finishEncoding()
        let list = try #require(
            try PropertyListSerialization.propertyList(from: archiver.encodedData, format: nil) as? [String: Any])
        let top = try #require(list["$top"] as? [String: Any])
        #expect(
            Set(top.keys) == [
                "RecordType", "RecordID", "ETag", "KnownToServer", "RecordCtime", "CreatorUserRecordID", "RecordMtime",
                "LastModifiedUserRecordID", "ParentReference",
            ])
        let objects = try #require(list["$objects"] as? [Any]).compactMap { $0 as? [String: Any] }
        var found: Set<String> = []
        for type in objects {
            guard let name = type["$classname"] as? String else { continue }
            // The name itself where Foundation keeps it, else the fallback.
            found.formUnion([name] + (type["$classhints"] as? [String] ?? []))
        }
        #expect(found.isSuperset(of: ["CKRecordID", "CKRecordZoneID", "CKReference", "NSDate"]), "\(found)")
        let zone = try #require(objects.first { $0["ZoneName"] != nil })
        #expect(zone["ownerName"] != nil)
        let reference = try #require(objects.first { $0["recordID"] != nil })
        #expect(reference["Action"] != nil)
    }
}
