import RecordModel
import ServiceClient

/// A container's records by type, as people read them: pages of the answer added up.
struct UsageByType {
    private var types: [(name: String, records: Int64, bytes: Int64)] = []
    /// Of all databases, index rows and deleted records included.
    private var allBytes: Int64 = 0
    private var databases: Set<String> = []

    /// Takes a page of one environment.
    mutating func add(_ page: JSONValue) {
        for database in page["databases"]?.array ?? [] {
            // One with many zones comes in several parts, each with all of its bytes.
            if databases.insert("\(database.text("scope")) \(database.text("userRecordName"))").inserted {
                allBytes += database.amount("bytes") ?? 0
            }
            for type in database["types"]?.array ?? [] { add(type: type) }
        }
    }

    private mutating func add(type: JSONValue) {
        let (name, records, bytes) = (type.text("name"), type.amount("records") ?? 0, type.amount("bytes") ?? 0)
        if let place = types.firstIndex(where: { $0.name == name }) {
            types[place].records += records
            types[place].bytes += bytes
        } else {
            types.append((name, records, bytes))
        }
    }

    /// As JSON, the largest first.
    var json: JSONValue {
        .members([
            "bytes": .integer(allBytes),
            "types": .array(
                sorted.map {
                    .members(["name": .string($0.name), "records": .integer($0.records), "bytes": .integer($0.bytes)])
                }),
        ])
    }

    private var sorted: [(name: String, records: Int64, bytes: Int64)] {
        types.sorted { ($1.bytes, $0.name) < ($0.bytes, $1.name) }
    }

    /// A table, and what is no record's.
    var text: String {
        guard !types.isEmpty else { return "no records yet" }
        var table = Table("TYPE", "RECORDS", "BYTES")
        for type in sorted { table.add([type.name, Units.count(type.records), Units.bytes(type.bytes)]) }
        let others = allBytes - types.reduce(0) { $0 + $1.bytes }
        return table.text + (others > 0 ? "\nindexes, deletions and remembered requests: \(Units.bytes(others))" : "")
    }
}

/// A container's usage by day, as people read it.
enum UsageByDay {
    static func text(_ json: JSONValue) -> String {
        let days = json["days"]?.array ?? []
        guard !days.isEmpty else {
            return "nothing was counted yet: days appear some minutes after their first request"
        }
        let size: (String) -> (JSONValue) -> String = { key in { day in day.amount(key).map { Units.bytes($0) } ?? "" }
        }
        let table = Table(
            days,
            [
                ("DAY", { String($0.time("time").prefix(10)) }), ("REQUESTS", { $0.text("requests") }),
                ("ERRORS", { $0.text("errors") }), ("IN", size("bytesIn")), ("OUT", size("bytesOut")),
                ("USERS", { $0.text("activeUsers") }), ("PUBLIC", size("publicBytes")),
                ("PRIVATE", size("privateBytes")), ("ASSETS", size("assetBytes")),
            ])
        guard let growth = json.amount("bytesPerDay") else { return table.text }
        let full = json.amount("daysUntilFull").map { "; full in \($0) days at this rate" } ?? ""
        let sign = growth < 0 ? "-" : "+"
        return table.text + "\n\npublic data: \(sign)\(Units.bytes(abs(growth))) a day\(full)"
    }
}
