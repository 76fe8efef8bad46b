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
    package let eventLoop: any EventLoop
    package var clock: any NodeClock { SystemClock() }
    package var logScheduling: LogScheduling { .threads }

    package init(eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    package func random() -> UInt64 { .random(in: 0 ... .max) }

    package func makeWorkPool(threads: Int) -> any WorkPool { SystemThreads(threads) }

    package func makeSerialQueue(name: String) -> any SerialQueue { SerialThread(name: name) }

    package func makeRounds(
        name: String, everyMilliseconds: UInt64, _ round: @escaping @Sendable () -> Void
    ) -> any Rounds {
        TimedThread(name: name, everyMilliseconds: everyMilliseconds, round)
    }

    package func makeNetwork(
        _ configuration: PeerTransportConfiguration, delegate: any PeerTransportDelegate, logger: Logger
    ) throws -> any PeerNetwork {
        try PeerTransport(configuration: configuration, eventLoop: eventLoop, delegate: delegate, logger: logger)
    }

    package func startTask(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> { Task { await body() } }
}

/// CLOCK_BOOTTIME, and the wall clock.
package struct SystemClock: NodeClock {
    package init() {}

    package var now: MonotonicTime { .current }

    package var wallMilliseconds: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

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
