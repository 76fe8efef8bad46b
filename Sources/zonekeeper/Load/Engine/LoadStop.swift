import Dispatch
import Foundation
import Synchronization

/// Whether a run was asked to end early, and what to say where it cannot even end in order.
final class LoadStop: Sendable {
    private let flag = Atomic<Bool>(false)
    private let text = Mutex<String?>(nil)

    var isSet: Bool { flag.load(ordering: .relaxed) }

    /// What is left behind when the process ends at once; nil where nothing is.
    var farewell: String? {
        get { text.withLock { $0 } }
        set { text.withLock { $0 = newValue } }
    }

    /// - Returns: whether it was set already.
    @discardableResult
    func set() -> Bool { flag.exchange(true, ordering: .relaxed) }

    /// Waits, but no longer than until the run is asked to end.
    func sleep(for duration: Duration) async {
        let clock = ContinuousClock()
        let end = clock.now + duration
        while !isSet, clock.now < end {
            do { try await Task.sleep(for: min(.milliseconds(100), end - clock.now)) } catch { return }
        }
    }
}

/// Ends a run at SIGINT, SIGTERM or SIGHUP; a second signal ends the process. SIGPIPE is passed over: a reader that is gone is no
/// reason to leave a limit behind that was set for the run.
struct LoadSignals {
    private let sources: [any DispatchSourceSignal]

    init(_ stop: LoadStop) {
        signal(SIGPIPE, SIG_IGN)
        sources = [SIGINT, SIGTERM, SIGHUP].map { number in
            // Without this the signal's default action would come first.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                if stop.set() {
                    if let farewell = stop.farewell { LoadOutput.note(farewell) }
                    _exit(128 + number)
                }
                LoadOutput.note("stopping: waiting for the requests under way; once more to leave at once")
            }
            source.resume()
            return source
        }
    }

    func cancel() {
        for source in sources { source.cancel() }
    }
}

/// What a run says, to a reader that may be gone: a closed terminal or pipe must not end the process while a limit is set.
enum LoadOutput {
    /// A line on standard error.
    static func note(_ line: String) { write(line + "\n", to: STDERR_FILENO) }

    /// A document on standard output, with one line feed at its end.
    static func print(_ text: String) { write(text.hasSuffix("\n") ? text : text + "\n", to: STDOUT_FILENO) }

    static func print(_ bytes: [UInt8]) { print(String(decoding: bytes, as: UTF8.self)) }

    /// Gives up at the first error that is not an interruption.
    static func write(_ text: String, to descriptor: Int32) {
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)[...]
            while !rest.isEmpty {
                let count = Foundation.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count < 0, errno == EINTR || errno == EAGAIN { continue }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
    }
}
