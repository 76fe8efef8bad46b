import Dispatch
import Foundation
import Glibc

/// Asks for passwords, at the terminal or from standard input; they are never shown.
enum PasswordInput {
    /// The longest that is read; the server says what it takes.
    static let bytesMax = 4_096

    /// - Parameters:
    ///   - isFromStandardInput: the first line of it, without its line feed, in place of the terminal.
    ///   - isNew: asked for twice at the terminal.
    /// - Throws: `CommandFailure` if there is none, no terminal, or the two differ.
    static func read(_ prompt: String, isFromStandardInput: Bool, isNew: Bool) throws(CommandFailure) -> String {
        if isFromStandardInput {
            var reader = try LineReader(path: "-")
            guard let line = try reader.next(), !line.isEmpty else {
                throw CommandFailure("standard input holds no password: one line is expected")
            }
            return try text(line)
        }
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard terminal >= 0 else {
            throw CommandFailure("there is no terminal to ask for a password at; use --password-stdin")
        }
        defer { close(terminal) }
        let password = try ask("\(prompt): ", at: terminal)
        if isNew, try ask("\(prompt) again: ", at: terminal) != password {
            throw CommandFailure("the two passwords differ; nothing was changed")
        }
        return password
    }

    private static func text(_ bytes: [UInt8]) throws(CommandFailure) -> String {
        guard bytes.count <= bytesMax, let text = String(validating: bytes, as: UTF8.self) else {
            throw CommandFailure("the password is no UTF-8, or longer than \(bytesMax) bytes")
        }
        return text
    }

    /// Reads a line while the terminal shows nothing, signals nothing and edits nothing: so it is always put back as it
    /// was.
    static func ask(_ prompt: String, at terminal: Int32) throws(CommandFailure) -> String {
        var before = termios()
        guard tcgetattr(terminal, &before) == 0 else {
            throw CommandFailure("the terminal cannot be kept from showing the password; use --password-stdin")
        }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON | ISIG)
        guard tcsetattr(terminal, TCSAFLUSH, &silent) == 0 else {
            throw CommandFailure("the terminal cannot be kept from showing the password; use --password-stdin")
        }
        // Ctrl-C comes as a byte; what others send to end the process comes as a signal.
        let guardian = TerminalGuard(terminal, settings: before)
        defer { guardian.restore() }
        _ = write(terminal, prompt, prompt.utf8.count)
        var line = PasswordLine()
        while true {
            var byte: UInt8 = 0
            let count = Glibc.read(terminal, &byte, 1)
            if count < 0, errno == EINTR { continue }
            switch count == 1 ? line.take(byte) : .givenUp {
            case .unfinished: continue
            case .givenUp: throw CommandFailure("no password was given; nothing was changed")
            case .finished: return try text(line.bytes)
            }
        }
    }
}

/// A line as it is typed, byte by byte, with the keys that take something back.
struct PasswordLine {
    enum State: Hashable {
        case unfinished
        case finished
        /// The user wants out: Ctrl-C, Ctrl-\, or Ctrl-D.
        case givenUp
    }

    private(set) var bytes: [UInt8] = []

    mutating func take(_ byte: UInt8) -> State {
        switch byte {
        case 0x0A, 0x0D: return bytes.isEmpty ? .givenUp : .finished
        case 0x03, 0x04, 0x1C: return .givenUp
        case 0x15: bytes.removeAll()
        case 0x08, 0x7F:
            // A whole character: its first byte, and those that continue it.
            while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
        default: bytes.append(byte)
        }
        return bytes.count > PasswordInput.bytesMax ? .givenUp : .unfinished
    }
}

/// Restores a terminal's settings, also where a signal (SIGTERM, SIGHUP) ends the process: the shell that follows would
/// otherwise not echo what is typed.
final class TerminalGuard {
    private let terminal: Int32
    private let settings: termios
    /// Those that end the process; one that was ignored before, as under `nohup`, is let be.
    private let sources: [(signal: Int32, source: any DispatchSourceSignal)]

    /// Watches from when it returns until `restore`.
    /// - Parameters:
    ///   - settings: what the terminal is to go back to.
    ///   - end: what a signal does after that; usually what it does to every process.
    init(
        _ terminal: Int32, settings: termios, signals: [Int32] = [SIGTERM, SIGHUP],
        end: @escaping @Sendable (Int32) -> Void = TerminalGuard.endProcess
    ) {
        self.terminal = terminal
        self.settings = settings
        let queue = DispatchQueue(label: "terminal")
        sources = signals.compactMap { number in
            // The source sees it all the same; without this it would end the process at once.
            guard !Signals.ignore(number) else { return nil }
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            let isWatching = DispatchSemaphore(value: 0)
            source.setRegistrationHandler { isWatching.signal() }
            source.setEventHandler {
                Self.put(settings, on: terminal)
                end(number)
            }
            source.activate()
            isWatching.wait()
            return (number, source)
        }
    }

    /// Puts the terminal back, and lets signals do what they do.
    func restore() {
        for (number, source) in sources {
            source.cancel()
            signal(number, SIG_DFL)
        }
        Self.put(settings, on: terminal)
    }

    private static func put(_ settings: termios, on terminal: Int32) {
        var settings = settings
        tcsetattr(terminal, TCSAFLUSH, &settings)
        _ = write(terminal, "\n", 1)
    }

    /// Ends the process as the signal would have.
    static let endProcess: @Sendable (Int32) -> Void = { number in
        signal(number, SIG_DFL)
        kill(getpid(), number)
    }
}

enum Signals {
    /// Has a signal do nothing; sources of it see it all the same.
    /// - Returns: whether it was ignored before, as SIGHUP is under `nohup`.
    static func ignore(_ number: Int32) -> Bool {
        // SIG_IGN is no function but the number 1 in the place of one.
        unsafeBitCast(signal(number, SIG_IGN), to: Int.self) == 1
    }
}
