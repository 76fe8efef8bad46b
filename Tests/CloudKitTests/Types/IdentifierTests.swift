import Foundation
import Testing

@testable import CloudKit

@Suite("Names of records and zones, references, tokens")
struct IdentifierTests {
    @Test("a record ID is equal by name and zone, and serves as a key")
    func recordIDs() {
        let zone = CKRecordZone.ID(zoneName: "zone")
        let id = CKRecord.ID(recordName: "one", zoneID: zone)
        let same = CKRecord.ID(recordName: "one", zoneID: CKRecordZone.ID(zoneName: "zone"))
        #expect(id == same && id.hashValue == same.hashValue)
        #expect(id != CKRecord.ID(recordName: "one"))
        #expect(id != CKRecord.ID(recordName: "two", zoneID: zone))
        #expect([id: 1][same] == 1)
        #expect(CKRecord.ID(recordName: "one").zoneID == .default)
        #expect(CKRecord.ID() != CKRecord.ID())
        #expect(UUID(uuidString: CKRecord.ID(zoneID: zone).recordName) != nil)
        #expect((id.copy() as? CKRecord.ID) == id)
    }

    @Test("a zone ID is the current user's default zone unless it says otherwise")
    func zoneIDs() {
        #expect(CKRecordZone.ID.default == CKRecordZone.ID())
        #expect(CKRecordZone.ID.default.zoneName == "_defaultZone")
        #expect(CKRecordZone.ID.default.ownerName == CKCurrentUserDefaultName)
        #expect(CKRecordZone.ID.defaultZoneName == "_defaultZone")
        #expect(CKRecordZone.ID(zoneName: "a") != CKRecordZone.ID(zoneName: "a", ownerName: "_b"))
        #expect(CKRecordZone.default().zoneID == .default)
    }

    @Test("a zone made here has no capabilities; the raw values are Apple's")
    func zones() {
        #expect(CKRecordZone(zoneName: "zone").capabilities == [])
        #expect(CKRecordZone(zoneName: "zone").zoneID == CKRecordZone.ID(zoneName: "zone"))
        #expect(CKRecordZone(zoneName: "zone").share == nil)
        #expect(CKRecordZone(zoneName: "zone") == CKRecordZone(zoneName: "zone"))
        let all: CKRecordZone.Capabilities = [.fetchChanges, .atomic, .sharing, .zoneWideSharing]
        #expect(all.rawValue == 15 && CKRecordZone.Capabilities.sharing.rawValue == 4)
    }

    @Test("a reference is equal by target and action")
    func references() {
        let record = CKRecord(recordType: "Thing")
        let reference = CKRecord.Reference(record: record, action: .deleteSelf)
        #expect(reference.recordID == record.recordID && reference.action == .deleteSelf)
        #expect(reference == CKRecord.Reference(recordID: record.recordID, action: .deleteSelf))
        #expect(reference != CKRecord.Reference(recordID: record.recordID, action: .none))
        let action: CKRecord.Reference.Action = .none
        #expect(action.rawValue == 0 && CKRecord.ReferenceAction.deleteSelf.rawValue == 1)
    }

    @Test("tokens and notification IDs are equal by value")
    func tokens() {
        #expect(CKServerChangeToken("a") == CKServerChangeToken("a"))
        #expect(CKServerChangeToken("a") != CKServerChangeToken("b"))
        #expect(CKNotificationID("a") == CKNotificationID("a"))
    }
}

@Suite("Places")
struct LocationTests {
    @Test("a place of two numbers has no course, no speed and no altitude that is valid")
    func coordinateOnly() {
        let place = CLLocation(latitude: 51.5, longitude: -0.12)
        #expect(place.coordinate.latitude == 51.5 && place.coordinate.longitude == -0.12)
        #expect(place.course == -1 && place.speed == -1 && place.altitude == 0 && place.verticalAccuracy < 0)
        #expect(place.horizontalAccuracy == 0)
        #expect(place.description.hasPrefix("<+51.50000000,-0.12000000> +/- 0.00m (speed -1.00 mps / course -1.00)"))
    }

    @Test("distances are metres along the great circle, the same both ways")
    func distances() {
        let london = CLLocation(latitude: 51.5074, longitude: -0.1278)
        let paris = CLLocation(latitude: 48.8566, longitude: 2.3522)
        let distance = london.distance(from: paris)
        #expect(abs(distance - 343_556) < 100)
        #expect(distance == paris.distance(from: london) || abs(distance - paris.distance(from: london)) < 1e-6)
        #expect(london.distance(from: london) == 0)
        let (west, east) = (CLLocation(latitude: 0, longitude: 179.5), CLLocation(latitude: 0, longitude: -179.5))
        #expect(abs(west.distance(from: east) - 111_195) < 1, "across the date line")
        let pole = CLLocation(latitude: 90, longitude: 0)
        #expect(abs(pole.distance(from: CLLocation(latitude: -90, longitude: 0)) - 20_015_115) < 1, "antipodes")
        let near = CLLocation(latitude: 51.507401, longitude: -0.1278)
        #expect(abs(london.distance(from: near) - 0.1112) < 0.001, "near places keep their precision")
    }

    @Test("a coordinate is valid within 90 and 180 degrees and where it is a number")
    func validity() {
        #expect(CLLocationCoordinate2DIsValid(CLLocationCoordinate2D(latitude: -90, longitude: 180)))
        #expect(!CLLocationCoordinate2DIsValid(CLLocationCoordinate2D(latitude: 90.1, longitude: 0)))
        #expect(!CLLocationCoordinate2DIsValid(CLLocationCoordinate2D(latitude: 0, longitude: .nan)))
        #expect(!CLLocationCoordinate2DIsValid(kCLLocationCoordinate2DInvalid))
        #expect(CLLocationCoordinate2DMake(1, 2).longitude == 2 && CLLocationCoordinate2D().latitude == 0)
    }

    @Test("places are equal when all they say is")
    func equality() {
        let time = Date(timeIntervalSince1970: 1)
        func place(speed: Double) -> CLLocation {
            CLLocation(
                coordinate: CLLocationCoordinate2D(latitude: 1, longitude: 2), altitude: 3, horizontalAccuracy: 4,
                verticalAccuracy: 5, course: 6, speed: speed, timestamp: time)
        }
        #expect(place(speed: 7) == place(speed: 7) && place(speed: 7).hash == place(speed: 7).hash)
        #expect(place(speed: 7) != place(speed: 8))
    }
}
