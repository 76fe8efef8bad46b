import RecordModel
import ServiceClient

/// The places of the time zone database, as fields of `Place` records.
enum SamplePlaces {
    /// One line of `zone1970.tab`: country codes, position, time zone and maybe a comment, with tabs between them.
    /// - Returns: nil for comments and empty lines.
    /// - Throws: `CommandFailure` for a line of another form.
    static func place(_ line: Substring) throws(CommandFailure) -> JSONValue? {
        if line.isEmpty || line.hasPrefix("#") { return nil }
        let columns = line.split(separator: "\t", omittingEmptySubsequences: false)
        guard columns.count == 3 || columns.count == 4, !columns[0].isEmpty, !columns[2].isEmpty,
            let position = ISO6709.degrees(columns[1])
        else { throw CommandFailure("'\(line)' is no line of zone1970.tab") }
        return .members([
            "recordName": .string("place-" + columns[2].map { $0 == "/" ? "_" : String($0) }.joined()),
            "code": .string(String(columns[0])),
            "coordinates": .members([
                "latitude": .number(position.latitude), "longitude": .number(position.longitude),
            ]), "timeZone": .string(String(columns[2])),
            "comment": columns.count == 4 ? .string(String(columns[3])) : nil,
        ])
    }
}
