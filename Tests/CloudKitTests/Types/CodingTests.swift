import Foundation
import Testing

@testable import CloudKit

@Suite("Archives of records and what they are made of")
struct CodingTests {
    private static func restored<T: NSObject & NSSecureCoding>(_ object: T) throws -> T? {
        let data = try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: true)
        return try NSKeyedUnarchiver.unarchivedObject(ofClass: T.self, from: data)
    }

    private static func systemFieldsOnly(_ record: CKRecord) throws -> CKRecord? {
        let archiver = NSKeyedArchiver(requiringSecureCoding: true)
        record.encodeSystemFields(with: archiver)
        archiver.finishEncoding()
        let unarchiver = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
        unarchiver.requiresSecureCoding = true
        return CKRecord(coder: unarchiver)
    }

    private static func saved() -> CKRecord {
        let user = CKRecord.ID(recordName: "_user")
        return CKRecord(
            id: CKRecord.ID(recordName: "one", zoneID: CKRecordZone.ID(zoneName: "zone", ownerName: "_owner")),
            type: "Thing",
            system: SystemFields(
                changeTag: "1.2", created: .init(date: Date(timeIntervalSince1970: 1.25), user: user),
                modified: .init(date: Date(timeIntervalSince1970: 2.5), user: user),
                parent: CKReference(recordID: CKRecord.ID(recordName: "parent"), action: .none)),
            values: ["a": .int64(1), "s": .string("secret")], encryptedKeys: ["s"])
    }

    @Test("the archive of the system fields brings back names, tag, dates, users and parent, and no values")
    func systemFields() throws {
        let record = Self.saved()
        record["a"] = 2
        record.setParent(nil as CKRecord.ID?)
        let restored = try #require(try Self.systemFieldsOnly(record))
        #expect(restored.recordID == record.recordID && restored.recordType == "Thing")
        #expect(restored.recordChangeTag == "1.2")
        #expect(restored.creationDate == record.creationDate && restored.modificationDate == record.modificationDate)
        #expect(restored.creatorUserRecordID?.recordName == "_user")
        #expect(restored.lastModifiedUserRecordID?.recordName == "_user")
        #expect(restored.parent?.recordID.recordName == "parent", "what the server has, not the edit")
        #expect(restored.allKeys() == [] && restored.changedKeys() == [])
        #expect(restored.encryptedValues.allKeys() == [])
    }

    @Test("a record restored from its system fields has an ancestor without values")
    func ancestorOfSystemFields() throws {
        let restored = try #require(try Self.systemFieldsOnly(Self.saved()))
        restored["a"] = 5
        let ancestor = try #require(restored.ancestor())
        #expect(ancestor.allKeys() == [] && ancestor.recordChangeTag == "1.2")
        let new = try #require(try Self.systemFieldsOnly(CKRecord(recordType: "Thing")))
        #expect(new.ancestor() == nil && new.recordChangeTag == nil)
    }

    @Test("the archive of a whole record brings back values of every kind, edits and the ancestor")
    func wholeRecord() throws {
        let record = Self.saved()
        record["text"] = "ä\u{0}b"
        record["data"] = Data([0, 255])
        record["double"] = -0.1
        record["infinite"] = Double.infinity
        record["date"] = Date(timeIntervalSinceReferenceDate: 0.1)
        record["place"] = CLLocation(
            coordinate: CLLocationCoordinate2D(latitude: 1, longitude: 2), altitude: 3, horizontalAccuracy: 4,
            verticalAccuracy: 5, course: 6, speed: 7, timestamp: Date(timeIntervalSince1970: 8))
        record["reference"] = CKRecord.Reference(recordID: record.recordID, action: .deleteSelf)
        record["asset"] = CKAsset(fileURL: URL(filePath: "/tmp/x"))
        record["list"] = ["a", "b"]
        record["empty"] = [Int]()
        record.setValue(["a": 1], forKey: "wrong")
        record["a"] = nil
        record.setParent(CKRecord.ID(recordName: "another"))
        let restored = try #require(try Self.restored(record))
        let (before, after) = (record.snapshot(), restored.snapshot())
        #expect(after.values.filter { $0.key != "asset" } == before.values.filter { $0.key != "asset" })
        #expect((restored["asset"] as? CKAsset)?.fileURL?.path == "/tmp/x")
        #expect(after.encryptedKeys == ["s"] && after.system == before.system)
        #expect(after.changedKeys == before.changedKeys && after.isParentChanged)
        #expect(after.base == before.base)
        let content = AssetContent(checksum: "c", size: 7, origin: AssetOrigin(record.recordID, key: "k", scope: 2))
        let asset = CKAsset(fileURL: URL(filePath: "/tmp/x"), content: content)
        let saved = CKRecord(
            id: record.recordID, type: "Thing", system: SystemFields(changeTag: "1"), values: ["asset": .asset(asset)])
        #expect(try Self.restored(saved)?.snapshot().base?.values["asset"]?.assets.map(\.content) == [content])
    }

    @Test("identifiers, zones, references, tokens and places survive an archive and are equal after it")
    func small() throws {
        let zoneID = CKRecordZone.ID(zoneName: "zone", ownerName: "_owner")
        let id = CKRecord.ID(recordName: "one", zoneID: zoneID)
        let reference = CKRecord.Reference(recordID: id, action: .deleteSelf)
        let zone = CKRecordZone(zoneID: zoneID, capabilities: [.atomic, .fetchChanges], share: reference)
        #expect(try Self.restored(zoneID) == zoneID)
        #expect(try Self.restored(id) == id)
        #expect(try Self.restored(reference) == reference)
        #expect(try Self.restored(zone) == zone)
        #expect(try Self.restored(CKRecordZone(zoneName: "plain")) == CKRecordZone(zoneName: "plain"))
        #expect(try Self.restored(CKServerChangeToken("AQ==")) == CKServerChangeToken("AQ=="))
        let place = CLLocation(latitude: 1.5, longitude: -2)
        #expect(try Self.restored(place) == place)
        #expect(try Self.restored(CKNotificationID("n")) == CKNotificationID("n"))
        let file = CKAsset(fileURL: URL(filePath: "/tmp/x"))
        #expect(try Self.restored(file) == file)
        let origin = AssetOrigin(id, key: "key", scope: 1)
        let content = AssetContent(
            checksum: "c", size: 5_000_000_000, downloadURL: "https://h/secret", origin: origin)
        let unfetched = CKAsset(fileURL: nil, content: content)
        let again = try #require(try Self.restored(unfetched))
        #expect(again == unfetched && again.size == 5_000_000_000 && again.fileURL == nil)
        #expect(again.content?.origin == origin)
        #expect(again.downloadURL == nil, "it would not be good for long, and lets its holder read")
        let info = CKUserIdentity.LookupInfo(emailAddress: "a@example.com")
        #expect(try Self.restored(info) == info)
    }

    @Test("an archive of something else gives nil and not half a record")
    func wrongArchive() throws {
        let archiver = NSKeyedArchiver(requiringSecureCoding: true)
        archiver.encode("x" as NSString, forKey: "RecordType")
        archiver.finishEncoding()
        for make in [{ CKRecord(coder: $0) as NSObject? }, { CKRecordID(coder: $0) }, { CKReference(coder: $0) }] {
            #expect(make(try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)) == nil)
        }
        #expect(CKShare(coder: try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)) == nil)
        #expect(CKServerChangeToken(coder: try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)) == nil)
        #expect(CLLocation(coder: try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)) == nil)
    }
}
