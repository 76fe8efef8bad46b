package import Admission
import Authorization
package import Cluster
import Directory
package import KeyValueStore
package import RaftCore
import RecordModel

/// A feed of one user's, at the user's home: preferences or notifications.
package protocol WatchedFeed: Sendable {
    var service: RecordService { get }
    /// The user, for which the watch hub rings.
    var store: StoreKey { get }
    var group: GroupID { get }
    /// As limits, logs and events name what is watched.
    var name: String { get }
    /// The name of a page in a stream of events.
    var event: String { get }
    /// As the audit log names the request.
    var action: String { get }
    /// A page after a token.
    func changes(since token: String?, limit: Int, by deadline: Deadline) async throws(RequestFailure) -> ShardAnswer
}

extension WatchedFeed {
    /// A page after a token, as clients get it: JSON.
    package func page(
        since token: String?, limit: Int, by deadline: Deadline
    ) async throws(RequestFailure) -> [UInt8] {
        try await changes(since: token, limit: limit, by: deadline).bytes
    }
}

/// One watch of a user's preferences or notifications: looks at the feed after a token, and waits for more.
///
/// Looks go to the store's leader and are linearizable, each from the token of the page before, so what is sent is the
/// feed: in order, nothing left out, nothing twice.
package struct PreferenceWatch: Sendable {
    /// What is watched.
    package let feed: any WatchedFeed
    /// What the caller showed; it is looked at again before anything is sent.
    private let credentials: Credentials
    /// Nil unless an administrator acts as the user.
    private let acting: ActingCredential?
    private let target: Target
    private let requester: Requester
    /// Changes of a page.
    private let limit: Int

    package init(
        _ feed: any WatchedFeed, credentials: Credentials, as acting: ActingCredential? = nil, target: Target,
        requester: Requester, limit: Int
    ) {
        self.feed = feed
        self.acting = acting
        self.credentials = credentials
        self.target = target
        self.requester = requester
        self.limit = limit
    }

    /// A page of the feed, as clients get it.
    package struct Page: Sendable {
        /// The page as JSON, rendered by the leader of the store's shard.
        package var json: [UInt8]
        /// Where the next look begins, in Base64.
        package var token: String
        /// Whether the feed goes on after `token`, so that the next look needs no wait.
        package var hasMore: Bool
        /// Whether it has no change.
        package var isEmpty: Bool
    }

    /// How long a store that nobody leads is waited for before its watch is sent elsewhere, and how often it is asked
    /// for.
    package static let leaderlessSeconds: UInt64 = 10
    static let retryMilliseconds: UInt64 = 500
    /// How long one look waits for the store's leader. Short: it holds a place among the looks meanwhile.
    private static let lookMilliseconds: UInt64 = 1_000

    /// The node's service.
    package var service: RecordService { feed.service }

    /// Waits before a look that failed is made again.
    package func pause() async { try? await service.node.platform.clock.sleep(milliseconds: Self.retryMilliseconds) }
    private var store: StoreKey { feed.store }

    /// Takes a place among those who watch, which is given back when the ticket is let go.
    package func enter() throws(RequestFailure) -> WatchTicket {
        try service.watches.enter(store, group: feed.group)
    }

    /// What lies after a token.
    /// - Throws: `BAD_REQUEST` for a token that cannot be followed; `TRY_AGAIN_LATER` where the store cannot be read
    ///   now.
    package func look(since token: String?) async throws(RequestFailure) -> Page {
        // One line for each shard, so that one without a leader makes only its own watches wait.
        let line = "\(feed.group)"
        guard case .entered = await service.looks.enter(container: line, containerMax: WatchHub.looksMax / 4)
        else {
            throw .nothingDone("this node has too many changes to tell of")
        }
        defer { service.looks.leave(container: line) }
        service.watches.looked()
        let answer = try await feed.changes(
            since: token, limit: limit, by: service.node.deadline(milliseconds: Self.lookMilliseconds))
        guard let next = answer.cursor else {
            throw RequestFailure(.internalError, "a page came without a token")
        }
        if answer.changes > 0 { service.watches.foundPage() }
        return Page(
            json: answer.bytes, token: String(decoding: next, as: UTF8.self), hasMore: answer.hasMore,
            isEmpty: answer.changes == 0)
    }

    /// Makes sure that the caller may still have what is about to be sent: the session was not ended, nor the API
    /// token, and this node would know.
    /// - Throws: what a new request would be refused with.
    package func requireCaller() async throws(RequestFailure) {
        if let acting {
            let asked = try await acting.admitted(by: service, to: target, writes: false)
            guard asked.admitted.caller.user == store.user else { throw Self.otherUser }
            return
        }
        try await service.cluster.requireDirectory()
        let session = try await service.accounts.session(of: credentials, service.signer)
        let admitted = try relay(
            Admission.admit(credentials, to: target, in: service.directory, session: session, now: service.now))
        guard admitted.caller.user == store.user else { throw Self.otherUser }
    }

    private static let otherUser = RequestFailure(
        .authenticationRequired, "request needs authorization: the user is another one")

    /// Tells the audit log that a watch was ended for what its caller may not, or may not any more.
    package func audit(_ failure: RequestFailure) {
        switch failure.error.code {
        case .accessDenied, .authenticationRequired, .authenticationFailed: break
        default: return
        }
        service.audit.refused(
            requester.origin(at: service.now), in: store.container, action: feed.action,
            subject: "\(feed.name) of \(store.container) (\(store.environment.rawValue))")
    }

    /// Waits for a page: at once where something lies after the token, or where there is no token; else once something
    /// does, or an empty one after the time-out.
    /// - Returns: the page, and whether the node is stopping, so that the next question goes to another one.
    package func page(
        since token: String?, within seconds: UInt64, _ ticket: WatchTicket
    ) async throws(RequestFailure) -> (page: Page, isClosing: Bool) {
        let watches = service.watches
        let end = watches.now + seconds * 1_000_000_000
        while true {
            watches.begin(ticket)
            let found: Result<Page, RequestFailure>
            var next = end
            do throws(RequestFailure) {
                found = .success(try await look(since: token))
            } catch {
                guard error.error.code == .tryAgainLater, watches.now < end else { throw error }
                found = .failure(error)
                next = min(end, watches.now + Self.retryMilliseconds * 1_000_000)
            }
            if case .success(let page) = found, !page.isEmpty || token == nil {
                try await requireCaller()
                return (page, false)
            }
            let wake = try await wait(ticket, until: next)
            guard wake == .closing || watches.now >= end else { continue }
            let page = try found.get()
            try await requireCaller()
            return (page, wake == .closing)
        }
    }

    /// Waits, and looks at the caller's rights where they may have changed.
    private func wait(_ ticket: WatchTicket, until end: UInt64) async throws(RequestFailure) -> WatchWake {
        while true {
            let wake = await service.watches.wait(ticket, until: end)
            guard wake == .recheck else { return wake }
            try await requireCaller()
        }
    }
}
