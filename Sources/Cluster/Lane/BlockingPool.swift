import NIOPosix

/// Threads for work that blocks: reads of databases and of the log, copies of files.
package struct BlockingPool: Sendable {
    private let pool: NIOThreadPool

    package init(threads: Int) {
        pool = NIOThreadPool(numberOfThreads: threads)
        pool.start()
    }

    /// Runs the work on one of the threads; work given to a stopped pool is dropped.
    package func run(_ work: @escaping @Sendable () -> Void) {
        pool.submit { state in
            if case .active = state { work() }
        }
    }

    /// Runs work that may throw and waits for its result.
    package func run<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await pool.runIfActive { try work() }
    }

    package func stop() async { try? await pool.shutdownGracefully() }
}
