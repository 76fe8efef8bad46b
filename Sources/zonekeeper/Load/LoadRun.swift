import Dispatch
import Foundation
import Glibc
import NIOCore
import NIOHTTP1
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
    /// Path of the CA that signed the nodes' certificates; nil for the system's.
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

struct LoadMeter: Sendable {
    let client: LoadClient
    let administrator: String?

    struct Reading: Sendable {
        var nodes: Result<[NodeCounters], CommandFailure>
        var generatorCPUSeconds: Double
    }

    /// Reads the counters. A failure does not stop the run; the reading carries the reason.
    func read() async -> Reading {
        let seconds = Self.cpuSeconds()
        do throws(CommandFailure) {
            return Reading(nodes: .success(try await counters()), generatorCPUSeconds: seconds)
        } catch {
            return Reading(nodes: .failure(error), generatorCPUSeconds: seconds)
        }
    }

    /// - Returns: what was spent since the reading before.
    func read(since before: Reading) async -> (cost: LoadReport.Cost, generatorCPUSeconds: Double) {
        let after = await read()
        let seconds = after.generatorCPUSeconds - before.generatorCPUSeconds
        switch (before.nodes, after.nodes) {
        case (.success(let first), .success(let second)):
            guard let cost = NodeCounters.spent(before: first, after: second) else {
                return (.unknown("a node was started anew during the run"), seconds)
            }
            return (.measured(cost, nodes: first.count), seconds)
        case (.failure(let failure), _), (_, .failure(let failure)): return (.unknown(failure.message), seconds)
        }
    }

    private func counters() async throws(CommandFailure) -> [NodeCounters] {
        guard let administrator else {
            throw CommandFailure(
                "it takes the administrator's token: --admin-token-file or ZONEKEEPER_ADMIN_TOKEN_FILE")
        }
        var counters: [NodeCounters] = []
        for target in client.targets.indices {
            let base = client.targets[target].base
            let answer = try await client.exchange(.GET, "/admin/1/metrics", target: target, bearer: administrator)
            guard answer.status == 200 else {
                throw CommandFailure("\(base)/admin/1/metrics answered HTTP \(answer.status)")
            }
            guard let node = NodeCounters(metrics: String(decoding: answer.body, as: UTF8.self)) else {
                throw CommandFailure("\(base)/admin/1/metrics has no counters of the log and the CPU")
            }
            counters.append(node)
        }
        return counters
    }

    /// User and system time of this process so far.
    private static func cpuSeconds() -> Double {
        // POSIX has a million of these in a second.
        Double(clock()) / 1_000_000
    }
}

/// What a node has counted since its start, from `GET /admin/1/metrics`.
struct NodeCounters: Hashable, Sendable {
    /// fdatasyncs of the log.
    var logSyncs: Double
    var logBytesWritten: Double
    /// User and system time of the node's process.
    var cpuSeconds: Double
}

extension NodeCounters {
    /// Reads the Prometheus text form; nil when one of the three is missing or not a number.
    init?(metrics text: some StringProtocol) {
        var values: [Substring: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: " ")
            guard parts.count == 2, let value = Double(parts[1]), value.isFinite else { continue }
            values[Substring(parts[0])] = value
        }
        guard let syncs = values["zonekeeper_log_syncs_total"],
            let bytes = values["zonekeeper_log_written_bytes_total"],
            let cpu = values["zonekeeper_cpu_seconds_total"]
        else { return nil }
        self.init(logSyncs: syncs, logBytesWritten: bytes, cpuSeconds: cpu)
    }

    /// What all nodes together spent between two readings, each with one entry a node in the same order.
    /// - Returns: nil when a node was restarted between them, as then its counters say nothing about the run.
    static func spent(before: [NodeCounters], after: [NodeCounters]) -> NodeCounters? {
        precondition(before.count == after.count, "\(before.count) readings before, \(after.count) after")
        var sum = NodeCounters(logSyncs: 0, logBytesWritten: 0, cpuSeconds: 0)
        for (first, second) in zip(before, after) {
            for counter in [\NodeCounters.logSyncs, \.logBytesWritten, \.cpuSeconds] {
                guard second[keyPath: counter] >= first[keyPath: counter] else { return nil }
                sum[keyPath: counter] += second[keyPath: counter] - first[keyPath: counter]
            }
        }
        return sum
    }

    /// The share of 1,000 operations; nil where there was none.
    static func per1000(_ total: Double, operations: Int) -> Double? {
        operations > 0 ? total / Double(operations) * 1_000 : nil
    }
}

/// What the machine's processors did since it was started, from `/proc/stat`.
struct MachineTime: Hashable, Sendable {
    var idle: Double
    var total: Double

    static func read() -> MachineTime? {
        guard let text = try? String(contentsOfFile: "/proc/stat", encoding: .utf8) else { return nil }
        return MachineTime(stat: text)
    }

    /// - Returns: nil where the text does not begin with the line of all processors.
    init?(stat text: String) {
        let words = text.prefix { $0 != "\n" }.split(separator: " ")
        // user nice system idle iowait irq softirq steal; what follows is counted in user already.
        let ticks = words.dropFirst().prefix(8).compactMap { Double($0) }
        guard words.first == "cpu", ticks.count >= 5 else { return nil }
        idle = ticks[3] + ticks[4]
        total = ticks.reduce(0, +)
    }

    static func idleShare(from first: MachineTime?, to second: MachineTime?) -> Double? {
        guard let first, let second, second.total > first.total else { return nil }
        return min(1, max(0, (second.idle - first.idle) / (second.total - first.total)))
    }
}
