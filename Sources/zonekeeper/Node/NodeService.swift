import Cluster
import Foundation
import Logging
import ServiceLifecycle
import WebServices

/// A started node, until it is told to stop. It stops after the web server, which is added after it.
struct NodeService: Service {
    var node: ClusterNode
    /// What goes on beside the requests ends with the node.
    var context: WebContext
    var logger: Logger

    func run() async throws {
        context.start()
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                do {
                    try await node.awaitMap()
                } catch is CancellationError {
                    return
                } catch {
                    logger.critical("the node must not serve: \(error)")
                    exit(70)
                }
            }
            // Cancellation, when another service failed, ends the node as a signal does.
            try? await gracefulShutdown()
            tasks.cancelAll()
        }
        logger.info("stopping")
        await context.stop()
        await node.stop()
        logger.info("stopped")
    }
}
