import Foundation
import Glibc
package import Logging
package import NIOCore
import NIOPosix
package import PeerTransport
package import RaftCore
package import Storage

/// The system's clocks, threads and sockets.
package struct SystemPlatform: NodePlatform {
    /// Carries the node's lane and its connections to peers.
    package let eventLoop: any EventLoop
    /// CLOCK_BOOTTIME, and the system's wall clock.
    package var clock: any NodeClock { SystemClock() }
    /// The raft log has two threads of its own.
    package var logScheduling: LogScheduling { .threads }

    package init(eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    /// From the system's generator, which is good enough for secrets. Any thread.
    package func random() -> UInt64 { .random(in: 0 ... .max) }

    /// Starts the threads, which run until the pool is stopped.
    package func makeWorkPool(threads: Int) -> any WorkPool { SystemThreads(threads) }

    /// Starts a thread, which runs until the queue is stopped.
    package func makeSerialQueue(name: String) -> any SerialQueue { SerialThread(name: name) }

    /// Starts a thread whose first round comes after one interval, and each later one an interval after the end of the
    /// last.
    package func makeRounds(
        name: String, everyMilliseconds: UInt64, _ round: @escaping @Sendable () -> Void
    ) -> any Rounds {
        TimedThread(name: name, everyMilliseconds: everyMilliseconds, round)
    }

    /// Framed TCP with mutual TLS on `eventLoop`; opens no socket before it is started. The delegate is held weakly.
    /// - Throws: `PeerTransportError.badCertificate`; a retry helps only after the file is replaced.
    package func makeNetwork(
        _ configuration: PeerTransportConfiguration, delegate: any PeerTransportDelegate, logger: Logger
    ) throws -> any PeerNetwork {
        try PeerTransport(configuration: configuration, eventLoop: eventLoop, delegate: delegate, logger: logger)
    }

    /// Starts an unstructured task, which inherits the caller's task-local values.
    package func startTask(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> { Task { await body() } }
}

/// CLOCK_BOOTTIME, and the wall clock.
package struct SystemClock: NodeClock {
    package init() {}

    /// The time since boot, suspension included.
    package var now: MonotonicTime { .current }

    /// Milliseconds since 1970 by the system's clock; jumps when that is set.
    package var wallMilliseconds: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    /// Suspends the calling task for at least this time.
    /// - Throws: `CancellationError` when the task is cancelled.
    package func sleep(milliseconds: UInt64) async throws {
        try await Task.sleep(for: .milliseconds(Int64(clamping: milliseconds)))
    }
}

extension MonotonicTime {
    /// The time since boot, suspension included (CLOCK_BOOTTIME).
    package static var current: MonotonicTime {
        var time = timespec()
        let result = clock_gettime(CLOCK_BOOTTIME, &time)
        precondition(result == 0, "clock_gettime(CLOCK_BOOTTIME) failed with errno \(errno)")
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }
}

/// The system's threads for work that blocks.
package struct SystemThreads: WorkPool {
    private let pool: NIOThreadPool

    /// Threads of its own, to be stopped.
    package init(_ count: Int) {
        pool = NIOThreadPool(numberOfThreads: count)
        pool.start()
    }

    /// The processors that the process may use, as at its start: to ask reads several files of the system.
    private static let processors = System.coreCount

    /// The machine's processors.
    package var parallelism: Int { Self.processors }

    /// As `WorkPool` says.
    package func submit(_ work: @escaping @Sendable (Bool) -> Void) {
        pool.submit { state in
            if case .active = state { work(true) } else { work(false) }
        }
    }

    /// Waits for what runs.
    package func stop() async { try? await pool.shutdownGracefully() }
}
