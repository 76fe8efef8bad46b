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
        guard digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
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
