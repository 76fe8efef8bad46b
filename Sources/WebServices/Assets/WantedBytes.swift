/// Which bytes of a file a request wants (RFC 9110, section 14).
enum WantedBytes: Equatable {
    case all
    case part(Range<UInt64>)
    /// A range that begins behind the end.
    case unsatisfiable

    /// One range is served; several, and what is not understood, mean all.
    /// - Parameters:
    ///   - range: the header `Range`.
    ///   - ifRange: the header `If-Range`; a range is for that version of the file only. Dates name none of ours.
    init(range: String?, ifRange: String?, tag: String, size: UInt64) {
        self = .all
        guard let range, ifRange == nil || ifRange == tag, range.lowercased().hasPrefix("bytes=") else { return }
        let ends = range.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]) else { return }
        switch (first, last) {
        case (nil, nil): return
        case (nil, let suffix?):
            self = suffix == 0 || size == 0 ? .unsatisfiable : .part(size - min(suffix, size)..<size)
        case (let first?, let last):
            if let last, last < first { return }
            self = first >= size ? .unsatisfiable : .part(first..<min(last ?? size, size - 1) + 1)
        }
    }

    /// Digits only; an inner nil where there are none. What 64 bits do not hold is as much as they do.
    private static func number(_ text: Substring) -> UInt64?? {
        let text = text.drop { $0 == " " }
        guard !text.isEmpty else { return .some(nil) }
        guard text.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) else { return nil }
        return .some(UInt64(text) ?? .max)
    }
}
