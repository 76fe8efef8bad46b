import NIOPosix

/// Threads for work that blocks.
struct BlockingPool: WorkPool {
    private let pool: NIOThreadPool

    init(threads: Int) {
        pool = NIOThreadPool(numberOfThreads: threads)
        pool.start()
    }

    func submit(_ work: @escaping @Sendable (Bool) -> Void) {
        pool.submit { state in
            if case .active = state { work(true) } else { work(false) }
        }
    }

    func stop() async { try? await pool.shutdownGracefully() }
}

extension WorkPool {
    /// Runs the work; work given to a stopped pool is dropped.
    func run(_ work: @escaping @Sendable () -> Void) {
        submit { if $0 { work() } }
    }

    /// Runs work that may throw and waits for its result.
    /// - Throws: what the work throws, or `CancellationError` when the pool is stopped.
    func run<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            submit { isActive in
                continuation.resume(with: isActive ? Result { try work() } : .failure(CancellationError()))
            }
        }
    }
}
