import ServiceLifecycle

/// Waits until the cluster wants nothing of the node; then all services are to end in order. It ends before the web server, after
/// which it is added.
struct ExclusionService: Service {
    /// Ends when the node is excluded.
    var exclusions: AsyncStream<Never>

    func run() async throws {
        for await _ in exclusions.cancelOnGracefulShutdown() {}
    }
}
