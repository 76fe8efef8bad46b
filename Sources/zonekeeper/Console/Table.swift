/// Rows under headings, in columns as wide as their widest cell.
struct Table {
    var headings: [String]
    private(set) var rows: [[String]] = []

    init(_ headings: String...) { self.headings = headings }

    init(headings: [String]) { self.headings = headings }

    /// Adds a row; control characters, which would break the line, become spaces.
    mutating func add(_ cells: [String]) {
        precondition(cells.count == headings.count, "\(cells.count) cells under \(headings.count) headings")
        rows.append(cells.map { String($0.map { $0.isNewline || $0 == "\t" ? " " : $0 }) })
    }

    /// The table's lines; the last column is not padded.
    var text: String {
        var widths = headings.map(\.count)
        for row in rows {
            for (column, cell) in row.enumerated() { widths[column] = max(widths[column], cell.count) }
        }
        return ([headings] + rows).map { row in
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
