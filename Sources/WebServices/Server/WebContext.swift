package import Admission
import Cluster
import RecordModel
package import Service

/// What every route needs: the node's service, who may administer it, and what the HTTP edge holds.
package final class WebContext: Sendable {
    package let service: RecordService
    let administrator: AdministratorToken
    let metrics: Metrics
    let identity: IdentityServices
    /// Bytes of requests and answers that the node holds for clients.
    let bodies = BodyBudget(bytesMax: 256 << 20)
    /// Bytes of files that are on their way through the node.
    let transfers = BodyBudget(bytesMax: 256 << 20)

    let console: ConsolePages
    private let webhooks: any WebhookTransport

    /// - Parameters:
    ///   - consoleFolder: where the console's files are, in place of those in the binary.
    ///   - webhooks: sends deliveries in place of HTTP.
    package init(
        service: RecordService, administrator: AdministratorToken, consoleFolder: String? = nil,
        webhooks: (any WebhookTransport)? = nil
    ) {
        self.service = service
        self.webhooks = webhooks ?? WebhookClient(service.webhooks.settings)
        metrics = Metrics(service.node.settings.metrics)
        self.administrator = administrator
        console = consoleFolder.map { ConsolePages(folder: $0) } ?? .embedded
        identity = IdentityServices()
    }

    /// Begins what goes on beside the requests; the node is started.
    package func start() {
        service.start()
        service.webhooks.start(service, webhooks)
        metrics.follow(service.watches)
    }

    /// Ends it; no more requests come.
    package func stop() async {
        await service.stop()
        await identity.shutdown()
    }
}
