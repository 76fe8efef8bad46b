import RecordModel
import ServiceClient

/// The records of a run and the bodies of its requests: the same for the same number, in every run.
struct LoadRecords: Sendable {
    let type: String
    /// The zone that a body names where it is not the default one.
    let zone: String

    /// A record's `createdAt`: 2026-01-01 and a minute more for each record.
    static func createdAt(_ number: Int) -> Int64 { 1_767_225_600_000 + Int64(number) * 60_000 }

    static func name(_ number: Int) -> String { "load-\(padded(number, to: 10))" }

    /// Words, not the same for neighbours, so that nothing on the way can fold records into one.
    static func note(_ number: Int, bytes: Int = 200) -> String {
        var random = LoadRandom(seed: UInt64(number))
        var text = words[random.below(words.count)]
        while text.utf8.count < bytes { text += " " + words[random.below(words.count)] }
        return String(text.prefix(bytes))
    }
    private static let words = [
        "agenda", "birch", "copper", "delta", "ember", "fjord", "garnet", "harbor", "island", "juniper", "kestrel",
        "lantern", "meadow", "nickel", "orchard", "pebble", "quartz", "river", "saddle", "timber",
    ]

    private static func padded(_ number: Int, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// `records/modify` that creates one record under a name that the server chooses.
    func create(_ number: Int) -> [UInt8] { modify([create(number, named: false)]) }

    func create(named numbers: [Int]) -> [UInt8] { modify(numbers.map { create($0, named: true) }) }

    /// `records/modify` that creates records which together take about so many bytes.
    func transaction(_ first: Int, count: Int, bytes: Int) -> [UInt8] {
        let each = max(1, bytes / count)
        return modify((first..<first + count).map { create($0, named: false, noteBytes: each) })
    }

    /// `records/modify` that overwrites one record that is there, whatever its change tag.
    /// - Parameter version: what makes this change differ from others of the record.
    func update(_ number: Int, version: Int) -> [UInt8] {
        // What queries look for stays as it was.
        let fields = JSONValue.members(["note": Self.field(.string(Self.note(version)), "STRING")])
        let record = JSONValue.members([
            "recordName": .string(Self.name(number)), "recordType": .string(type), "fields": fields,
        ])
        return modify([.members(["operationType": .string("forceUpdate"), "record": record])])
    }

    private func modify(_ operations: [JSONValue]) -> [UInt8] { body(["operations": .array(operations)]) }

    private func create(_ number: Int, named: Bool, noteBytes: Int = 200) -> JSONValue {
        let fields = JSONValue.members([
            "title": Self.field(.string("Task \(Self.padded(number, to: 6)) of the list"), "STRING"),
            "createdAt": Self.field(.integer(Self.createdAt(number)), "TIMESTAMP"),
            "checked": Self.field(.integer(Int64(number % 2)), "INT64"),
            "note": Self.field(.string(Self.note(number, bytes: noteBytes)), "STRING"),
        ])
        let record = JSONValue.members([
            "recordName": named ? .string(Self.name(number)) : nil, "recordType": .string(type), "fields": fields,
        ])
        return .members(["operationType": .string("create"), "record": record])
    }

    private static func field(_ value: JSONValue, _ type: String) -> JSONValue {
        .members(["value": value, "type": .string(type)])
    }

    /// `assets/upload`: URLs for files of the records.
    func uploads(_ numbers: [Int], bytes: Int) -> [UInt8] {
        body([
            "tokens": .array(
                numbers.map { number in
                    .members([
                        "recordName": .string(Self.assetName(number)), "recordType": .string(type),
                        "fieldName": .string("photo"), "size": .integer(Int64(bytes)),
                    ])
                })
        ])
    }

    /// `records/modify` that gives a record a file.
    /// - Parameter asset: what its upload answered.
    func saveAsset(_ number: Int, _ asset: JSONValue) -> [UInt8] {
        let record = JSONValue.members([
            "recordName": .string(Self.assetName(number)), "recordType": .string(type),
            "fields": .members(["photo": Self.field(asset, "ASSETID")]),
        ])
        return modify([.members(["operationType": .string("forceReplace"), "record": record])])
    }

    func assets(_ numbers: [Int]) -> [UInt8] {
        body(["records": .array(numbers.map { .members(["recordName": .string(Self.assetName($0))]) })])
    }

    private static func assetName(_ number: Int) -> String { "load-asset-\(number)" }

    /// `changes/zone`: what changed in the zone since a token, at most 50 records.
    func sync(since token: String?) -> [UInt8] {
        let wanted = JSONValue.members([
            "zoneID": ZoneRequests.id(zone), "syncToken": .given(token), "resultsLimit": .integer(50),
        ])
        return JSONValue.members(["zones": .array([wanted])]).serialized()
    }

    func lookup(_ numbers: [Int], desiredKeys: [String]? = nil) -> [UInt8] {
        body([
            "records": .array(numbers.map { .members(["recordName": .string(Self.name($0))]) }),
            "desiredKeys": desiredKeys.map { .strings($0) },
        ])
    }

    /// `records/query`: the newest 50 of the checked records in a range of `createdAt` from a record's on.
    func query(from first: Int, count: Int) -> [UInt8] {
        let query = JSONValue.members([
            "recordType": .string(type),
            "filterBy": .array([
                Self.filter("checked", "EQUALS", 1, "INT64"),
                Self.filter("createdAt", "GREATER_THAN_OR_EQUALS", Self.createdAt(first), "TIMESTAMP"),
                Self.filter("createdAt", "LESS_THAN", Self.createdAt(first + count), "TIMESTAMP"),
            ]),
            "sortBy": .array([.members(["fieldName": .string("createdAt"), "ascending": .bool(false)])]),
        ])
        return body(["query": query, "resultsLimit": .integer(50)])
    }

    private static func filter(_ field: String, _ comparator: String, _ value: Int64, _ type: String) -> JSONValue {
        .members([
            "comparator": .string(comparator), "fieldName": .string(field),
            "fieldValue": self.field(.integer(value), type),
        ])
    }

    private func body(_ members: KeyValuePairs<String, JSONValue?>) -> [UInt8] {
        var body = JSONValue.members(members).members
        if zone != LoadPlace.defaultZone { body.append(.init("zoneID", ZoneRequests.id(zone))) }
        return JSONValue.object(body).serialized()
    }

    /// The record type with what the queries need, in CloudKit's schema language.
    static func schema(type: String) -> String {
        """
        DEFINE SCHEMA

            RECORD TYPE \(type) (
                "___recordID" REFERENCE QUERYABLE,
                checked       INT64 QUERYABLE SORTABLE,
                createdAt     TIMESTAMP QUERYABLE SORTABLE,
                note          STRING,
                photo         ASSET,
                title         STRING,
                GRANT WRITE TO "_creator",
                GRANT CREATE TO "_icloud",
                GRANT READ TO "_world"
            );

        """
    }
}
