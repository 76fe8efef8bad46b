import Admission
import Authorization
import Cluster
import Directory
import Hummingbird
import KeyValueStore
import NIOCore
import RaftCore
import RecordModel

/// One call of `watch`: looks at a store's feed after a token, and waits for more.
///
/// Looks go to the store's leader and are linearizable, each from the token of the page before, so what is sent is the feed:
/// in order, nothing left out, nothing twice.
struct KeyValueWatch: Sendable {
    var context: WebContext
    var store: StoreKey
    var group: GroupID
    /// What the caller showed; it is looked at again before anything is sent.
    var credentials: Credentials
    var target: Target
    /// The request's own, for logs.
    var uuid: String
    /// Tells where the client goes away.
    var departure: Departure?
    /// Who asks, for the audit log; nil where the request does not say.
    var origin: AuditOrigin?
    /// Changes of a page.
    var limit = KeyValueTables.pageMax

    /// A page of the feed, as clients get it.
    struct Page: Sendable {
        var json: [UInt8]
        var token: String
        var hasMore: Bool
        /// Whether it has any change.
        var isEmpty: Bool
    }

    /// How long a store that nobody leads is waited for before its watch is sent elsewhere, and how often it is asked for.
    static let leaderlessSeconds: UInt64 = 10
    static let retryMilliseconds: UInt64 = 500
    /// How long one look waits for the store's leader. Short: it holds a place among the looks meanwhile.
    static let lookMilliseconds: UInt64 = 1_000

    /// Takes a place among those who watch, which is given back when the ticket is let go, or the client goes away.
    func enter() throws(RequestFailure) -> WatchTicket {
        let ticket = try context.watches.enter(store, group: group)
        ticket.follow(departure)
        return ticket
    }

    /// What lies after a token.
    /// - Throws: `BAD_REQUEST` for a token that cannot be followed; `TRY_AGAIN_LATER` where the store cannot be read now.
    func look(since token: String?) async throws(RequestFailure) -> Page {
        // One line for each shard, so that one without a leader makes only its own watches wait.
        let line = "\(group)"
        guard case .entered = await context.looks.enter(container: line, containerMax: WatchHub.looksMax / 4)
        else {
            throw RequestFailure(
                ServiceError(
                    .tryAgainLater, "nothing was done: this node has too many changes of preferences to tell of",
                    retryAfterSeconds: 1))
        }
        defer { context.looks.leave(container: line) }
        context.watches.looked()
        let answer = try await KeyValues.page(
            of: store, since: token, limit: limit, from: group, in: context,
            by: Deadline(milliseconds: Self.lookMilliseconds))
        guard let next = answer.cursor else {
            throw RequestFailure(.internalError, "a page of preferences came without a token")
        }
        if answer.changes > 0 { context.watches.foundPage() }
        return Page(
            json: answer.bytes, token: String(decoding: next, as: UTF8.self), hasMore: answer.hasMore,
            isEmpty: answer.changes == 0)
    }

    /// Makes sure that the caller may still have what is about to be sent: the session was not ended, nor the API token, and this node
    /// would know.
    /// - Throws: what a new request would be refused with.
    func requireCaller() async throws(RequestFailure) {
        do throws(ClusterError) { try await context.node.requireDirectory() } catch { throw RequestFailure(error) }
        do throws(ServiceError) {
            let admitted = try Admission.admit(
                credentials, to: target, in: context.node.directory.snapshot, signer: context.identity.signer,
                now: context.now)
            guard admitted.caller.user == store.user else {
                throw ServiceError(.authenticationRequired, "request needs authorization: the user is another one")
            }
        } catch {
            throw RequestFailure(error)
        }
    }

    /// Tells the audit log that a watch was ended for what its caller may not, or may not any more.
    func audit(_ failure: RequestFailure) {
        switch failure.error.code {
        case .accessDenied, .authenticationRequired, .authenticationFailed: break
        default: return
        }
        let origin = origin ?? AuditOrigin(actor: "user \(store.user)", requestID: uuid, address: "", time: context.now)
        context.audit.refused(
            origin, in: store.container, action: "kv/watch",
            subject: "preferences of \(store.container) (\(store.environment.rawValue))")
    }

    static func nanoseconds(_ seconds: UInt64) -> UInt64 { seconds * 1_000_000_000 }
}

// Long polls.
extension KeyValueWatch {
    /// Answers as `changes` does: at once where something lies after the token, or where there is no token; else once something does, or
    /// with an empty page after the time-out.
    func longPoll(since token: String?, seconds: UInt64) async throws(RequestFailure) -> Reply {
        let ticket = try enter()
        let end = WatchHub.now + Self.nanoseconds(seconds)
        while true {
            context.watches.begin(ticket)
            var page: Page?
            var failure: RequestFailure?
            do throws(RequestFailure) {
                page = try await look(since: token)
            } catch {
                guard error.error.code == .tryAgainLater, WatchHub.now < end else { throw error }
                failure = error
            }
            if let page, !page.isEmpty || token == nil { return try await reply(page) }
            let again = WatchHub.now + Self.retryMilliseconds * 1_000_000
            let wake = try await wait(ticket, until: failure == nil ? end : min(end, again))
            guard wake == .closing || WatchHub.now >= end else { continue }
            guard let page else {
                throw failure ?? RequestFailure(.internalError, "a watch has neither a page nor a failure")
            }
            var reply = try await reply(page)
            if wake == .closing { reply.headers.append(("connection", "close")) }
            return reply
        }
    }

    /// Waits, and looks at the caller's rights where they may have changed.
    private func wait(_ ticket: WatchTicket, until end: UInt64) async throws(RequestFailure) -> WatchWake {
        while true {
            let wake = await context.watches.wait(ticket, until: end)
            guard wake == .recheck else { return wake }
            try await requireCaller()
        }
    }

    /// The page counts among the bytes that the node holds until the client has taken it: those who wait are woken together.
    private func reply(_ page: Page) async throws(RequestFailure) -> Reply {
        try await requireCaller()
        guard let held = HeldBytes(page.json.count, in: context.bodies) else {
            throw RequestFailure(
                ServiceError(
                    .tryAgainLater,
                    "nothing was done: this node holds as many bytes for clients as it may; watch on another one",
                    retryAfterSeconds: 1))
        }
        var reply = Reply(body: [])
        reply.stream = { writer in
            try await writer.write(ByteBuffer(bytes: page.json))
            try await writer.finish(nil)
            withExtendedLifetime(held) {}
        }
        return reply
    }
}
