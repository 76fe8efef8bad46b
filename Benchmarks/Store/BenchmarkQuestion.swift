import Foundation
import GRDB
import RecordModel

/// A query, and the same by hand; both make records of what they find.
struct BenchmarkQuestion {
    var title: String
    var query: Query
    /// Whether both may name different records of those that match.
    var isUnordered = false
    /// The names of the records.
    var handWritten: (Database) throws -> [String]

    static func all(page: Int) -> [BenchmarkQuestion] {
        let integers: [(String, Int64, String, Int64)] = [
            ("half", 1, "tenth", 3), ("tenth", 3, "tenth2", 4), ("thousandth", 7, "tenth", 3),
        ]
        return integers.map { two($0, .int64($1), "\($1)", $2, $3, page) }
            + [
                two("hundredth", .string("list-7"), "'list-7'", "tenth", 3, page), near(page), nearest(page),
                word("red", page), word("w7", page), word("red blue", page),
            ]
    }

    /// Two filters and a sort.
    private static func two(
        _ first: String, _ value: FieldValue, _ literal: String, _ second: String, _ other: Int64, _ page: Int
    ) -> BenchmarkQuestion {
        let sql = """
            SELECT * FROM item WHERE \(first) = \(literal) AND \(second) = \(other) ORDER BY date LIMIT \(page)
            """
        return BenchmarkQuestion(
            title: "\(first) = \(literal) and \(second) = \(other), by date",
            query: Query(
                recordType: "Item",
                filters: [
                    Filter(field: first, comparator: .equals, value: value),
                    Filter(field: second, comparator: .equals, value: .int64(other)),
                ], sorts: [Sort(field: "date")])
        ) { db in try records(db, sql).map(\.name) }
    }

    private static let center = Location(latitude: 48.2, longitude: 16.37)

    private static func near(_ page: Int) -> BenchmarkQuestion {
        BenchmarkQuestion(
            title: "within 20 km of a place",
            query: Query(
                recordType: "Item",
                filters: [Filter(field: "place", comparator: .near, value: .location(center), distance: 20_000)]),
            isUnordered: true
        ) { db in Array(try inBox(db, metres: 20_000).prefix(page).map(\.record.name)) }
    }

    private static func nearest(_ page: Int) -> BenchmarkQuestion {
        BenchmarkQuestion(
            title: "nearest to a place",
            query: Query(recordType: "Item", sorts: [Sort(field: "place", relativeLocation: center)])
        ) { db in
            // By hand: 40 km are known to hold a page.
            let found = try inBox(db, metres: 40_000).sorted { $0.metres < $1.metres }
            return found.prefix(page).map(\.record.name)
        }
    }

    private static func inBox(_ db: Database, metres: Double) throws -> [(record: RecordModel.Record, metres: Double)] {
        let height = metres / 111_195
        let width = height / cos(center.latitude * .pi / 180) * 1.01
        let sql = """
            SELECT item.* FROM item_place p JOIN item ON item.id = p.id WHERE
            p.south >= \(center.latitude - height) AND p.north <= \(center.latitude + height)
            AND p.west >= \(center.longitude - width) AND p.east <= \(center.longitude + width)
            """
        return try records(db, sql).compactMap { record in
            guard case .location(let place)? = record.fields["place"] else { return nil }
            let distance = distance(place)
            return distance <= metres ? (record, distance) : nil
        }
    }

    private static func distance(_ place: Location) -> Double {
        let (a, b) = (center.latitude * .pi / 180, place.latitude * .pi / 180)
        let step = (place.longitude - center.longitude) * .pi / 180
        let half = pow(sin((b - a) / 2), 2) + cos(a) * cos(b) * pow(sin(step / 2), 2)
        return 2 * 6_371_008.8 * asin(half.squareRoot())
    }

    private static func word(_ text: String, _ page: Int) -> BenchmarkQuestion {
        let words = text.split(separator: " ")
        let more = words.dropFirst().map { word in
            "AND EXISTS (SELECT 1 FROM item_word o WHERE o.word = '\(word)' AND o.date = w.date AND o.item = w.item)"
        }
        let sql = """
            SELECT item.* FROM item_word w JOIN item ON item.id = w.item WHERE w.word = '\(words[0])'
            \(more.joined(separator: " ")) ORDER BY w.date LIMIT \(page)
            """
        return BenchmarkQuestion(
            title: "words \(text), by date",
            query: Query(
                recordType: "Item",
                filters: [Filter(field: "text", comparator: .containsAllTokens, value: .string(text))],
                sorts: [Sort(field: "date")])
        ) { db in try records(db, sql).map(\.name) }
    }

    /// Rows of the table by hand as the same records that the store gives.
    private static func records(_ db: Database, _ sql: String) throws -> [RecordModel.Record] {
        let cursor = try Row.fetchCursor(db.cachedStatement(sql: sql))
        var found: [RecordModel.Record] = []
        while let row = try cursor.next() {
            let place = Location(latitude: row[8], longitude: row[9])
            let fields = Fields([
                Fields.Field(name: "date", value: .timestamp(row[7])),
                Fields.Field(name: "half", value: .int64(row[2])),
                Fields.Field(name: "hundredth", value: .string(row[5])),
                Fields.Field(name: "place", value: .location(place)),
                Fields.Field(name: "tenth", value: .int64(row[3])), Fields.Field(name: "tenth2", value: .int64(row[4])),
                Fields.Field(name: "text", value: .string(row[10])),
                Fields.Field(name: "thousandth", value: .int64(row[6])),
                Fields.Field(name: "title", value: .string(row[11])),
            ])
            let stamp = Stamp(timestamp: row[12], user: "_ann")
            found.append(
                RecordModel.Record(
                    name: row[1], type: "Item", changeTag: ChangeTag(incarnation: 1, sequence: 1), created: stamp,
                    modified: stamp, fields: fields))
        }
        return found
    }
}
