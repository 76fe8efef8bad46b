import ServiceLifecycle
import Synchronization

/// Waits until the cluster wants nothing of the node; then all services are to end in order. It ends before the web server, after
/// which it is added.
final class ExclusionService: Service {
    private let exclusions: AsyncStream<Never>
    private let exclusion: AsyncStream<Never>.Continuation
    private let stopping = Atomic(false)

    /// Whether the services have begun to end, for whatever reason.
    var isStopping: Bool { stopping.load(ordering: .acquiring) }

    init() { (exclusions, exclusion) = AsyncStream.makeStream() }

    /// The cluster wants nothing of the node.
    func exclude() { exclusion.finish() }

    func run() async throws {
        for await _ in exclusions.cancelOnGracefulShutdown() {}
        stopping.store(true, ordering: .releasing)
    }
}
