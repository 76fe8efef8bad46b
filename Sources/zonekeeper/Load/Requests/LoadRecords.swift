import RecordModel

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
        "lantern",
        "meadow", "nickel", "orchard", "pebble", "quartz", "river", "saddle", "timber",
    ]

    private static func padded(_ number: Int, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// `records/modify` that creates one record under a name that the server chooses.
    func create(_ number: Int) -> [UInt8] { create([number], named: false) }

    /// `records/modify` that creates records under their names.
    func create(named numbers: [Int]) -> [UInt8] { create(numbers, named: true) }

    private func create(_ numbers: [Int], named: Bool) -> [UInt8] {
        body { writer in
            writer.key("operations")
            writer.array { writer in
                for number in numbers {
                    writer.object { writer in
                        writer.member("operationType", "create")
                        writer.key("record")
                        writer.object { writer in
                            if named { writer.member("recordName", Self.name(number)) }
                            writer.member("recordType", type)
                            writer.key("fields")
                            writer.object { Self.fields(number, to: &$0) }
                        }
                    }
                }
            }
        }
    }

    /// `records/modify` that overwrites one record that is there, whatever its change tag.
    /// - Parameter version: what makes this change differ from others of the record.
    func update(_ number: Int, version: Int) -> [UInt8] {
        body { writer in
            writer.key("operations")
            writer.array { writer in
                writer.object { writer in
                    writer.member("operationType", "forceUpdate")
                    writer.key("record")
                    writer.object { writer in
                        writer.member("recordName", Self.name(number))
                        writer.member("recordType", type)
                        writer.key("fields")
                        // What queries look for stays as it was.
                        writer.object { Self.field("note", "STRING", to: &$0) { $0.string(Self.note(version)) } }
                    }
                }
            }
        }
    }

    /// `records/modify` that creates records which together take about so many bytes.
    func transaction(_ first: Int, count: Int, bytes: Int) -> [UInt8] {
        let each = max(1, bytes / count)
        return body { writer in
            writer.key("operations")
            writer.array { writer in
                for number in first..<first + count {
                    writer.object { writer in
                        writer.member("operationType", "create")
                        writer.key("record")
                        writer.object { writer in
                            writer.member("recordType", type)
                            writer.key("fields")
                            writer.object { Self.fields(number, noteBytes: each, to: &$0) }
                        }
                    }
                }
            }
        }
    }

    /// `changes/zone`: what changed in the zone since a token, at most 50 records.
    func sync(since token: String?) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.key("zones")
            writer.array { writer in
                writer.object { writer in
                    writer.key("zoneID")
                    writer.object { $0.member("zoneName", zone) }
                    if let token { writer.member("syncToken", token) }
                    writer.member("resultsLimit", integer: 50)
                }
            }
        }
        return writer.bytes
    }

    private static func field(
        _ name: String, _ type: String, to writer: inout JSONWriter, _ value: (inout JSONWriter) -> Void
    ) {
        writer.key(name)
        writer.object { writer in
            writer.key("value")
            value(&writer)
            writer.member("type", type)
        }
    }

    private static func fields(_ number: Int, noteBytes: Int = 200, to writer: inout JSONWriter) {
        func field(_ name: String, _ type: String, _ value: (inout JSONWriter) -> Void) {
            Self.field(name, type, to: &writer, value)
        }
        field("title", "STRING") { $0.string("Task \(padded(number, to: 6)) of the list") }
        field("createdAt", "TIMESTAMP") { $0.integer(createdAt(number)) }
        field("checked", "INT64") { $0.integer(Int64(number % 2)) }
        field("note", "STRING") { $0.string(note(number, bytes: noteBytes)) }
    }

    /// `records/lookup` by name.
    func lookup(_ numbers: [Int], desiredKeys: [String]? = nil) -> [UInt8] {
        body { writer in
            writer.key("records")
            writer.array { writer in
                for number in numbers { writer.object { $0.member("recordName", Self.name(number)) } }
            }
            if let desiredKeys {
                writer.key("desiredKeys")
                writer.array { writer in for key in desiredKeys { writer.string(key) } }
            }
        }
    }

    /// `records/query`: the newest 50 of the checked records in a range of `createdAt` from a record's on.
    func query(from first: Int, count: Int) -> [UInt8] {
        body { writer in
            writer.key("query")
            writer.object { writer in
                writer.member("recordType", type)
                writer.key("filterBy")
                writer.array { writer in
                    Self.filter("checked", "EQUALS", 1, "INT64", to: &writer)
                    Self.filter(
                        "createdAt", "GREATER_THAN_OR_EQUALS", Self.createdAt(first), "TIMESTAMP", to: &writer)
                    Self.filter("createdAt", "LESS_THAN", Self.createdAt(first + count), "TIMESTAMP", to: &writer)
                }
                writer.key("sortBy")
                writer.array { writer in
                    writer.object { writer in
                        writer.member("fieldName", "createdAt")
                        writer.member("ascending", false)
                    }
                }
            }
            writer.member("resultsLimit", integer: 50)
        }
    }

    private static func filter(
        _ field: String, _ comparator: String, _ value: Int64, _ type: String, to writer: inout JSONWriter
    ) {
        writer.object { writer in
            writer.member("comparator", comparator)
            writer.member("fieldName", field)
            writer.key("fieldValue")
            writer.object { writer in
                writer.member("value", integer: value)
                writer.member("type", type)
            }
        }
    }

    /// A body with the zone, where it is not the default one.
    private func body(_ write: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            write(&writer)
            if zone != LoadPlace.defaultZone {
                writer.key("zoneID")
                writer.object { $0.member("zoneName", zone) }
            }
        }
        return writer.bytes
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
                title         STRING,
                GRANT WRITE TO "_creator",
                GRANT CREATE TO "_icloud",
                GRANT READ TO "_world"
            );

        """
    }
}
