import Dispatch
import NIOCore
import RaftCore

/// A process's event loop: what is executed on it becomes events of the simulation, in order.
final class SimulatedLoop: EventLoop, @unchecked Sendable {
    // Holds nothing that changes but the world, which is touched on one thread only.
    let world: World
    let process: ProcessLife

    init(world: World, process: ProcessLife) {
        self.world = world
        self.process = process
    }

    var inEventLoop: Bool { world.currentLoop === self }

    var now: NIODeadline {
        .uptimeNanoseconds(UInt64(clamping: process.clock.local(at: world.now).nanoseconds))
    }

    func execute(_ task: @escaping @Sendable () -> Void) {
        world.schedule(after: 0, .loop, for: process, on: self, task)
    }

    func scheduleTask<Value>(
        deadline: NIODeadline, _ task: @escaping @Sendable () throws -> Value
    ) -> Scheduled<Value> {
        scheduleTask(in: deadline - now, task)
    }

    func scheduleTask<Value>(
        in delay: TimeAmount, _ task: @escaping @Sendable () throws -> Value
    ) -> Scheduled<Value> {
        let promise = makePromise(of: Value.self)
        let timer = Timer()
        let after = process.clock.trueDuration(of: UInt64(max(0, delay.nanoseconds)))
        world.schedule(after: after, .timer, for: process, on: self) {
            if timer.isCancelled { return }
            do {
                promise.assumeIsolated().succeed(try task())
            } catch {
                promise.fail(error)
            }
        }
        return Scheduled(promise: promise) { timer.isCancelled = true }
    }

    func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
        execute { callback(nil) }
    }

    private final class Timer: @unchecked Sendable {
        // Touched on the simulation's thread only.
        var isCancelled = false
    }
}
