import Dispatch
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import ServiceClient
import Synchronization

struct LoadResult: Sendable {
    var measurement: LoadMeasurement
    /// From the start to the last answer.
    var seconds: Double
    var wasInterrupted: Bool
    var testerCPUSeconds: Double
    /// The part of the machine's CPU time that nobody used, 0 to 1; nil where the system does not say.
    var machineIdleShare: Double?
}

struct LoadRun: Sendable {
    let settings: LoadSettings
    let targets: [LoadTarget]
    let sessions: [LoadTokens]
    let authority: String?
    let stop: LoadStop
    /// How long one connection may take to be made.
    var handshakeTimeout = LoadConnector.usualHandshakeTimeout

    /// Watches a run; the closure that it is given returns nil when the run is over.
    typealias Watch = @Sendable (@Sendable () async -> LoadSnapshot?) async -> Void

    /// - Parameter watch: its task is cancelled at the end.
    func run(watch: @escaping Watch = { _ in }) async throws -> LoadResult {
        let tls = try NIOSSLContext(configuration: ServiceClient.tls(authority: authority))
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            let result = try await run(
                LoadConnector(loop: group.any(), tls: tls, handshakeTimeout: handshakeTimeout), watch)
            try await group.shutdownGracefully()
            return result
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    private func run(_ connector: LoadConnector, _ watch: @escaping Watch) async throws -> LoadResult {
        let deck = LoadDeck(settings, targets: targets, sessions: sessions)
        let loop = connector.loop
        let done = loop.makePromise(of: Void.self)
        let engine = try await loop.submit {
            let engine = LoadEngine(
                settings, connector: connector, deck: deck, targets: targets, stop: stop, done: done)
            return NIOLoopBound(engine, eventLoop: loop)
        }.get()
        try await loop.flatSubmit { engine.value.open() }.get()
        let idleBefore = MachineTime.read()
        let watching = Task { await watch { try? await loop.submit { engine.value.snapshot }.get() } }
        try await loop.submit { engine.value.begin() }.get()
        try await done.futureResult.get()
        watching.cancel()
        await watching.value
        var result = try await loop.submit { engine.value.result }.get()
        result.machineIdleShare = MachineTime.idleShare(from: idleBefore, to: MachineTime.read())
        try await loop.submit { engine.value.close() }.get()
        return result
    }
}

/// Whether a run was asked to end early, and what to say if the process ends at once.
final class LoadStop: Sendable {
    private let flag = Atomic<Bool>(false)
    private let text = Mutex<String?>(nil)

    var isSet: Bool { flag.load(ordering: .relaxed) }

    /// What is left behind when the process ends at once; nil where nothing is.
    var exitNotice: String? {
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

/// Ends a run at SIGINT, SIGTERM or SIGHUP; a second signal ends the process. SIGPIPE is passed over: a reader that is
/// gone is no reason to leave a limit behind that was set for the run.
struct LoadSignals {
    /// Those that end the run. One that was ignored before is let be, as SIGHUP is under `nohup`; but not SIGINT, which
    /// shells ignore for all that they run in the background.
    let watched: [Int32]
    private let sources: [any DispatchSourceSignal]

    init(_ stop: LoadStop, signals: [Int32] = [SIGINT, SIGTERM, SIGHUP]) {
        signal(SIGPIPE, SIG_IGN)
        // Without this a signal's default action would come first.
        watched = signals.filter { !Signals.ignore($0) || $0 == SIGINT }
        sources = watched.map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                if stop.set() {
                    if let exitNotice = stop.exitNotice { Console.note(exitNotice) }
                    _exit(128 + number)
                }
                Console.note("stopping: waiting for the requests under way; once more to leave at once")
            }
            source.resume()
            return source
        }
    }

    func cancel() {
        for source in sources { source.cancel() }
    }
}
