package import Admission
import Directory
import RecordModel
package import Service

/// What every route needs: the node's service, who may administer it, and what the HTTP edge holds.
package final class WebContext: Sendable {
    package let service: RecordService
    let administrator: AdministratorToken
    let metrics: Metrics
    /// Talks to identity providers; their connections are closed at the end.
    let providers = ProviderClient()
    /// Bytes of requests and answers that the node holds for clients.
    let bodies = BodyBudget(bytesMax: 256 << 20)
    /// Bytes of files that are on their way through the node.
    let transfers = BodyBudget(bytesMax: 256 << 20)

    let console: ConsolePages
    /// What was used, day by day.
    package let history: UsageHistory
    private let usageMilliseconds: UInt64
    private let webhooks: any WebhookTransport

    /// - Parameters:
    ///   - consoleFolder: where the console's files are, in place of those in the binary.
    ///   - webhooks: sends deliveries in place of HTTP.
    ///   - usageMilliseconds: how often what was used goes to the days' history; 0: never.
    package init(
        service: RecordService, administrator: AdministratorToken, consoleFolder: String? = nil,
        webhooks: (any WebhookTransport)? = nil, usageMilliseconds: UInt64 = 60_000
    ) {
        self.usageMilliseconds = usageMilliseconds
        self.service = service
        history = UsageHistory(service)
        self.webhooks = webhooks ?? WebhookClient(service.webhooks.settings)
        metrics = Metrics(service.metrics)
        self.administrator = administrator
        console = consoleFolder.map { ConsolePages(folder: $0) } ?? .embedded
    }

    /// Begins what goes on beside the requests; the node is started.
    package func start() {
        service.start()
        history.start(everyMilliseconds: usageMilliseconds)
        service.webhooks.start(service, webhooks)
    }

    /// Ends it; no more requests come.
    package func stop() async {
        await history.stop()
        await service.stop()
        await providers.shutdown()
    }

    /// Where a user signs in for the container of an API token, for the `redirectURL` of answers; good for 20 minutes.
    ///
    /// - Parameters:
    ///   - base: scheme, host and port under which browsers reach this cluster, such as `https://zk.example.com:8443`.
    ///   - asker: the `Origin` header of the request; the token of the session goes to pages of that origin only.
    /// - Returns: nil on a node without an encryption key.
    func redirectURL(for token: Token, origin base: String, asker: String?) -> String? {
        let ticket = SignInTicket.sealed(for: token, origin: base, asker: asker, in: service)
        return ticket.map { "\(base)/sign-in?ticket=\($0)" }
    }
}
