/// Why a schema's text was refused: where, what was wrong, and what to do. The text is at fault, so a retry does not
/// help.
package struct SchemaError: Error, Hashable, Sendable, CustomStringConvertible {
    /// From 1.
    package var line: Int
    /// From 1, in Unicode scalars; a tab counts as one.
    package var column: Int
    package var message: String

    package init(line: Int, column: Int, message: String) {
        self.line = line
        self.column = column
        self.message = message
    }

    package var description: String { "line \(line), column \(column): \(message)" }
}
