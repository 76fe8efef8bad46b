import Authorization
import GRDB
import RecordModel
import RecordStore

/// One zone of records, and the same in a table and indexes written by hand for each question.
struct BenchmarkWorld {
    let queue: DatabaseQueue
    let count: Int
    let tables = RecordTables()

    static let caller = Caller(user: "_ann")
    static let zone = ZoneKey(
        database: DatabaseKey(container: "app", environment: .production, scope: .private, owner: "_ann"),
        name: "benchmark")
    static let words = ["red", "green", "blue", "north", "south", "east", "west", "old", "new", "quiet"]

    private static let schema: Schema = {
        func field(_ name: String, _ type: ScalarType, _ indexes: RecordModel.IndexOptions = [.queryable, .sortable])
            -> FieldDefinition
        {
            FieldDefinition(name: name, type: FieldType(type), indexes: indexes)
        }
        return Schema(types: [
            RecordType(
                name: "Item",
                fields: [
                    field("half", .int64), field("tenth", .int64), field("tenth2", .int64), field("hundredth", .string),
                    field("thousandth", .int64), field("date", .timestamp), field("place", .location),
                    field("text", .string, .searchable), field("title", .string, []),
                    field("___recordID", .reference, .queryable),
                ])
        ])
    }()

    /// Numbers that look random and are the same on every run.
    private struct Values {
        var state: UInt64 = 42
        mutating func next(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
    }

    func fill() throws {
        var values = Values()
        try queue.write { db in
            try RecordTables.create(in: db)
            try db.execute(sql: Self.handTables)
            _ = try tables.apply(
                .installSchema(
                    InstallSchema(container: "app", environment: .production, version: 1, schema: Self.schema)),
                in: db)
            _ = try tables.apply(
                .modifyZone(ModifyZone(.create, zone: Self.zone, caller: Self.caller, time: 1)), in: db)
            let transaction = try tables.begin(in: db)
            let insert = try db.makeStatement(sql: "INSERT INTO item VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
            for number in 0..<count {
                let row = Row(number, &values)
                let command = ModifyRecords(
                    zone: Self.zone, schemaVersion: 1, caller: Self.caller, time: Int64(number) + 2,
                    operations: [RecordChange(.create, row.name, type: "Item", fields: row.changes)])
                _ = try transaction.apply(.modifyRecords(command))
                try insert.execute(arguments: [
                    row.name, row.half, row.tenth, row.tenth2, row.hundredth, row.thousandth, row.date,
                    row.place.latitude, row.place.longitude, row.text, row.title, number,
                ])
                for word in Set(row.text.split(separator: " ")) {
                    try db.execute(
                        sql: "INSERT INTO item_word VALUES (?, ?, ?)",
                        arguments: [String(word), row.date, db.lastInsertedRowID])
                }
            }
            try transaction.finish()
            try db.execute(sql: "INSERT INTO item_place SELECT id, latitude, latitude, longitude, longitude FROM item")
        }
    }

    private struct Row {
        var name: String
        var half, tenth, tenth2, thousandth, date: Int64
        var hundredth, text, title: String
        var place: Location

        init(_ number: Int, _ values: inout Values) {
            func draw(_ bound: UInt64, _ values: inout Values) -> Int64 { Int64(values.next(bound)) }
            name = "item-\(number)"
            half = draw(2, &values)
            tenth = draw(10, &values)
            tenth2 = draw(10, &values)
            hundredth = "list-\(draw(100, &values))"
            thousandth = draw(1_000, &values)
            date = draw(1 << 30, &values)
            place = Location(
                latitude: Double(draw(1_000_000, &values)) / 1e6 * 20 + 40,
                longitude: Double(draw(1_000_000, &values)) / 1e6 * 20)
            var words = ["w\(draw(1_000, &values))"]
            for _ in 0..<3 { words.append(BenchmarkWorld.words[Int(draw(10, &values))]) }
            text = words.joined(separator: " ")
            title = "Title of the item with the number \(number)"
        }

        var changes: [RecordChange.FieldChange] {
            [
                RecordChange.FieldChange(name: "half", value: .int64(half)),
                RecordChange.FieldChange(name: "tenth", value: .int64(tenth)),
                RecordChange.FieldChange(name: "tenth2", value: .int64(tenth2)),
                RecordChange.FieldChange(name: "hundredth", value: .string(hundredth)),
                RecordChange.FieldChange(name: "thousandth", value: .int64(thousandth)),
                RecordChange.FieldChange(name: "date", value: .timestamp(date)),
                RecordChange.FieldChange(name: "place", value: .location(place)),
                RecordChange.FieldChange(name: "text", value: .string(text)),
                RecordChange.FieldChange(name: "title", value: .string(title)),
            ]
        }
    }

    /// The best index for each question; the word table holds the sort key, so that one range answers.
    private static let handTables = """
        CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, half INT, tenth INT, tenth2 INT, hundredth TEXT,
            thousandth INT, date INT, latitude REAL, longitude REAL, text TEXT, title TEXT, number INT);
        CREATE INDEX item_half ON item (half, tenth, date);
        CREATE INDEX item_tenth ON item (tenth, tenth2, date);
        CREATE INDEX item_hundredth ON item (hundredth, tenth, date);
        CREATE INDEX item_thousandth ON item (thousandth, tenth, date);
        CREATE TABLE item_word (word TEXT, date INT, item INT, PRIMARY KEY (word, date, item)) WITHOUT ROWID;
        CREATE VIRTUAL TABLE item_place USING rtree (id, south, north, west, east);
        """
}
