import HTTPTypes
import Hummingbird
import NIOCore

/// Runs a connection's tasks on its event loop: a request that is read there wakes no other thread, and its answer none
/// to be written.
final class EventLoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// Has requests whose bodies may take long to decode answered outside of their connection's event loop, where other
/// connections wait.
struct LargeRequestsElsewhere<Responder: HTTPResponder>: HTTPResponder {
    /// The most bytes of a body that are decoded on the event loop: about a millisecond.
    static var bytesMax: Int { 65_536 }

    let responder: Responder

    func respond(to request: Request, context: Responder.Context) async throws -> Response {
        if request.method == .get || request.method == .head {
            return try await responder.respond(to: request, context: context)
        }
        // Of a body whose length is not said everything may come.
        let length = request.headers[.contentLength].flatMap { Int($0) } ?? .max
        return try await withTaskExecutorPreference(length > Self.bytesMax ? globalConcurrentExecutor : nil) {
            try await responder.respond(to: request, context: context)
        }
    }
}
