import Admission
import Cluster
import Directory
import KeyValueStore
import Logging
import RaftCore
import RecordModel
import RecordStore
import Synchronization

/// Has webhooks told of changes: each by the node that leads the group of its log of notifications.
///
/// A webhook is a task of that node. What it does next follows from the directory and from the log's reader, so a node
/// that begins to lead goes on where the former one ended, and both may deliver the same for a moment.
package final class WebhookDeliverer: Sendable {
    private struct State {
        var transport: (any WebhookTransport)?
        /// Webhooks with a task, by id.
        var running: [String: Task<Void, Never>] = [:]
        var isStopped = false
    }

    /// How often it is looked for webhooks that nobody follows.
    private static let roundMilliseconds: UInt64 = 1_000
    /// Deliveries of this node that are under way at the same time, and those that wait for it.
    private static let deliveriesMax = 32
    private static let queuedMax = 4_096

    /// What tests and administrators may reach.
    package let settings: WebhookSettings
    private let work: PeriodicTask
    private let logger: Logger
    private let state = Mutex(State())
    private let deliveries = FairGate(limit: deliveriesMax, queueMax: queuedMax)
    /// What administrators ask of receivers: it does not wait for deliveries, which may be what they want to mend.
    private let questions = FairGate(limit: 8, queueMax: 64)

    init(platform: any NodePlatform, settings: WebhookSettings, logger: Logger) {
        self.settings = settings
        self.logger = logger
        work = PeriodicTask(platform: platform)
    }

    /// Begins; the service is started.
    package func start(_ service: RecordService, _ transport: any WebhookTransport) {
        state.withLock { $0.transport = transport }
        work.start(everyMilliseconds: Self.roundMilliseconds) { [weak self, weak service] in
            if let self, let service { self.follow(service) }
        }
    }

    func stop() async {
        work.stop()
        let (transport, running) = state.withLock { state in
            state.isStopped = true
            return (state.transport, Array(state.running.values))
        }
        for task in running { task.cancel() }
        for task in running { await task.value }
        await transport?.shutdown()
    }

    /// - Throws: `INTERNAL_ERROR` on a node that sends nothing.
    func requireTransport() throws(RequestFailure) -> any WebhookTransport {
        if let transport = state.withLock({ $0.transport }) { return transport }
        throw RequestFailure(.internalError, "this node sends nothing to webhooks")
    }

    /// Does something that waits for a container's receiver, as one of the node's deliveries at most.
    /// - Throws: what `work` throws; `TRY_AGAIN_LATER` where too much waits.
    package func deliver<Value: Sendable>(
        for container: String, _ work: () async throws(RequestFailure) -> Value
    ) async throws(RequestFailure) -> Value {
        try await Self.work(work, for: container, in: deliveries, containerMax: 8)
    }

    /// Does something that waits for a container's receiver, for an administrator.
    /// - Throws: as `deliver`.
    func ask<Value: Sendable>(
        for container: String, _ work: () async throws(RequestFailure) -> Value
    ) async throws(RequestFailure) -> Value {
        try await Self.work(work, for: container, in: questions, containerMax: 2)
    }

    private static func work<Value: Sendable>(
        _ work: () async throws(RequestFailure) -> Value, for container: String, in gate: FairGate, containerMax: Int
    ) async throws(RequestFailure) -> Value {
        guard case .entered = await gate.enter(container: container, containerMax: containerMax) else {
            throw .nothingDone("this node has too much to deliver")
        }
        defer { gate.leave(container: container) }
        return try await work()
    }

    /// Begins with those webhooks whose homes this node leads, and that nobody follows here yet.
    func follow(_ service: RecordService) {
        guard let transport = try? requireTransport() else { return }
        for webhook in service.node.directory.snapshot.webhooks where webhook.isLed(by: service) {
            state.withLock { state in
                guard !state.isStopped, state.running[webhook.id] == nil else { return }
                state.running[webhook.id] = service.node.platform.startTask { [weak self, logger] in
                    var run = WebhookRun(service: service, transport: transport, webhook: webhook, logger: logger)
                    await run.run()
                    self?.state.withLock { $0.running[webhook.id] = nil }
                }
            }
        }
    }
}

extension Webhook {
    /// What stands for it as for a user.
    var subscriber: DatabaseKey { .webhook(id, container: container, environment: environment) }

    var schemaKey: SchemaKey { SchemaKey(container: container, environment: environment) }

    /// Whether a node leads the group of its log.
    fileprivate func isLed(by service: RecordService) -> Bool { service.node.leads(subscriber.home(in: service)) }
}

/// One webhook, as long as this node leads its home.
private struct WebhookRun {
    let service: RecordService
    let transport: any WebhookTransport
    var webhook: Webhook
    let logger: Logger
    var reader: WebhookReader?

    /// A webhook of which nothing is heard is looked at so often.
    private static let idleMilliseconds: Int64 = 30_000
    /// After what failed for a reason of this cluster.
    private static let pauseMilliseconds: Int64 = 1_000

    /// The webhook as it is by now; nil where it is not there any more, or another node follows it.
    private var newest: Webhook? {
        let directory = service.directory
        guard webhook.isLed(by: service), directory.containers[webhook.container] != nil else { return nil }
        return directory.webhooks(of: webhook.schemaKey).first { $0.id == webhook.id }
    }

    /// Whether there is something to do for it here; takes its newest values.
    private mutating func goesOn() -> Bool {
        guard !Task.isCancelled, let newest else { return false }
        webhook = newest
        return true
    }

    mutating func run() async {
        guard let ticket = try? enterWatch() else { return }
        while goesOn() {
            service.watches.begin(ticket)
            var wait: Int64
            do throws(RequestFailure) {
                wait = try await step()
            } catch {
                logger.debug("webhook \(webhook.name) of \(webhook.container) waits: \(error.error.reason)")
                reader = nil
                wait = Self.pauseMilliseconds
            }
            guard wait > 0 else { continue }
            if await self.wait(on: ticket, milliseconds: wait) == .closing { return }
        }
    }

    /// Begins a watch on the webhook's log.
    private func enterWatch() throws(RequestFailure) -> WatchTicket {
        let subscriber = webhook.subscriber
        return try service.watches.enter(
            StoreKey(home: subscriber), group: subscriber.home(in: service), isOfNode: true)
    }

    private func wait(on ticket: WatchTicket, milliseconds: Int64) async -> WatchWake {
        await service.watches.wait(ticket, until: service.watches.now + UInt64(milliseconds) * 1_000_000)
    }

    /// Does what is next.
    /// - Returns: for how many milliseconds there is nothing more to do, as far as is known.
    private mutating func step() async throws(RequestFailure) -> Int64 {
        if webhook.state == .leaving {
            try await Webhooks(service, webhook.schemaKey).finishRemoval(of: webhook)
            return Self.pauseMilliseconds
        }
        // Receivers judge by the time of a delivery, and a webhook's failures are counted by it.
        let now = try service.trustedNow()
        var reader = try await loadReader()
        guard try await putIntoForce(&reader) else { return 0 }
        defer { self.reader = reader }
        guard webhook.state == .enabled else { return try await rest(&reader) }
        let wait = reader.progress.wait(at: now)
        if wait > 0 { return min(wait, Self.idleMilliseconds) }
        let page = try await nextPage(&reader)
        if reader.isChanged { try await save(&reader) }
        guard let delivery = reader.progress.current else { return Self.idleMilliseconds }
        guard let page else {
            // Nothing that is to be told is left of it.
            reader.progress.succeed(nil)
            reader.isChanged = true
            return 0
        }
        let attempt = try await send(delivery, page, &reader)
        reader.isChanged = true
        if attempt.reason.isEmpty {
            reader.progress.succeed(attempt)
            service.requests.told(page.count, container: webhook.container, webhook.environment)
            return 0
        }
        return try await note(failure: attempt, &reader)
    }

    /// - Returns: as `step`.
    private func note(
        failure attempt: WebhookProgress.Attempt, _ reader: inout WebhookReader
    ) async throws(RequestFailure) -> Int64 {
        // It says nothing of a configuration that came meanwhile.
        guard reader.progress.revision == webhook.revision else { return 0 }
        let consequence = reader.progress.fail(attempt)
        try await save(&reader)
        if case .disable(let reason) = consequence {
            try await disable(reason)
            return Self.pauseMilliseconds
        }
        return max(1, min(reader.progress.wait(at: service.now), Self.idleMilliseconds))
    }

    /// Keeps what became of the last delivery of a webhook that is disabled.
    /// - Returns: as `step`.
    private func rest(_ reader: inout WebhookReader) async throws(RequestFailure) -> Int64 {
        guard reader.isChanged else { return Self.idleMilliseconds }
        try await save(&reader)
        return Self.idleMilliseconds
    }

    /// Has the webhook told of what its configuration says, where that has changed.
    /// - Returns: false where this node did not know the newest configuration.
    private func putIntoForce(_ reader: inout WebhookReader) async throws(RequestFailure) -> Bool {
        guard reader.progress.revision != webhook.revision else { return true }
        // A node that lags behind the directory would bring back what was before a change that was answered.
        try await service.cluster.requireDirectory()
        guard newest == webhook else { return false }
        try await WebhookSubscriptions(service: service, webhook: webhook).save(by: service.node.deadline())
        var next = reader
        next.progress.begin(revision: webhook.revision, isEnabled: webhook.state == .enabled)
        try await save(&next)
        reader = next
        return true
    }

    // MARK: The log

    private func loadReader() async throws(RequestFailure) -> WebhookReader {
        if let reader { return reader }
        return try await WebhookReader.load(webhook, in: service)
    }

    private func save(_ reader: inout WebhookReader) async throws(RequestFailure) {
        try await reader.save(webhook, in: service)
    }

    /// The notifications of the current delivery, which is begun where there is none; nil where nothing is to be told.
    private func nextPage(_ reader: inout WebhookReader) async throws(RequestFailure) -> [JSONValue]? {
        if reader.progress.current?.isLoss == true { return [] }
        let log = WebhookLog(service: service, webhook: webhook)
        guard let page = try await log.page(after: reader.progress.position) else {
            reader.progress.lose(of: newID())
            reader.isChanged = true
            return []
        }
        if let current = reader.progress.current {
            let notifications = page.entries.filter { $0.sequence <= current.through }.map(\.json)
            return notifications.isEmpty ? nil : notifications
        }
        guard let last = page.entries.last else {
            if reader.progress.pass(to: page.end) { reader.isChanged = true }
            return nil
        }
        reader.progress.begin(
            of: newID(), through: last.sequence, count: UInt64(page.entries.count),
            end: page.end(at: last.sequence))
        reader.isChanged = true
        return page.entries.map(\.json)
    }

    /// What the id of the next delivery begins with.
    private func newID() -> String { "\(webhook.id)-\(service.randomHex(bytes: 4))" }

    // MARK: What is sent

    /// Sends a delivery. A configuration that comes meanwhile is put into force without waiting for the receiver.
    private func send(
        _ delivery: WebhookProgress.Delivery, _ notifications: [JSONValue], _ reader: inout WebhookReader
    ) async throws(RequestFailure) -> WebhookProgress.Attempt {
        let ticket = try enterWatch()
        let message = WebhookMessage(
            id: delivery.id, webhook: webhook, notifications: notifications,
            flag: delivery.isLoss ? "lost" : nil)
        return try await withTaskGroup(of: SendEvent.self) { group in
            defer { group.cancelAll() }
            group.addTask { .sent(await attempt(message, failures: delivery.failures)) }
            var event: SendEvent? = .woken(.recheck)
            var mayPutIntoForce = true
            while true {
                switch event {
                case .sent(let result): return result
                // The node stops.
                case .woken(.closing), nil: break
                case .woken:
                    service.watches.begin(ticket)
                    var run = self
                    if mayPutIntoForce, run.goesOn(), run.webhook.state != .leaving {
                        // What fails is tried again after the delivery.
                        mayPutIntoForce = (try? await run.putIntoForce(&reader)) != nil
                    }
                    group.addTask { .woken(await wait(on: ticket, milliseconds: Self.idleMilliseconds)) }
                }
                event = await group.next()
            }
        }.get()
    }

    /// What happens while something is sent.
    private enum SendEvent {
        case sent(Result<WebhookProgress.Attempt, RequestFailure>)
        case woken(WatchWake)
    }

    private func attempt(
        _ message: WebhookMessage, failures: UInt64
    ) async -> Result<WebhookProgress.Attempt, RequestFailure> {
        do throws(RequestFailure) {
            return .success(
                try await service.webhooks.deliver(for: webhook.container) {
                    () async throws(RequestFailure) -> WebhookProgress.Attempt in
                    // It may have waited for long, and its webhook was changed or removed, or another node leads. It
                    // must not be long that two deliver.
                    try await service.cluster.requireDirectory()
                    guard newest == webhook else {
                        throw .nothingDone("the webhook has changed, or another node delivers")
                    }
                    let attempt = try await message.send(transport, failures: failures, in: service)
                    // What this node broke off as it stops says nothing of the receiver.
                    if Task.isCancelled, !attempt.reason.isEmpty {
                        throw .nothingDone("this node is stopping")
                    }
                    return attempt
                })
        } catch {
            return .failure(error)
        }
    }

    private func disable(_ reason: String) async throws(RequestFailure) {
        var disabled = webhook
        disabled.state = .disabled(reason: reason)
        let origin = AuditOrigin.node(service.node.settings.nodeID, at: service.now)
        logger.warning("webhook \(webhook.name) of \(webhook.container) is disabled: \(reason)")
        try await service.cluster.enter(
            DirectoryEntry(.webhook(.save(disabled)), origin: origin), by: service.node.deadline())
    }
}
