import RecordModel

/// Records as people read them.
enum RecordTable {
    /// Cells longer than this are cut; `record get` and `--json` show everything.
    private static let cellLengthMax = 48

    /// One line a record, one column a field.
    static func table(_ records: [JSONValue]) -> String {
        var names: Set<String> = []
        for record in records { for member in fields(of: record) { names.insert(member.key) } }
        let columns = names.sorted()
        // Records of a search in all zones say where they are.
        let showsZones = records.contains { $0["zoneID"] != nil }
        var table = Table(headings: (showsZones ? ["ZONE"] : []) + ["RECORD NAME"] + columns)
        for record in records {
            let fields = fields(of: record)
            table.add(
                (showsZones ? [record["zoneID"]?.text("zoneName") ?? ""] : []) + [record.text("recordName")]
                    + columns.map { column in
                        guard let field = fields.first(where: { $0.key == column }) else { return "" }
                        return value(field.value).shortened(to: cellLengthMax)
                    })
        }
        return table.text
    }

    /// Everything of one record.
    static func details(_ record: JSONValue) -> String {
        var lines = [
            "\(record.text("recordName"))", "  type      \(record.text("recordType"))",
            "  tag       \(record.text("recordChangeTag"))",
        ]
        for (label, key) in [("created ", "created"), ("modified", "modified")] {
            guard let stamp = record[key] else { continue }
            lines.append("  \(label)  \(stamp.time("timestamp")) by \(stamp.text("userRecordName"))")
        }
        if let parent = record["parent"] { lines.append("  parent    \(parent.text("recordName"))") }
        let fields = fields(of: record)
        guard !fields.isEmpty else { return lines.joined(separator: "\n") }
        var table = Table("FIELD", "TYPE", "VALUE")
        for field in fields { table.add([field.key, field.value.text("type"), value(field.value)]) }
        return (lines + table.text.split(separator: "\n").map { "  " + $0 }).joined(separator: "\n")
    }

    private static func fields(of record: JSONValue) -> [JSONValue.Member] {
        guard case .object(let members)? = record["fields"] else { return [] }
        return members
    }

    /// A field's value: places as latitude,longitude, references by their record's name, times as such.
    static func value(_ field: JSONValue) -> String {
        guard let value = field["value"] else { return "" }
        if field.text("type") == "TIMESTAMP", case .integer(let milliseconds) = value {
            return Times.text(milliseconds)
        }
        return scalar(value)
    }

    private static func scalar(_ value: JSONValue) -> String {
        if let members = value.array { return members.map(scalar).joined(separator: ", ") }
        if value["latitude"] != nil { return "\(value.text("latitude")),\(value.text("longitude"))" }
        if let name = value["recordName"]?.string { return name }
        return value.plainText
    }
}
