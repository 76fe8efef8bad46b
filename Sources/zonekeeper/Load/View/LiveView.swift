import Foundation

/// Shows a run while it goes: a screen that is drawn over on a terminal, else a line now and then.
struct LiveView: Sendable {
    enum Mode: Hashable, Sendable {
        /// On standard output, which is a terminal.
        case screen
        /// On standard error, so that what is written to a file or a pipe is the report alone.
        case lines
        case none
    }

    let mode: Mode
    let settings: LoadSettings
    let limit: Double?

    static func mode(isQuiet: Bool, printsJSON: Bool) -> Mode {
        if isQuiet { return .none }
        return !printsJSON && isatty(STDOUT_FILENO) == 1 ? .screen : .lines
    }

    /// Until its task is cancelled or the run is over.
    func watch(_ watch: LoadWatch) async {
        var drawn = 0
        while mode != .none {
            let pause: Duration = mode == .screen ? .milliseconds(250) : .seconds(2)
            do { try await Task.sleep(for: pause) } catch { break }
            guard let glance = await watch.glance() else { break }
            let frame = LiveFrame(glance: glance, secondsMax: settings.bound.seconds, limit: limit)
            if mode == .lines {
                LoadOutput.note(frame.line)
                continue
            }
            let lines = frame.lines(width: Self.terminalWidth)
            // Up to the first line of the frame before, and over it line by line: no flicker, and nothing above is lost.
            Self.write((drawn > 0 ? "\u{1B}[\(drawn)A" : "") + lines.map { "\r\u{1B}[K\($0)\n" }.joined())
            drawn = lines.count
        }
        // The report comes where the screen was.
        if drawn > 0 { Self.write("\u{1B}[\(drawn)A\u{1B}[J") }
    }

    private static var terminalWidth: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col >= 20 else { return 80 }
        return Int(size.ws_col)
    }

    private static func write(_ text: String) { LoadOutput.write(text, to: STDOUT_FILENO) }
}
