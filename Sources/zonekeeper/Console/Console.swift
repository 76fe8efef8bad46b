import Foundation

/// Why a command could not do what it was asked, in words for whoever typed it: one line, without a full stop.
struct CommandFailure: Error, CustomStringConvertible {
    var message: String
    /// Whether what was asked for may have been done nevertheless.
    var isOutcomeUnknown: Bool

    init(_ message: String, isOutcomeUnknown: Bool = false) {
        self.message = message
        self.isOutcomeUnknown = isOutcomeUnknown
    }

    var description: String { message }
}

/// What commands say beside their results, on standard error.
enum Console {
    /// `error: ...`
    static func error(_ message: String) { note("error: \(message)") }

    /// A line as it is.
    static func note(_ line: String) { write(line + "\n") }

    /// Whether standard error is a terminal.
    static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    static func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }

    /// Writes a part of a text to standard output, as it is.
    static func printPart(_ text: String) {
        if !text.isEmpty { FileHandle.standardOutput.write(Data(text.utf8)) }
    }

    /// Writes a document, such as the server's JSON, to standard output, with one line feed at its end.
    static func print(_ bytes: [UInt8]) {
        FileHandle.standardOutput.write(Data(bytes))
        if bytes.last != UInt8(ascii: "\n") { FileHandle.standardOutput.write(Data("\n".utf8)) }
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

    /// Shows the last text and ends the line.
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
