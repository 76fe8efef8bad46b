import CoreLocation
import Foundation
import RecordModel
import Testing

@testable import CloudKit

@Suite("Records as JSON")
struct RecordCodingTests {
    private let zone = CKRecordZone.ID(zoneName: "zone")

    private func json(_ text: String) throws -> JSONValue { try JSONParser.parse(Array(text.utf8)) }

    @Test("A save names the record, its fields with their types, and its parent")
    func writing() throws {
        let record = CKRecord(recordType: "T", recordID: CKRecord.ID(recordName: "r", zoneID: zone))
        record["a"] = "x"
        record["b"] = 1
        record["c"] = 1.5
        record["d"] = Date(timeIntervalSince1970: 1.5)
        record["e"] = Data([1])
        record["f"] = [Double]()
        record["g"] = CKRecord.Reference(recordID: CKRecord.ID(recordName: "p", zoneID: zone), action: .none)
        record["h"] = nil
        record.encryptedValues["i"] = "s"
        var writer = JSONWriter()
        writer.saving(record.snapshot(), "create", keys: record.changedKeys(), withParent: true)
        let expected = """
            {"operationType":"create","record":{"recordName":"r","recordType":"T","fields":{\
            "a":{"value":"x","type":"STRING"},"b":{"value":1,"type":"INT64"},"c":{"value":1.5,"type":"DOUBLE"},\
            "d":{"value":1500,"type":"TIMESTAMP"},"e":{"value":"AQ==","type":"BYTES"},\
            "f":{"value":[],"type":"UNKNOWN_LIST"},\
            "g":{"value":{"recordName":"p","action":"NONE","zoneID":{"zoneName":"zone"}},"type":"REFERENCE"},\
            "h":{"value":null},"i":{"value":"s","type":"STRING","isEncrypted":true}},"parent":null}}
            """
        #expect(String(decoding: writer.bytes, as: UTF8.self) == expected)
    }

    @Test("A record is read with its system fields, and what is encrypted is known as such")
    func reading() throws {
        let record = try RecordReader(zone: zone).record(
            json(
                """
                {"recordName":"r","recordType":"T","recordChangeTag":"1a","deleted":false,"pluginFields":{},
                "created":{"timestamp":1500,"userRecordName":"_u","deviceID":"2"},
                "modified":{"timestamp":2500,"userRecordName":"_v","deviceID":"2"},"parent":{"recordName":"p"},
                "fields":{"n":{"value":3,"type":"DOUBLE"},"l":{"value":[],"type":"UNKNOWN_LIST"},
                "s":{"value":"x","type":"STRING","isEncrypted":true},"b":{"value":"AQ==","type":"ENCRYPTED_BYTES"},
                "p":{"value":{"latitude":1,"longitude":2.5},"type":"LOCATION"},"x":{"value":null,"type":"STRING"}}}
                """))
        #expect(record.recordID == CKRecord.ID(recordName: "r", zoneID: zone))
        #expect(record.recordChangeTag == "1a" && record.creationDate == Date(timeIntervalSince1970: 1.5))
        #expect(record.lastModifiedUserRecordID?.recordName == "_v")
        #expect(record.parent?.recordID == CKRecord.ID(recordName: "p", zoneID: zone))
        #expect(record["n"] as? Double == 3)
        #expect(record.allKeys() == ["l", "n", "p"] && record.changedKeys().isEmpty)
        #expect(record.encryptedValues.allKeys() == ["b", "s"])
        let place = try #require(record["p"] as? CLLocation)
        #expect(place.coordinate.longitude == 2.5 && place.verticalAccuracy == -1)
    }

    @Test(
        "What is no record is an error and no crash",
        arguments: [
            "{}", #"{"recordName":"r"}"#, #"{"recordName":"r","recordType":"T"}"#,
            #"{"recordName":"r","recordType":"T","recordChangeTag":"1","fields":{"a":{"value":1}}}"#,
            #"{"recordName":"r","recordType":"T","recordChangeTag":"1","fields":{"a":{"value":"x","type":"INT64"}}}"#,
            #"{"recordName":"r","recordType":"T","recordChangeTag":"1","fields":{"a":{"value":"*","type":"BYTES"}}}"#,
            #"{"recordName":"r","recordType":"T","recordChangeTag":"1","fields":{"a":{"value":1,"type":"STRING_LIST"}}}"#,
        ])
    func unreadable(text: String) throws {
        let json = try json(text)
        #expect(throws: CKError.self) { try RecordReader(zone: zone).record(json) }
    }
}

@Suite("Answers with a fault in them")
struct FaultyAnswerTests {
    @Test("A record that cannot be read is a failure of its own")
    func ownFailure() throws {
        let reader = RecordReader(zone: .default)
        let broken = try JSONParser.parse(Array(#"{"recordName":"r","recordType":"T"}"#.utf8))
        #expect(reader.result(broken, ErrorMapping()).code == .internalError)
        let refused = try JSONParser.parse(
            Array(#"{"recordName":"r","serverErrorCode":"NOT_FOUND","reason":"Record not found"}"#.utf8))
        #expect(reader.result(refused, ErrorMapping()).code == .unknownItem)
    }
}
