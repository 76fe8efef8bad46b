import CloudKit
import Foundation
import RecordModel
import Testing

/// `GeneratedRecords.swift` is what the schema below comes to; it is compiled with these tests.
@Suite("Swift code of a schema")
struct GeneratedRecordsTests {
    static let schema = """
        DEFINE SCHEMA
            RECORD TYPE Place (
                "___recordID" REFERENCE QUERYABLE,
                "class" STRING, record STRING, recordType INT64, name STRING QUERYABLE, count INT64, height DOUBLE,
                opened TIMESTAMP, hash BYTES, spot LOCATION, near REFERENCE, image ASSET, code ENCRYPTED STRING,
                tags LIST<STRING>, images LIST<ASSET>, secrets LIST<ENCRYPTED INT64>,
                GRANT READ TO "_world"
            );
            RECORD TYPE place ( GRANT READ TO "_world" );
        """

    @Test("the code of a schema is the file that is compiled here")
    func golden() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "GeneratedRecords.swift")
        let code = SchemaSwift.code(of: try SchemaParser.parse(Self.schema))
        #expect(code == (try String(contentsOf: file, encoding: .utf8)))
        let one = SchemaSwift.code(of: try SchemaParser.parse(Self.schema), type: "place")
        #expect(one.contains("struct Place2") && !one.contains("struct Place "))
    }

    @Test("a record type that is named like one that the code uses gets another name")
    func taken() throws {
        for name in ["CKRecord", "UUID", "uUID", "string"] {
            let schema = Schema(types: [RecordType(name: name)])
            let struct2 = "struct \(name.prefix(1).uppercased())\(name.dropFirst())2 {"
            #expect(SchemaSwift.code(of: schema).contains(struct2), "\(name)")
        }
    }

    @Test("its properties read and write the record's fields")
    func properties() throws {
        let place = Place(recordID: CKRecord.ID(recordName: "a"))
        place.name = "Osteria"
        place.count = 3
        place.tags = ["wine"]
        place.code = "x7"
        place.`class` = "good"
        place.spot = CLLocation(latitude: 1, longitude: 2)
        #expect(place.record["name"] as? String == "Osteria" && place.record["class"] as? String == "good")
        #expect(place.record.encryptedValues["code"] as? String == "x7" && place.code == "x7")
        #expect(place.count == 3 && place.tags == ["wine"] && place.spot?.coordinate.longitude == 2)
        place.name = nil
        #expect(place.name == nil && place.record["name"] == nil)
        #expect(Place(CKRecord(recordType: "place")) == nil)
        #expect(Place(CKRecord(recordType: "Place"))?.opened == nil)
    }
}
