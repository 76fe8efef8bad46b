import Dispatch
import Glibc

/// Puts a terminal back as it was, also where a signal ends the process meanwhile (SIGTERM, SIGHUP): without it whoever goes on
/// at the terminal would see nothing of what they type.
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
            guard !Self.isIgnored(signal(number, SIG_IGN)) else { return nil }
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

    /// Whether a disposition was SIG_IGN, which is no function but the number 1 in the place of one.
    private static func isIgnored(_ disposition: sighandler_t?) -> Bool {
        unsafeBitCast(disposition, to: Int.self) == 1
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
