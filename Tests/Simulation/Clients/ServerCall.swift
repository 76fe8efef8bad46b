import Cluster

/// What became of one request to one node, as its client sees it.
enum CallResult<Value: Sendable>: Sendable {
    case value(Value)
    /// Nothing was done.
    case refused(String)
    /// It may have been done.
    case unknown(String)
    /// The node says that it cannot be done before somebody mends something.
    case failed(String)
}

/// A client's request on its way to a node and back. The client gives up after a while; a node that dies meanwhile answers nobody.
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
        to node: SimulatedNode, patienceMilliseconds: UInt64 = 15_000,
        _ body: @escaping @Sendable (Edge) async throws(ClusterError) -> Value
    ) async -> CallResult<Value> {
        let world = node.world
        guard let (instance, process, executor) = node.running else { return .refused("the node is down") }
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
                    let edge = Edge(instance, time: process.clock.wallMilliseconds(at: world.now))
                    let result = await Self.result(of: edge, body)
                    process.forgetWatch(watch)
                    guard !process.isDead else { return }
                    world.schedule(after: world.microseconds(50...2_000), .client, for: nil) { call.end(result) }
                }
            }
        }
    }

    private static func result(
        of edge: Edge, _ body: @Sendable (Edge) async throws(ClusterError) -> Value
    ) async -> CallResult<Value> {
        do throws(ClusterError) {
            return .value(try await body(edge))
        } catch {
            switch error {
            case .unavailable(let reason): return .refused(reason)
            case .outcomeUnknown(let reason): return .unknown(reason)
            case .failed(let reason): return .failed(reason)
            case .tooLarge(let size): return .failed("\(size)")
            }
        }
    }
}
