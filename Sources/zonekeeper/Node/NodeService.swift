import Cluster
import Logging
import ServiceLifecycle

/// A started node, until it is told to stop. It stops after the web server, which is added after it.
struct NodeService: Service {
    var node: ClusterNode
    var logger: Logger

    func run() async throws {
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                // Fails only when it is cancelled.
                try? await node.awaitMap()
            }
            // Cancellation, when another service failed, ends the node as a signal does.
            try? await gracefulShutdown()
            tasks.cancelAll()
        }
        logger.info("stopping")
        await node.stop()
        logger.info("stopped")
    }
}
