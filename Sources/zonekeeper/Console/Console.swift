import Foundation
import RecordModel
import ServiceClient
import Synchronization

/// Why a command failed, in words for its user: one line, without a full stop.
struct CommandFailure: Error, CustomStringConvertible {
    var message: String
    /// Whether what was asked for may have been done nevertheless.
    var isOutcomeUnknown: Bool
    /// The server's answer, where that says it.
    var answer: [UInt8]?

    init(_ message: String, isOutcomeUnknown: Bool = false, answer: [UInt8]? = nil) {
        self.message = message
        self.isOutcomeUnknown = isOutcomeUnknown
        self.answer = answer
    }

    var description: String { message }
}

/// Prints a line to standard output. It stands for Swift's function of that name, which keeps lines back and tells
/// nobody of those that it could not write.
func print(_ text: String, terminator: String = "\n") { Console.printPart(text + terminator) }

/// What commands print: results on standard output, and what they say beside them on standard error.
enum Console {
    /// The number of the first error of standard output; 0 where all of it was written.
    private static let outputError = Atomic<Int32>(0)

    /// Why standard output lacks something that was printed; nil where it lacks nothing.
    static var outputProblem: String? {
        let code = outputError.load(ordering: .relaxed)
        return code == 0 ? nil : String(cString: strerror(code))
    }

    static func error(_ message: String) { note("error: \(message)") }

    static func note(_ line: String) { write(line + "\n") }

    static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    static func write(_ text: String) { _ = Array(text.utf8).withUnsafeBytes { writeAll($0, to: STDERR_FILENO) } }

    static func printPart(_ text: String) { output(Array(text.utf8)) }

    /// Writes a document, such as the server's JSON, to standard output, with one line feed at its end.
    static func print(_ bytes: [UInt8]) {
        output(bytes.last == UInt8(ascii: "\n") ? bytes : bytes + [UInt8(ascii: "\n")])
    }

    private static func output(_ bytes: [UInt8]) {
        let code = bytes.withUnsafeBytes { writeAll($0, to: STDOUT_FILENO) }
        // Who read it may have had enough, as `head` has.
        if code != 0, code != EPIPE { _ = outputError.compareExchange(expected: 0, desired: code, ordering: .relaxed) }
    }

}

/// A line that says how far a command has come: rewritten in place on a terminal, else a new line now and then.
struct ProgressLine {
    private let isTerminal = Console.isTerminal
    private let clock = ContinuousClock()
    private var shownAt: ContinuousClock.Instant?
    private var shown = ""

    /// Shows a text; too soon after the one before, or the same again, it is left out.
    mutating func show(_ text: String) {
        let pause: Duration = isTerminal ? .milliseconds(100) : .seconds(2)
        if let shownAt, clock.now - shownAt < pause || text == shown { return }
        write(text)
    }

    mutating func finish(_ text: String) {
        if text != shown || !isTerminal { write(text) }
        if isTerminal { Console.write("\n") }
    }

    /// Ends a line that was begun, so that an error stands on its own.
    mutating func abandon() {
        if isTerminal, shownAt != nil { Console.write("\n") }
    }

    private mutating func write(_ text: String) {
        Console.write(isTerminal ? "\r\u{1B}[K" + text : text + "\n")
        shown = text
        shownAt = clock.now
    }
}

extension String {
    func replacingPrefix(_ prefix: String, with other: String) -> String {
        hasPrefix(prefix) ? other + dropFirst(prefix.count) : self
    }
}

extension StringProtocol {
    var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}

extension Sequence where Element: BinaryInteger {
    /// Ids as people read them: ascending, with commas between.
    var listed: String { sorted().map { "\($0)" }.joined(separator: ", ") }
}

/// Rows under headings, in columns as wide as their widest cell.
struct Table {
    var headings: [String]
    private(set) var rows: [[String]] = []

    init(_ headings: String...) { self.headings = headings }

    init(headings: [String]) { self.headings = headings }

    /// A heading, and what stands under it of each object.
    struct Column {
        let heading: String
        let cell: (JSONValue) -> String

        init(_ heading: String, _ cell: @escaping (JSONValue) -> String) {
            (self.heading, self.cell) = (heading, cell)
        }

        static func text(_ heading: String, _ key: String) -> Column { Column(heading) { $0.text(key) } }
        static func time(_ heading: String, _ key: String) -> Column { Column(heading) { $0.time(key) } }
        /// `yes` or `no`.
        static func flag(_ heading: String, _ key: String) -> Column {
            Column(heading) { $0[key] == .bool(true) ? "yes" : "no" }
        }
        /// The texts of an array, with spaces between.
        static func words(_ heading: String, _ key: String) -> Column {
            Column(heading) { ($0[key]?.array ?? []).map(\.plainText).joined(separator: " ") }
        }
        static func number(_ heading: String, _ key: String) -> Column {
            Column(heading) { RequestTable.number($0[key]) }
        }
        static func bytes(_ heading: String, _ key: String) -> Column {
            Column(heading) { $0.amount(key).map { Units.bytes($0) } ?? "" }
        }
    }

    init(_ objects: [JSONValue], _ columns: [Column]) {
        headings = columns.map(\.heading)
        for object in objects { add(columns.map { $0.cell(object) }) }
    }

    mutating func add(_ cells: [String]) {
        precondition(cells.count == headings.count, "\(cells.count) cells under \(headings.count) headings")
        rows.append(cells.map(\.onOneLine))
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

    /// The text with spaces for control characters, which would break the line or command the terminal.
    var onOneLine: String {
        func isControl(_ character: Character) -> Bool {
            character.unicodeScalars.contains { $0.properties.generalCategory == .control }
        }
        return String(map { $0.isNewline || isControl($0) ? " " : $0 })
    }

    /// At most `count` characters, the last of them an ellipsis where something was cut.
    func shortened(to count: Int) -> String { self.count <= count ? self : prefix(count - 1) + "…" }
}

extension JSONValue {
    /// A member as people read it; empty where it is missing.
    func text(_ key: String) -> String { self[key]?.plainText ?? "" }

    /// A member that is in milliseconds since 1970, as a time.
    func time(_ key: String) -> String {
        amount(key).map { Times.text($0) } ?? ""
    }

    /// The members of an object; none for anything else.
    var members: [Member] { if case .object(let members) = self { members } else { [] } }

    /// A string, if there is one.
    static func given(_ text: String?) -> JSONValue? { text.map { .string($0) } }
    static func strings(_ texts: [String]) -> JSONValue { .array(texts.map { .string($0) }) }

    /// A string as it is, anything else as JSON.
    var plainText: String {
        switch self {
        case .string(let text): text
        case .null: ""
        default: String(decoding: serialized(), as: UTF8.self)
        }
    }
}

/// Where a command writes what may be large: to a file, which is there once it is whole, or to standard output.
struct OutputFile {
    /// `-` is standard output.
    let path: String

    /// - Parameter body: writes to the file that it is given.
    /// - Throws: what `body` throws, after which there is no file; `CommandFailure` where it cannot be written.
    func write(_ body: (FileHandle) async throws -> Void) async throws {
        if path == "-" { return try await body(.standardOutput) }
        let draft = "\(path).part-\(UInt32.random(in: 0 ... .max))"
        guard FileManager.default.createFile(atPath: draft, contents: nil, attributes: [.posixPermissions: 0o600]),
            let file = FileHandle(forWritingAtPath: draft)
        else { throw CommandFailure("\(draft) cannot be written") }
        do {
            try await body(file)
            try file.close()
            guard rename(draft, path) == 0 else { throw CommandFailure("\(path) cannot be written") }
        } catch {
            try? FileManager.default.removeItem(atPath: draft)
            throw error
        }
    }
}
