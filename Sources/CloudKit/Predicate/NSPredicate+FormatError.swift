public import Foundation

extension NSPredicate {
    /// Why a predicate format is none. The format is at fault, so a retry does not help.
    ///
    /// Apple's systems raise an exception in the initialiser. Here the predicate keeps the error, `formatError` shows
    /// it, and a query with the predicate fails with `CKError.invalidArguments`.
    public struct FormatError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The text, as the caller gave it.
        public let format: String
        /// Where the fault is, in characters from the start of `format`.
        public let position: Int
        /// What would have been right there.
        public let expected: String
        /// What is there.
        public let found: String

        /// What is wrong, and the format with a caret under the place.
        public var description: String {
            let excerpt = PredicateExcerpt.lines(format, position: position)
            return "Unable to parse the format string: character \(position): expected \(expected), found \(found)"
                + (excerpt.isEmpty ? "" : "\n" + excerpt)
        }
    }
}

/// The lines that show where in a format a fault is.
enum PredicateExcerpt {
    /// Characters of a format that a message shows on either side of a place.
    private static let reachMax = 60

    /// The format around a place on one line, and a caret under it; empty where there is no format.
    static func lines(_ format: String, position: Int) -> String {
        guard !format.isEmpty else { return "" }
        let head = format.prefix(position)
        let before = head.suffix(reachMax)
        let after = format.dropFirst(position).prefix(reachMax)
        var line = before.startIndex > head.startIndex ? "…" : ""
        line += plain(before)
        let caret = String(repeating: " ", count: line.count) + "^"
        line += plain(after)
        if after.endIndex < format.endIndex { line += "…" }
        return line + "\n" + caret
    }

    private static func plain(_ text: Substring) -> String {
        String(text.map { $0.unicodeScalars.contains { $0.value < 0x20 } ? " " : $0 })
    }
}
