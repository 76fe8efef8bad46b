/// Runs the tasks of a process as events of the simulation.
final class SimulatedExecutor: TaskExecutor, @unchecked Sendable {
    // Holds nothing that changes but the world, which is touched on one thread only.
    private let world: World
    private let process: ProcessLife?

    init(world: World, process: ProcessLife?) {
        self.world = world
        self.process = process
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        world.schedule(after: 0, .task, for: process) {
            job.runSynchronously(on: self.asUnownedTaskExecutor())
        }
    }

    /// Starts a task all of which runs here.
    @discardableResult
    func start(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: self) { await body() }
    }
}

/// A wait that ends early when its task is cancelled, or somebody says so.
final class Sleep: @unchecked Sendable {
    // Touched on the simulation's thread only.
    private var continuation: CheckedContinuation<Void, Never>?
    private var isOver = false

    /// - Parameter schedule: has the closure called when the time has come.
    func wait(_ schedule: (@escaping () -> Void) -> Void) async throws {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard !isOver else { return continuation.resume() }
                self.continuation = continuation
                schedule { self.end() }
            }
        } onCancel: {
            end()
        }
        try Task.checkCancellation()
    }

    /// Ends it before its time.
    func end() {
        isOver = true
        continuation?.resume()
        continuation = nil
    }
}
