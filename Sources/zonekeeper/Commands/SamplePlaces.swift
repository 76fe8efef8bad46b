import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper sample-places`: what `scripts/up` imports.
struct SamplePlacesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sample-places",
        abstract: "Print the places of the time zone database as JSON lines for `record import`.", shouldDisplay: false)

    @Argument(help: "The table of the tzdata package.")
    var file = "/usr/share/zoneinfo/zone1970.tab"

    func run() async throws {
        for line in try InputFile.read(file).split(separator: "\n") {
            if let place = try SamplePlaces.place(line) { Console.print(place.serialized()) }
        }
    }
}

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

/// Positions in the short form of ISO 6709, as the time zone database writes them: `+4230+00131` or `+404251-0740023`.
enum ISO6709 {
    /// Degrees, north and east positive; nil for text that is neither ±DDMM±DDDMM nor ±DDMMSS±DDDMMSS.
    static func degrees(_ text: some StringProtocol) -> (latitude: Double, longitude: Double)? {
        let bytes = Array(text.utf8)
        guard let middle = bytes.indices.dropFirst().first(where: { isSign(bytes[$0]) }),
            let latitude = degrees(bytes[..<middle], degreeDigits: 2), abs(latitude) <= 90,
            let longitude = degrees(bytes[middle...], degreeDigits: 3), abs(longitude) <= 180,
            // Both sides have seconds, or neither.
            bytes.count - middle == middle + 1
        else { return nil }
        return (latitude, longitude)
    }

    private static func isSign(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") }

    private static func degrees(_ text: ArraySlice<UInt8>, degreeDigits: Int) -> Double? {
        guard let sign = text.first, isSign(sign) else { return nil }
        let digits = text.dropFirst()
        guard digits.allSatisfy(\.isASCIIDigit),
            digits.count == degreeDigits + 2 || digits.count == degreeDigits + 4
        else { return nil }
        func number(_ part: ArraySlice<UInt8>) -> Int { part.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } }
        let minutes = number(digits.dropFirst(degreeDigits).prefix(2))
        let seconds = number(digits.dropFirst(degreeDigits + 2))
        guard minutes < 60, seconds < 60 else { return nil }
        // One division, so that the result is the double nearest to the place.
        let magnitude = Double(number(digits.prefix(degreeDigits)) * 3_600 + minutes * 60 + seconds) / 3_600
        return sign == UInt8(ascii: "-") ? -magnitude : magnitude
    }
}
