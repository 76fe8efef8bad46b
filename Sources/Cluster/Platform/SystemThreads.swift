import NIOCore
import NIOPosix

/// The system's threads for work that blocks.
package struct SystemThreads: WorkPool {
    private let pool: NIOThreadPool

    /// Threads of its own, to be stopped.
    package init(_ count: Int) {
        pool = NIOThreadPool(numberOfThreads: count)
        pool.start()
    }

    private init(_ pool: NIOThreadPool) { self.pool = pool }

    /// Those of the process, as many as it has cores, which nobody stops.
    package static let ofProcess = SystemThreads(.singleton)

    /// The machine's processors.
    package var parallelism: Int { System.coreCount }

    /// As `WorkPool` says.
    package func submit(_ work: @escaping @Sendable (Bool) -> Void) {
        pool.submit { state in
            if case .active = state { work(true) } else { work(false) }
        }
    }

    /// Waits for what runs.
    package func stop() async { try? await pool.shutdownGracefully() }
}
