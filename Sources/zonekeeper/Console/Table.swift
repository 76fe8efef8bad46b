/// Rows under headings, in columns as wide as their widest cell.
struct Table {
    var headings: [String]
    private(set) var rows: [[String]] = []

    init(_ headings: String...) { self.headings = headings }

    init(headings: [String]) { self.headings = headings }

    /// Adds a row; control characters, which would break the line or command the terminal, become spaces.
    mutating func add(_ cells: [String]) {
        precondition(cells.count == headings.count, "\(cells.count) cells under \(headings.count) headings")
        rows.append(cells.map { String($0.map { $0.isNewline || $0.hasControl ? " " : $0 }) })
    }

    /// The table's lines; the last column is not padded.
    var text: String {
        var widths: [Int] = []
        return lines(widths: &widths)
    }

    /// The lines of a table that is printed piece by piece: the first piece has the headings.
    /// - Parameter widths: of the columns up to now, empty before the first piece; they only grow.
    func lines(widths: inout [Int]) -> String {
        let isFirst = widths.isEmpty
        if isFirst { widths = headings.map(\.count) }
        for row in rows {
            for (column, cell) in row.enumerated() { widths[column] = max(widths[column], cell.count) }
        }
        return ((isFirst ? [headings] : []) + rows).map { [widths] row in
            var line = ""
            for (column, cell) in row.enumerated() {
                line += cell
                if column + 1 < row.count { line += String(repeating: " ", count: widths[column] - cell.count + 2) }
            }
            return line.trimmingTrailingSpaces
        }.joined(separator: "\n")
    }
}

extension String {
    fileprivate var trimmingTrailingSpaces: String {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }

    /// At most `count` characters, the last of them an ellipsis where something was cut.
    func shortened(to count: Int) -> String { self.count <= count ? self : prefix(count - 1) + "…" }
}

extension Character {
    /// Whether a control character is in it (Unicode's general category Cc).
    fileprivate var hasControl: Bool { unicodeScalars.contains { $0.properties.generalCategory == .control } }
}
