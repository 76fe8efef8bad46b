import CoreLocation
import Foundation
import RecordModel
import Testing

@testable import CloudKit

@Suite("The server's own parser takes what queries become")
struct ServerAcceptanceTests {
    /// The record type of the tables.
    static let schema = """
        DEFINE SCHEMA RECORD TYPE Item (
            "___recordID" REFERENCE QUERYABLE,
            "___createTime" TIMESTAMP QUERYABLE SORTABLE,
            "___modTime" TIMESTAMP QUERYABLE SORTABLE,
            "___createdBy" REFERENCE QUERYABLE,
            "___modifiedBy" REFERENCE QUERYABLE,
            "___parent" REFERENCE QUERYABLE,
            title STRING QUERYABLE SORTABLE SEARCHABLE,
            "in" STRING QUERYABLE,
            count INT64 QUERYABLE SORTABLE,
            score DOUBLE QUERYABLE SORTABLE,
            when TIMESTAMP QUERYABLE SORTABLE,
            blob BYTES QUERYABLE,
            place LOCATION QUERYABLE SORTABLE,
            other REFERENCE QUERYABLE,
            tags LIST<STRING> QUERYABLE
        );
        """

    /// The query as the server understands it; no zone is all of them.
    private func resolved(_ query: CKQuery, in zone: CKRecordZone.ID? = nil) throws -> RecordModel.Query {
        let form = try #require(try query.webForm(zone: zone, now: Date(timeIntervalSince1970: 1)))
        var members = [JSONValue.Member("query", form)]
        if let zone {
            members.append(
                JSONValue.Member("zoneID", .object([JSONValue.Member("zoneName", .string(zone.zoneName))])))
        }
        let bytes = JSONValue.object(members).serialized()
        let request = try QueryRecordsRequest(json: try JSONParser.parse(bytes))
        let type = try #require(try SchemaParser.parse(Self.schema).type(named: "Item"))
        return try request.query.resolve(
            schema: type, zone: zone == nil ? nil : request.zoneID, container: "iCloud.test")
    }

    @Test("Every row of the table is understood, with its types", arguments: FilterTable.all)
    func table(_ row: FilterCase) throws {
        let query = try resolved(query(row.format, row.arguments()))
        #expect(query.recordType == "Item")
        #expect(query.filters.count == row.filters.count)
    }

    @Test("Sort keys are understood, distances too")
    func sorts() throws {
        let query = CKQuery(recordType: "Item", predicate: NSPredicate(value: true))
        query.sortDescriptors = [
            NSSortDescriptor(key: "title", ascending: true), NSSortDescriptor(key: "creationDate", ascending: false),
            CKLocationSortDescriptor(key: "place", relativeLocation: CLLocation(latitude: 1, longitude: -2)),
        ]
        #expect(
            try resolved(query).sorts == [
                Sort(field: "title"), Sort(field: "___createTime", isAscending: false),
                Sort(field: "place", relativeLocation: Location(latitude: 1, longitude: -2)),
            ])
    }

    @Test("A number without a fraction is a DOUBLE where the field is one")
    func numbers() throws {
        #expect(try resolved(query("score > 4")).filters.first?.value == .double(4))
        #expect(try resolved(query("count = %f", [2.0])).filters.first?.value == .int64(2))
        #expect(throws: ServiceError.self) { try resolved(query("count = 2.5")) }
        #expect(throws: ServiceError.self) { try resolved(query("count = 'x'")) }
    }

    @Test("A reference loses its action and its zone, and one of another zone than is searched is refused")
    func references() throws {
        let notes = CKRecordZone.ID(zoneName: "Notes")
        let reference = CKRecord.Reference(recordID: CKRecord.ID(recordName: "r", zoneID: notes), action: .deleteSelf)
        let query = query("other = %@", [reference])
        let expected = FieldValue.reference(Reference(recordName: "r"))
        #expect(try resolved(query, in: notes).filters.first?.value == expected)
        #expect(try resolved(query, in: nil).filters.first?.value == expected)
        #expect(throws: ServiceError.self) { try resolved(query, in: .default) }
    }
}
