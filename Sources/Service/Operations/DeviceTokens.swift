import Admission
import Cluster
import Directory
package import KeyValueStore
import RaftCore
import RecordModel
import RecordStore
import Wire

/// Tokens of devices, and the web courier that hands their notifications out, as CloudKit has them.
///
/// A token is sealed, so the courier's URL is all the right that is needed. Where its reader is in the logs is a row
/// beside the log of the user who made it; the row goes 12 hours after the token was used last.
package struct DeviceTokens: Sendable {
    /// Apple's two services for push; here they are the same.
    package enum PushEnvironment: String, Hashable, Sendable, CaseIterable {
        /// Called `sandbox` elsewhere.
        case development
        /// That of apps in the store.
        case production
    }

    /// Whose notifications a device is to get.
    package struct Device: Sendable {
        /// The user in a container's environment.
        package var store: StoreKey
        /// The same user.
        package var accountID: String
        /// As it names itself: it is not told of its own changes.
        package var client: String?

        package init(store: StoreKey, accountID: String, client: String?) {
            self.store = store
            self.accountID = accountID
            self.client = client
        }
    }

    private let service: RecordService

    package init(_ service: RecordService) { self.service = service }

    /// How long a token lives without use, and how often its use is noted.
    package static let lifeMilliseconds: Int64 = 12 * 3_600_000
    private static let noteMilliseconds: Int64 = 3_600_000
    /// How long the courier waits for something to tell.
    private static let waitSeconds: UInt64 = 25
    /// Logs that one token follows.
    private static let feedsMax = 16
    /// How often a move is tried that another request came before.
    private static let triesMax = 5

    // MARK: Tokens

    /// Makes one, which begins with what comes next.
    package func create(
        _ device: Device, _ environment: PushEnvironment
    ) async throws(RequestFailure) -> String {
        let token = DeviceToken(
            home: device.store.home, id: service.randomBytes(16), environment: environment.rawValue)
        try await service.node.require(.webhooks, for: "webhooks need", in: token.home.home(in: service))
        var row = TokenRow(token: token, version: 0, feeds: [try await feed(of: device)])
        guard try await row.save(in: service) else {
            throw RequestFailure(.internalError, "there is a token of this id")
        }
        return token.text(sealedBy: try await service.requireSecret())
    }

    /// Has a token that there is follow another log, too.
    /// - Throws: `BAD_REQUEST` for what is no token, or one whose time is over.
    package func register(
        _ text: String, _ device: Device, _ environment: PushEnvironment
    ) async throws(RequestFailure) {
        let feed = try await feed(of: device)
        try await change(text) { row throws(RequestFailure) in
            guard row.token.environment == environment.rawValue else {
                throw .badRequest("apnsEnvironment: the token is for '\(row.token.environment)'")
            }
            let place = row.feeds.firstIndex { $0.subscriber == feed.subscriber }
            if let place {
                // It goes on where it is.
                row.feeds[place].client = feed.client
            } else {
                guard row.feeds.count < Self.feedsMax else {
                    throw .badRequest(
                        "apnsToken: it is registered for \(Self.feedsMax) containers, the most there may be")
                }
                row.feeds.append(feed)
            }
        }
    }

    /// A user's log from its end on.
    private func feed(of device: Device) async throws(RequestFailure) -> TokenRow.Feed {
        var feed = TokenRow.Feed(
            subscriber: device.store.home, accountID: device.accountID, client: device.client, position: [])
        let answer = try await page(of: feed, limit: 0)
        feed.position = try await place(after: answer)
        return feed
    }

    private func change(
        _ text: String, _ body: (inout TokenRow) throws(RequestFailure) -> Void
    ) async throws(RequestFailure) {
        let token = try await open(text)
        for _ in 0..<Self.triesMax {
            var row = try await load(token)
            try body(&row)
            if try await row.save(in: service) { return }
        }
        throw .nothingDone("others use the same token")
    }

    private func open(_ text: String) async throws(RequestFailure) -> DeviceToken {
        if let token = DeviceToken(text, openedBy: try await service.requireSecret()) { return token }
        throw .badRequest("apnsToken: it is not one that this server gave")
    }

    private func load(_ token: DeviceToken) async throws(RequestFailure) -> TokenRow {
        try await service.cluster.requireDirectory()
        try relay(service.directory.requireContainer(token.home.container))
        if var row = try await TokenRow.load(token, in: service) {
            let now = service.now
            try await removeDeletedUsers(&row)
            if row.expires > now, !row.feeds.isEmpty { return row }
        }
        throw .badRequest("the token has expired: tokens/create makes another one", details: .expiredURL)
    }

    /// The courier's URL needs no sign-in, so what a deleted user would be told of is taken out here.
    private func removeDeletedUsers(_ row: inout TokenRow) async throws(RequestFailure) {
        let ids = row.feeds.map(\.accountID)
        let names = try await service.accounts.read { try $0.names(ofAccounts: ids) }
        let count = row.feeds.count
        row.feeds.removeAll { names[$0.accountID] == nil }
        if row.feeds.count < count { row.isChanged = true }
    }

    // MARK: The courier

    /// The next notification, which is handed out once; nil where nothing comes for a while. It spends one request of
    /// the rate of the container that the token was made in.
    /// - Parameter address: the client's, whose wrong tokens are counted.
    /// - Throws: `BAD_REQUEST` for what is no token, or one whose time is over; `NOT_FOUND` where that container was
    ///   deleted; `THROTTLED` where its rate is spent, or the address sent too many wrong tokens.
    package func next(_ text: String, address: String?) async throws(RequestFailure) -> [UInt8]? {
        let token: DeviceToken
        do throws(RequestFailure) {
            token = try await open(text)
        } catch {
            if error.error.code == .badRequest { try service.failedAuthentications.count(of: address) }
            throw error
        }
        var notes = RequestNotes()
        let rate = RateKey(container: token.home.container, kind: .requests)
        try await service.peerExchange.rates.spend(rate, in: service.directory, &notes)
        let end = service.watches.now + Self.waitSeconds * 1_000_000_000
        while true {
            var row = try await load(token)
            let tickets = try enter(row)
            for ticket in tickets { service.watches.begin(ticket) }
            if let payload = try await take(&row) {
                // What was not sent is not to be gone.
                if Task.isCancelled { return nil }
                if try await row.save(in: service) { return payload }
                continue
            }
            if row.isChanged || row.expires - service.now < Self.lifeMilliseconds - Self.noteMilliseconds {
                _ = try await row.save(in: service)
            }
            let wake = await wait(tickets, until: end)
            if wake == .closing || service.watches.now >= end { return nil }
        }
    }

    private func enter(_ row: TokenRow) throws(RequestFailure) -> [WatchTicket] {
        var tickets: [WatchTicket] = []
        for feed in row.feeds {
            tickets.append(
                try service.watches.enter(
                    StoreKey(home: feed.subscriber), group: feed.subscriber.home(in: service)))
        }
        return tickets
    }

    private func wait(_ tickets: [WatchTicket], until end: UInt64) async -> WatchWake {
        if tickets.count == 1 { return await service.watches.wait(tickets[0], until: end) }
        return await withTaskGroup(of: WatchWake.self) { group in
            for ticket in tickets { group.addTask { await service.watches.wait(ticket, until: end) } }
            let first = await group.next() ?? .due
            group.cancelAll()
            return first
        }
    }

    /// Takes the oldest notification that waits, and moves its log's place. What a container that was deleted has to
    /// tell waits until it is restored.
    private func take(_ row: inout TokenRow) async throws(RequestFailure) -> [UInt8]? {
        var oldest: (time: Int64, payload: [UInt8], feed: Int, position: [UInt8])?
        for place in row.feeds.indices
        where service.directory.hasContainer(row.feeds[place].subscriber.container) {
            var answer = try await page(of: row.feeds[place], limit: 1)
            if answer.expiry != nil {
                row.feeds[place].position = try await placeAfterLoss(in: row.feeds[place])
                row.isChanged = true
                answer = try await page(of: row.feeds[place], limit: 1)
            }
            guard answer.changes > 0, let json = try? JSONParser.parse(answer.bytes),
                let entry = json["notifications"]?.array?.first, let payload = entry["payload"],
                case .integer(let time)? = entry["time"]
            else { continue }
            if let oldest, oldest.time <= time { continue }
            var writer = JSONWriter()
            writer.value(payload)
            oldest = (time, writer.bytes, place, try await self.place(after: answer))
        }
        guard let oldest else { return nil }
        row.feeds[oldest.feed].position = oldest.position
        return oldest.payload
    }

    // MARK: The logs

    private func page(of feed: TokenRow.Feed, limit: Int) async throws(RequestFailure) -> ShardAnswer {
        let notifications = Notifications(
            service, StoreKey(home: feed.subscriber), accountID: feed.accountID, client: feed.client)
        return try await notifications.page(
            after: feed.position.isEmpty ? nil : feed.position, limit: limit, by: service.node.deadline())
    }

    private func place(after answer: ShardAnswer) async throws(RequestFailure) -> [UInt8] {
        let text = answer.cursor.map { String(decoding: $0, as: UTF8.self) }
        return try await SealedPosition.notifications.open(text, in: service) ?? []
    }

    /// Where a log is gone on with that was cut: where it was, if that is still there, else at its beginning. What was
    /// lost cannot be told here.
    private func placeAfterLoss(in feed: TokenRow.Feed) async throws(RequestFailure) -> [UInt8] {
        let old = try unpacked(feed.position, as: NotificationToken.self)
        var beginning = feed
        beginning.position = []
        var now = try unpacked(
            try await place(after: try await page(of: beginning, limit: 0)), as: NotificationToken.self)
        guard now.incarnation == old.incarnation, now.life == old.life || old.life == 0 else { return [] }
        now.sequence = old.sequence
        beginning.position = now.encoded()
        return try await page(of: beginning, limit: 1).expiry == nil ? beginning.position : []
    }
}

/// What is in a token's text.
private struct DeviceToken: Hashable, WireMessage {
    /// The private database of the user who made it: its row is at that home.
    var home: DatabaseKey
    var id: [UInt8]
    var environment: String

    private static let purpose = "push token"

    static var blank: Self { DeviceToken(home: .blank, id: [], environment: "") }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &home)
        try wire.required(2, &id)
        try wire.field(3, &environment)
    }

    func text(sealedBy secret: ClusterSecret) -> String {
        Base64URL.encode(secret.seal(encoded(), purpose: Self.purpose))
    }
}

extension DeviceToken {
    /// Nil for what this cluster did not give.
    fileprivate init?(_ text: String, openedBy secret: ClusterSecret) {
        guard let sealed = Base64URL.decode(text), let bytes = secret.open(sealed, purpose: Self.purpose),
            let token = try? DeviceToken(decoding: bytes)
        else { return nil }
        self = token
    }
}

/// Where a token is in the logs that it follows.
private struct TokenRow {
    /// A user's log.
    struct Feed: Hashable, WireMessage {
        var subscriber: DatabaseKey
        var accountID: String
        var client: String?
        /// Empty is the beginning.
        var position: [UInt8]

        static var blank: Self { Feed(subscriber: .blank, accountID: "", client: nil, position: []) }

        mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.required(1, &subscriber)
            try wire.field(2, &accountID)
            try wire.field(3, &client)
            try wire.field(4, &position)
        }
    }

    let token: DeviceToken
    var version: UInt64
    var feeds: [Feed]
    /// Milliseconds since 1970.
    private(set) var expires: Int64 = 0
    /// Whether it differs from what is kept.
    var isChanged = false

    private var name: String { "device/" + Hex.encode(token.id) }

    static func load(_ token: DeviceToken, in service: RecordService) async throws(RequestFailure) -> TokenRow? {
        var row = TokenRow(token: token, version: 0, feeds: [])
        let kept = try await LogReader.kept(row.name, of: token.home, in: service)
        guard let reader = kept else { return nil }
        row.version = reader.version
        row.expires = reader.expires ?? 0
        row.feeds = try unpacked(reader.body, as: ShardList<Feed>.self).elements
        return row
    }

    /// Keeps it, for another 12 hours.
    /// - Returns: whether nobody was faster.
    mutating func save(in service: RecordService) async throws(RequestFailure) -> Bool {
        expires = try service.trustedNow() + DeviceTokens.lifeMilliseconds
        let reader = LogReader(version: version, expires: expires, body: ShardList(feeds).encoded())
        let isKept = try await reader.keep(name, of: token.home, in: service)
        version += 1
        isChanged = false
        return isKept
    }
}
