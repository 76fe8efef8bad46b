package import Admission
import Directory
import RecordModel
package import Service

/// What every route needs: the node's service, who may administer it, and what the HTTP edge holds.
package final class WebContext: Sendable {
    /// The node's service, which the routes call; `start()` and `stop()` also start and stop it.
    package let service: RecordService
    let administrator: AdministratorToken
    let metrics: Metrics
    /// Talks to identity providers; their connections are closed at the end.
    let providers = ProviderClient()
    /// Bytes of requests and answers that the node holds for clients.
    let bodies = BodyBudget(bytesMax: 256 << 20)
    /// Bytes of files that are on their way through the node.
    let transfers = BodyBudget(bytesMax: 256 << 20)

    /// Scheme, host and port that URLs in answers begin with; nil: as each client names the node.
    let origin: String?
    let console: ConsolePages
    /// What was used, day by day.
    package let history: UsageHistory
    private let usageMilliseconds: UInt64
    private let webhooks: any WebhookTransport
    private let heap: HeapTrimmer

    /// - Parameters:
    ///   - origin: what URLs in answers begin with, such as `https://zk.example.com:8443`; nil: what each request's
    ///     `Host` says, which is whatever its sender likes.
    ///   - consoleFolder: where the console's files are, in place of those in the binary.
    ///   - webhooks: sends deliveries in place of HTTP.
    ///   - usageMilliseconds: how often what was used goes to the days' history, and alerts are looked for; 0: never.
    package init(
        service: RecordService, administrator: AdministratorToken, origin: String? = nil, consoleFolder: String? = nil,
        webhooks: (any WebhookTransport)? = nil, usageMilliseconds: UInt64 = 60_000
    ) {
        self.usageMilliseconds = usageMilliseconds
        self.service = service
        history = UsageHistory(service)
        self.webhooks = webhooks ?? WebhookClient(service.webhooks.settings)
        metrics = Metrics(service.metrics)
        self.administrator = administrator
        self.origin = origin
        heap = HeapTrimmer(service)
        console = consoleFolder.map { ConsolePages(folder: $0) } ?? .embedded
    }

    /// Whether a request is served though its connection is beyond a limit: one after the node's health, and one with
    /// an administrator's token or a session's that a sign-in gave. It is looked at in full later, as any other.
    func isPassed(_ target: String, authorization: String?) -> Bool {
        let url = RequestURL(target: target)
        if url.segments.first == "health" { return true }
        let bearer = "Bearer "
        if let authorization, authorization.hasPrefix(bearer) {
            let secret = authorization.dropFirst(bearer.count)
            return administrator.matches(secret) || service.directory.administrator(withSecret: secret) != nil
        }
        return url["ckWebAuthToken"].flatMap { service.signer?.open($0) } != nil
    }

    /// Begins what goes on beside the requests; the node is started.
    package func start() {
        service.start()
        history.start(everyMilliseconds: usageMilliseconds)
        service.alerts.start(service, everyMilliseconds: usageMilliseconds)
        service.webhooks.start(service, webhooks)
        heap.start()
    }

    /// Ends it; no more requests come.
    package func stop() async {
        heap.stop()
        service.alerts.stop()
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
