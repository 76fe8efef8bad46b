import Cluster
import RecordModel
import Service

/// What became of one request to one node, as its client sees it.
enum CallResult<Value: Sendable>: Sendable {
    case value(Value)
    /// Nothing was done.
    case refused(String)
    /// It may have been done.
    case unknown(String)
    /// The request itself is wrong, or the node says that it cannot be done before somebody mends something.
    case failed(RequestFailure)

    /// Why there is no answer that settles it.
    var reason: String? {
        switch self {
        case .refused(let reason): "refused: \(reason)"
        case .unknown(let reason): "unknown: \(reason)"
        case .value, .failed: nil
        }
    }
}

/// A client's request on its way to a node and back. The client gives up after a while; a node that dies meanwhile
/// answers nobody.
final class ServerCall<Value: Sendable>: @unchecked Sendable {
    // Touched on the simulation's thread only.
    private let world: World
    private var continuation: CheckedContinuation<CallResult<Value>, Never>?

    private init(world: World, _ continuation: CheckedContinuation<CallResult<Value>, Never>) {
        self.world = world
        self.continuation = continuation
    }

    private func end(_ result: CallResult<Value>) {
        continuation?.resume(returning: result)
        continuation = nil
    }

    private var hasEnded: Bool { continuation == nil }

    /// - Parameter body: runs on the node.
    static func make(
        to node: SimulatedNode, as session: UserSession, _ recorder: Recorder,
        patienceMilliseconds: UInt64 = 15_000,
        _ body: @escaping @Sendable (Visit) async throws(RequestFailure) -> Value
    ) async -> CallResult<Value> {
        let world = node.world
        guard let (service, process, executor) = node.running else { return .refused("the node is down") }
        return await withCheckedContinuation { continuation in
            let call = ServerCall(world: world, continuation)
            world.schedule(after: patienceMilliseconds * World.millisecond, .client, for: nil) {
                call.end(.unknown("no answer in time"))
            }
            let watch = process.onDeath {
                world.schedule(after: world.milliseconds(0...20), .client, for: nil) {
                    call.end(.unknown("the node died"))
                }
            }
            world.schedule(after: world.microseconds(50...2_000), .client, for: process) {
                guard !process.isDead, !call.hasEnded else { return }
                executor.start {
                    let visit = Visit(service, recorder, as: session)
                    let result = await Self.result(of: visit, body)
                    process.forgetWatch(watch)
                    guard !process.isDead else { return }
                    world.schedule(after: world.microseconds(50...2_000), .client, for: nil) {
                        // An answer that nobody waits for brings no token either.
                        if !call.hasEnded { session.take(visit.notes.webAuthToken) }
                        call.end(result)
                    }
                }
            }
        }
    }

    private static func result(
        of visit: Visit, _ body: @Sendable (Visit) async throws(RequestFailure) -> Value
    ) async -> CallResult<Value> {
        // As every door of a node says.
        if visit.service.isRestoring { return .refused("a restore is under way") }
        do throws(RequestFailure) {
            return .value(try await body(visit))
        } catch {
            switch error.error.code {
            case .tryAgainLater where error.details == .outcomeUnknown: return .unknown(error.error.reason)
            case .tryAgainLater, .throttled: return .refused(error.error.reason)
            default: return .failed(error)
            }
        }
    }
}
