import CloudKit
import CoreLocation

extension SurfaceUses {
    static func record(_ record: CKRecord, _ coder: NSKeyedUnarchiver) throws {
        let type: CKRecord.RecordType = "Type"
        let _: [CKRecord] = [
            CKRecord(recordType: type), CKRecord(recordType: type, recordID: CKRecord.ID(recordName: "x")),
        ]
        let _: any (NSSecureCoding & NSCopying & Sequence & Hashable & Sendable) = record
        let _: (CKRecord.RecordType, CKRecord.ID) = (record.recordType, record.recordID)
        let _: [Date?] = [record.creationDate, record.modificationDate]
        let _: [CKRecord.ID?] = [record.creatorUserRecordID, record.lastModifiedUserRecordID]
        let _: String? = record.recordChangeTag
        let _: (any __CKRecordObjCValue)? = record.object(forKey: "a")
        record.setObject("a" as any __CKRecordObjCValue, forKey: "a")
        record.setObject(nil, forKey: "a")
        record["text"] = "a"
        record["whole"] = 1
        record["number"] = 1.5
        record["truth"] = true
        record["time"] = Date()
        record["data"] = Data()
        record["place"] = CLLocation(latitude: 0, longitude: 0)
        record["list"] = ["a", "b"]
        record["none"] = nil
        record["reference"] = CKRecord.Reference(recordID: record.recordID, action: .none)
        record["NSDate"] = Date() as NSDate
        record["NSNumber"] = 3 as NSNumber
        let _: String? = record["text"]
        let _: Int64? = record["whole"] as? Int64
        let _: Any? = record.value(forKey: "a")
        record.setValue(1, forKey: "a")
        record.setValuesForKeys(["a": 1])
        let _: [String: Any] = record.dictionaryWithValues(forKeys: ["a", "b"])
        let _: [CKRecord.FieldKey] = record.allKeys() + record.changedKeys()
        for (key, value) in record {
            let _: (String, any CKRecordValueProtocol) = (key, value)
        }
        let encrypted: any CKRecordKeyValueSetting & Sendable = record.encryptedValues
        encrypted["secret"] = "a"
        let _: String? = encrypted["secret"] as? String
        record.encryptedValues["secret"] = "a"
        let _: [String] = encrypted.allKeys() + encrypted.changedKeys()
        record.encodeSystemFields(with: NSKeyedArchiver(requiringSecureCoding: true))
        let _: CKRecord? = CKRecord(coder: coder)
        record.parent = nil
        record.setParent(record)
        record.setParent(record.recordID)
        let _: [CKRecord.Reference?] = [record.parent, record.share]
        let _: [CKRecord.RecordType] = [CKRecord.SystemType.userRecord, CKRecord.SystemType.share]
        let _: [CKRecord.FieldKey] = [
            CKRecord.SystemFieldKey.recordID, CKRecord.SystemFieldKey.creationDate,
            CKRecord.SystemFieldKey.creatorUserRecordID, CKRecord.SystemFieldKey.modificationDate,
            CKRecord.SystemFieldKey.lastModifiedUserRecordID, CKRecord.SystemFieldKey.parent,
            CKRecord.SystemFieldKey.share,
        ]
    }

    static func identifiers(_ id: CKRecord.ID, _ zone: CKRecordZone) {
        let _: any (Hashable & Sendable & NSSecureCoding & NSCopying) = id
        let _: [CKRecord.ID] = [
            CKRecord.ID(), CKRecord.ID(recordName: "x"), CKRecord.ID(zoneID: .default),
            CKRecord.ID(recordName: "x", zoneID: CKRecordZone.ID(zoneName: "z", ownerName: CKCurrentUserDefaultName)),
        ]
        let _: (String, CKRecordZone.ID) = (id.recordName, id.zoneID)
        let reference = CKRecord.Reference(record: CKRecord(recordType: "T"), action: .deleteSelf)
        let _: (CKRecord.ID, CKRecord.Reference.Action) = (reference.recordID, reference.action)
        let _: [CKRecord.ReferenceAction] = [.none, .deleteSelf]
        let _: URL? = CKAsset(fileURL: URL(fileURLWithPath: "/dev/null")).fileURL
        let _: [CKRecordZone] = [CKRecordZone(zoneName: "z"), CKRecordZone(zoneID: .default), CKRecordZone.default()]
        let _: [CKRecordZone.ID] = [
            CKRecordZone.ID(), CKRecordZone.ID(zoneName: "z"), zone.zoneID, CKRecordZone.ID.default,
        ]
        let _: [String] = [CKRecordZone.ID.defaultZoneName, zone.zoneID.zoneName, zone.zoneID.ownerName]
        let _: CKRecordZone.Capabilities = zone.capabilities.union([.fetchChanges, .atomic, .sharing, .zoneWideSharing])
        let _: CKRecord.Reference? = zone.share
    }

    static func values() {
        let _: [any CKRecordValueProtocol] = [
            "", Date(), Data(), true, 1.0, Float(1), 1, Int8(1), Int16(1), Int32(1), Int64(1), UInt(1), UInt8(1),
            UInt16(1), UInt32(1), UInt64(1), [1], [""], NSString(), NSDate(), NSData(), NSNumber(value: 1), NSArray(),
            CKAsset(fileURL: URL(fileURLWithPath: "/dev/null")), CLLocation(latitude: 0, longitude: 0),
        ]
        let _: any CKRecordValue = "a" as any __CKRecordObjCValue
    }

    static func query(_ date: Date, _ place: CLLocation, _ record: CKRecord) {
        let predicates: [NSPredicate] = [
            NSPredicate(value: true), NSPredicate(format: "a = 1"), NSPredicate(format: "a = %@", "b"),
            NSPredicate(format: "%K >= %@ AND b < %d AND c > %f", "a", date as NSDate, 1, 1.5),
            NSPredicate(format: "a = %@", record.recordID), NSPredicate(format: "a IN %@", ["x", "y"]),
            NSPredicate(format: "distanceToLocation:fromLocation:(a,%@) < 1", place),
            NSPredicate(format: "a = %@", argumentArray: ["b"]),
            NSCompoundPredicate(andPredicateWithSubpredicates: [NSPredicate(value: true)]),
        ]
        let query = CKQuery(recordType: "T", predicate: predicates[0])
        let _: any (NSSecureCoding & NSCopying) = query
        query.sortDescriptors = [
            NSSortDescriptor(key: "a", ascending: true), .init(key: "b", ascending: false),
            CKLocationSortDescriptor(key: "c", relativeLocation: place),
        ]
        let _: (CKRecord.RecordType, NSPredicate, [NSSortDescriptor]?) =
            (query.recordType, query.predicate, query.sortDescriptors)
        let _: String? = NSSortDescriptor(key: "a", ascending: true).key
        let _: CLLocation = CKLocationSortDescriptor(key: "c", relativeLocation: place).relativeLocation
    }

    static func errors(_ thrown: any Error) {
        do { throw thrown } catch let error as CKError where error.code == .serverRecordChanged {
            let _: [CKRecord?] = [error.ancestorRecord, error.serverRecord, error.clientRecord]
            let _: Double? = error.retryAfterSeconds
            let _: [AnyHashable: any Error]? = error.partialErrorsByItemID
            let _: (Int, [String: Any], String) = (error.errorCode, error.errorUserInfo, error.localizedDescription)
        } catch CKError.unknownItem {
        } catch {}
        if let error = thrown as? CKError {
            switch error.code {
            case .partialFailure, .networkFailure: break
            case CKError.zoneNotFound: break
            default: break
            }
        }
        let _: (Int, String) = ((thrown as NSError).code, (thrown as NSError).domain)
        let _: [String] = [
            CKErrorDomain, CKError.errorDomain, CKPartialErrorsByItemIDKey, CKErrorRetryAfterKey,
            CKRecordChangedErrorAncestorRecordKey, CKRecordChangedErrorServerRecordKey,
            CKRecordChangedErrorClientRecordKey, CKErrorUserDidResetEncryptedDataKey,
        ]
    }
}
