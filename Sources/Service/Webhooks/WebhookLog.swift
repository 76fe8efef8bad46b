import Cluster
import Directory
import RaftCore
import RecordModel
import RecordStore
import Wire

/// A webhook's log of notifications.
struct WebhookLog {
    struct Entry {
        var sequence: Int64
        /// As readers of notifications get it.
        var json: JSONValue
    }

    struct Page {
        var entries: [Entry]
        fileprivate var token: NotificationToken

        /// The place in the log after a page that has everything.
        var end: [UInt8] { token.encoded() }

        /// The place in the log after an entry.
        func end(at sequence: Int64) -> [UInt8] {
            var token = token
            token.sequence = sequence
            return token.encoded()
        }
    }

    let service: RecordService
    let webhook: Webhook

    /// Notifications of one delivery, and bytes of them together, give or take one.
    private static let entriesMax = 100
    private static let bytesMax = 256 << 10

    /// What lies after a place; nil where something was lost since.
    /// - Parameter position: empty begins with the first notification that is kept.
    func page(after position: [UInt8]) async throws(RequestFailure) -> Page? {
        let home = webhook.subscriber.home(in: service)
        var read = ShardRead.NotificationsRead(
            subscriber: webhook.subscriber, token: position.isEmpty ? nil : position, client: nil,
            limit: Self.entriesMax)
        // A webhook is the container's, whose every record it may be told of; but not of types that were dropped. A
        // node that lags behind would pass by those that are new.
        try await service.cluster.requireDirectory()
        let types = Set(service.schema(webhook.schemaKey).schema.types.map(\.name))
        read.hidden.readable = NotificationLog.Readable(types: types, typesOfOthers: types)
        let answer = try await service.cluster.answer(to: .notifications(read), from: home, by: service.deadline())
        return answer.expiry == nil ? try await page(answer) : nil
    }

    private func page(_ answer: ShardAnswer) async throws(RequestFailure) -> Page {
        guard let json = try? JSONParser.parse(answer.bytes), let all = json["notifications"]?.array,
            let place = try await SealedPosition.notifications.open(json["syncToken"]?.string, in: service)
        else { throw RequestFailure(.internalError, "a page of notifications cannot be read") }
        var page = Page(entries: [], token: try unpacked(place))
        var bytes = 0
        for notification in all {
            var writer = JSONWriter()
            writer.value(notification)
            bytes += writer.bytes.count
            guard page.entries.isEmpty || bytes <= Self.bytesMax,
                case .integer(let sequence)? = notification["seq"]
            else { break }
            page.entries.append(Entry(sequence: sequence, json: notification))
        }
        return page
    }
}

/// The reader that keeps a webhook's progress with its log.
struct WebhookReader: Sendable {
    private static let name = "webhook"

    var progress: WebhookProgress
    private var version: UInt64
    /// Whether it is to be saved.
    var isChanged = false

    static func load(_ webhook: Webhook, in service: RecordService) async throws(RequestFailure) -> WebhookReader {
        guard let row = try await LogReader.kept(name, of: webhook.subscriber, in: service) else {
            return WebhookReader(progress: WebhookProgress(), version: 0)
        }
        return WebhookReader(progress: try unpacked(row.body), version: row.version)
    }

    /// - Throws: `CONFLICT` where another node was faster.
    mutating func save(_ webhook: Webhook, in service: RecordService) async throws(RequestFailure) {
        let reader = LogReader(version: version, expires: nil, body: progress.encoded())
        guard try await reader.keep(Self.name, of: webhook.subscriber, in: service) else {
            throw RequestFailure(.conflict, "another node delivers to webhook '\(webhook.name)'")
        }
        version += 1
        isChanged = false
    }
}

extension LogReader {
    /// A reader that is kept with a user's notifications; nil where there is none of the name.
    static func kept(
        _ name: String, of subscriber: DatabaseKey, in service: RecordService
    ) async throws(RequestFailure) -> LogReader? {
        let answer = try await service.cluster.answer(
            to: .logReader(subscriber, name: name), from: subscriber.home(in: service), by: service.deadline())
        return answer.bytes.isEmpty ? nil : try unpacked(answer.bytes)
    }

    /// Keeps it, provided that the one that is kept has its version; 0 where none is.
    /// - Returns: whether it was, and is of the next version now.
    func keep(
        _ name: String, of subscriber: DatabaseKey, in service: RecordService
    ) async throws(RequestFailure) -> Bool {
        let home = subscriber.home(in: service)
        let command = LogReaderCommand.move(
            subscriber: subscriber, home: home.rawValue, time: try service.trustedNow(), name: name, from: version,
            to: self)
        return try await service.cluster.submit(
            .reader(command), to: home, by: service.deadline(), as: LogReaderOutcome.self
        ).isDone
    }
}
